"""What must hold where updates are encoded before the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.values import Values

OPTIONS = {"encoding_share": "top-k", "encoding_levels": "levels"}  # of which encoding each is


def encoding_options_have_their_encoding(v: Values) -> Iterator[Finding]:
    for key, owner in OPTIONS.items():
        if v.given(f"privacy.{key}") and v["privacy.encoding"] != owner:
            yield Finding(
                ("privacy", key),
                f'has no effect without encoding = "{owner}"',
                f'Remove it, or set encoding = "{owner}".',
            )


def encoding_is_of_updates(v: Values) -> Iterator[Finding]:
    encoding, mechanism = v["privacy.encoding"], v["privacy.mechanism"]
    if encoding is None:
        return
    what, remedy = "", ""
    if v["privacy.unit"] == "example":
        what = 'works with privacy.unit = "client" alone: updates are encoded, and not gradients of records'
        remedy = 'Remove it, or set unit = "client".'
    elif v["privacy.clipping_quantile"] is not None:
        what = "works with a clipping norm that stays: codes are made for one norm"
        remedy = "Remove it, or clipping_quantile."
    elif v["privacy.trust"] == "local" and mechanism not in (None, "gaussian"):
        what = f"mechanism {literal(mechanism)} has an encoding of its own"
        remedy = 'Remove it, or use mechanism = "gaussian".'
    if what:
        yield Finding(("privacy", "encoding"), what, remedy, literal(encoding))


def student_noise_is_on_codes(v: Values) -> Iterator[Finding]:
    if v["privacy.trust"] != "central":
        return
    if v["privacy.mechanism"] != "student-t":
        if v.given("privacy.degrees"):
            yield Finding(
                ("privacy", "degrees"),
                'has no effect without mechanism = "student-t"',
                'Remove it, or set mechanism = "student-t".',
            )
        return
    place, shown = ("privacy", "mechanism"), literal("student-t")
    if v["privacy.encoding"] not in ("signs", "top-k") and "privacy.encoding" not in v.broken:
        yield Finding(
            place,
            "its cost is known for codes of few cases alone",
            'Add encoding = "top-k" or "signs", or use mechanism = "gaussian".',
            shown,
        )
    if v["sampling.name"] == "fixed":
        yield Finding(
            place,
            "no accountant supports it together with cohorts of fixed size",
            'Use sampling name = "poisson" or "all", or mechanism = "gaussian".',
            shown,
        )
    if v["server.denoise"] not in (None, "none"):
        yield Finding(
            ("server", "denoise"),
            "knows Gaussian noise alone, and this is Student t",
            'Use denoise = "none", or privacy.mechanism = "gaussian".',
            literal(v["server.denoise"]),
        )


ENCODING_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    encoding_options_have_their_encoding,
    encoding_is_of_updates,
    student_noise_is_on_codes,
)
