"""Labels of a comparison's arms, cells, mechanisms and noise."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.envelope import Arm
from fedprivacy.mechanisms import registry
from fedprivacy.report import words

NOISE = (
    "Noise multiplier: the standard deviation of the noise, divided by the clipping norm; where bands of "
    "rounds share noise, of what is drawn. An epsilon a message, or a bit, is what one message, or one bit "
    "of it, costs alone, at delta 0."
)

REQUESTS = {"auto": "best mechanism (auto)", "all-counts": "all counts"}  # keys that are no mechanism's name


def arm(arm: Arm) -> str:
    """The label of one arm of a comparison.

    >>> arm(Arm("central")), arm(Arm("local", "gaussian")), arm(Arm("local", "auto"))
    ('Central', 'Local, Gaussian', 'Local, best mechanism (auto)')
    """
    return trust(arm) + ("" if arm.mechanism is None else f", {mechanism_label(arm.mechanism)}")


def trust(arm: Arm) -> str:
    """The trust model of an arm, with its unit where several are compared.

    >>> trust(Arm("central")), trust(Arm("local", "auto", unit="client"))
    ('Central', 'Local, unit client')
    """
    return words.trust(arm.trust) + ("" if arm.unit is None else f", unit {arm.unit}")


def arms(shown: Sequence[Arm], every: Sequence[Arm]) -> str:
    """Names several arms of one trust model; all of them share the name of the model or unit.

    >>> two = [Arm("local", "auto"), Arm("local", "gaussian", 1)]
    >>> arms(two, two), arms(two[1:], two)
    ('Local', 'Local, Gaussian')
    """
    for name in (_trust_alone, trust):
        labels = dict.fromkeys(map(name, shown))
        if len(labels) == 1 and set(shown) >= {each for each in every if name(each) in labels}:
            return name(shown[0])
    return "\n".join(map(arm, shown))


def _trust_alone(arm: Arm) -> str:
    return words.trust(arm.trust)


def mechanism_label(mechanism: str) -> str:
    """The label of the requested mechanism."""
    return REQUESTS.get(mechanism) or registry.title(mechanism)


def mechanism(name: str | None) -> str:
    """The label of the mechanism that ran; an em dash for none.

    >>> mechanism("privunit"), mechanism("sign-bits"), mechanism(None)
    ('PrivUnitG', 'Sign bits', '—')
    """
    return words.capital(registry.title(name)) if name and name != "none" else "—"


def noise(description: str | None, multiplier: float | None) -> str:
    """The amount of noise in the record's words; older records have only a multiplier."""
    if description is None and multiplier is not None:
        return f"noise multiplier {words.number(multiplier)}"
    return description or ""


def cell(drawn_arm: Arm, epsilon: float | None) -> str:
    """A cell of a comparison.

    >>> cell(Arm("local"), 4.0), cell(Arm("none"), None)
    ('Local, epsilon 4', 'No noise')
    """
    return arm(drawn_arm) + ("" if epsilon is None else f", epsilon {words.target(epsilon)}")
