"""Pictures that attacks rebuilt, beside the originals and the nearest wrong pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fedprivacy.documents.trial import Rebuilt, TrialResult
from fedprivacy.io.validation import damaged
from fedprivacy.report.blocks import Block
from fedprivacy.report.charts import Chart, Mosaic, Pixels

FIELD = "trials[].pictures"  # of a replay document, for the operator alone
HEADING = "Rebuilt pictures"
CAPTION = (
    "Records of the victim, what the attacker made of its answer, and the other candidate that is nearest to "
    "each: a rebuilt picture counts if its PSNR is 6 dB above that of the nearest wrong one."
)
OPERATORS = "These are training data: do not pass them on."
_STORED = TypeAdapter(tuple[Rebuilt, ...])


def public_blocks(trials: Sequence[TrialResult]) -> list[Block]:
    """The pictures of records that are public."""
    return _blocks([(_label(trial.arm, trial.name), trial.public_pictures) for trial in trials], CAPTION)


def operator_blocks(document: Mapping[str, Any]) -> list[Block]:
    """The pictures of records that are not.

    Raises:
        InputError: they are damaged.
    """
    named = []
    for number, trial in enumerate(document.get("trials") or ()):
        try:
            pictures = _STORED.validate_python(trial.get("pictures") or ())
        except ValidationError as error:
            raise damaged(error, "report", f"trials[{number}].pictures") from None
        named.append((_label(trial.get("arm") or "", trial.get("name")), pictures))
    return _blocks(named, f"{CAPTION} {OPERATORS}")


def _label(arm: str, name: str) -> str:
    return f"{arm}, {name}" if arm else name


def _blocks(named: Sequence[tuple[str, tuple[Rebuilt, ...]]], caption: str) -> list[Block]:
    panels = tuple(_panel(name, pictures) for name, pictures in named if pictures)
    if not panels:
        return []
    return [Chart("rebuilt", "Originals and rebuilt pictures", caption, panels, stacked=True).picture]


def _panel(name: str, pictures: Sequence[Rebuilt]) -> Mosaic:
    parts = [[getattr(each, part) for each in pictures] for part in ("original", "rebuilt", "wrong")]
    return Mosaic(
        name,
        ("Original", "Rebuilt", "Nearest wrong"),
        tuple(
            tuple(Pixels(e.side, e.channels, digits) for e, digits in zip(pictures, row, strict=True))
            for row in parts
        ),
        (
            ("",) * len(pictures),
            tuple(f"PSNR {each.psnr:.1f} dB" for each in pictures),
            tuple(f"PSNR {each.wrong_psnr:.1f} dB" for each in pictures),
        ),
    )
