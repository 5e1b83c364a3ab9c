"""What must hold where the server takes noise out of the mean update."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.values import Values


def denoising_knows_the_noise(v: Values) -> Iterator[Finding]:
    how, trust, mechanism = v["server.denoise"], v["privacy.trust"], v["privacy.mechanism"]
    if how in (None, "none") or trust is None:
        return
    what, remedy = "", ""
    if trust == "none":
        what, remedy = 'there is no noise under trust "none"', 'Use denoise = "none".'
    elif trust == "local" and v["privacy.unit"] == "example":
        what = 'with privacy.unit = "example" the noise is in the steps of each client, not in the sum'
        remedy = 'Use denoise = "none", or privacy.trust = "central".'
    elif trust == "local" and mechanism not in (None, "gaussian"):
        what = f"mechanism {literal(mechanism)} adds no Gaussian noise, whose size the server would know"
        remedy = 'Use denoise = "none", or mechanism = "gaussian".'
    if what:
        yield Finding(("server", "denoise"), what, remedy, literal(how))


DENOISE_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (denoising_knows_the_noise,)
