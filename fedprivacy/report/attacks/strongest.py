"""The strongest attack at each seat of each arm, chosen on other records than it is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.attack import ArmResult, Attack, Bound
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, headline, levels
from fedprivacy.report.charts.looks import LOOKS, MORE, Look

SEATS = ("server", "participant", "outsider")
# An observer that sees more can run the attacks of one that sees less: final model, global models, updates.
SEES_LESS = {"server": SEATS, "participant": SEATS[1:], "outsider": SEATS[2:]}
CHOSEN = (
    "The strongest attack at a seat is the one with the largest AUC on the calibration half of the targets, "
    "the mean over all runs; each attack competes twice, with the score that was chosen for it there and "
    "supervised, with a logistic regression on all its scores. Its AUC is that on the other half, on "
    "which nothing was chosen, so that no interval is flattered by taking the largest of several; both "
    "halves are of the same runs. An observer that sees more can run the attacks of one that sees less: a "
    "participant those of an outsider, the server all. Each interval holds by itself."
)

WHO = {
    "central": "the server adds noise",
    "local": "each client adds noise",
    "distributed": "each client adds a share of the noise, in a secure sum",
}


@dataclass(frozen=True)
class Reached:
    """The strongest result of one seat in one arm at one epsilon.

    Args:
        arm: The arm.
        seat: The attacker's seat.
        best: The result with the strongest attack there; None where none was run.
    """

    arm: ArmResult
    seat: str
    best: Attack | None

    @property
    def bound(self) -> Bound:
        """The most that any attack can reach."""
        return self.arm.bounds.get(self.seat, Bound())

    @property
    def hidden(self) -> bool:
        """Whether the strongest attack does not differ from guessing; unknown where too few were attacked."""
        best = self.best
        return best is not None and bool(headline.telling(best.auc)) and not figures.from_guessing(best.auc)

    @property
    def name(self) -> str:
        """The attack, with its seat where that is another one, which sees less."""
        if self.best is None:
            return "none was run"
        return self.best.name if self.best.seat == self.seat else f"{self.best.name} (as {self.best.seat})"


def reached(document: ReplayDocument) -> dict[str, list[Reached]]:
    """By seat, each arm at each epsilon in the document's order."""
    return {
        seat: [Reached(arm, seat, _best(document.attacks, arm, seat)) for arm in document.arms]
        for seat in SEATS
    }


def label(arm: ArmResult) -> str:
    """An arm at its level of privacy.

    >>> label(ArmResult(arm="central", trust="central", epsilon=8.0))
    'central, epsilon 8'
    >>> label(ArmResult(arm="bare", trust="none"))
    'bare, no privacy'
    """
    return f"{arm.arm}, {levels.name(arm.level)}"


def looks(document: ReplayDocument) -> dict[str, Look]:
    """The style of each arm: the trust model's usual one for its first arm, others for the rest."""
    looks_of_arms: dict[str, Look] = {}
    taken: set[str] = set()
    more = [*MORE, LOOKS["distributed"]]
    for arm in document.arms:
        if arm.arm in looks_of_arms:
            continue
        color, marker, line = LOOKS.get(arm.trust, LOOKS["none"])
        if arm.trust in taken:
            looks_of_arms[arm.arm] = more[(len(looks_of_arms) - len(taken)) % len(more)]
        else:
            looks_of_arms[arm.arm] = (color, marker or "d", line)
        taken.add(arm.trust)
    return looks_of_arms


def promise(arm: ArmResult, *, short: bool = False) -> str:
    """The description of an arm: its noise, its unit, and the change that it protects from."""
    if arm.trust == "none":
        return "clipping alone, no epsilon" if arm.mechanism else "no noise"
    who = WHO.get(arm.trust, arm.trust)
    return f"{who}; unit {arm.unit}" + ("" if short else f", {arm.adjacency}")


def terms(document: ReplayDocument) -> str:
    """The terms of every epsilon; empty without any."""
    text = words.terms([g for arm in document.arms for g in arm.guarantees])
    return f"Epsilon is that of an arm's run, at {text}, against whom it holds." if text else ""


def _best(attacks: Sequence[Attack], arm: ArmResult, seat: str) -> Attack | None:
    candidates = [
        attack
        for attack in attacks
        if (attack.arm, attack.level) == (arm.arm, arm.level) and attack.seat in SEES_LESS[seat]
    ]
    # Its own attacks go first where two are as good.
    candidates.sort(key=lambda attack: SEES_LESS[seat].index(attack.seat))
    candidates = [candidate for attack in candidates for candidate in (attack, *_learned(attack))]
    return max(candidates, key=lambda attack: attack.calibration_auc or 0.0, default=None)


def _learned(attack: Attack) -> list[Attack]:
    """The same attack, learned from all its scores; none where the document does not have it.

    Each target of the calibration half is scored by a model that did not see it: its AUC there is honest.
    """
    if attack.supervised is None:
        return []
    figures = {name: getattr(attack.supervised, name) for name in type(attack.supervised).model_fields}
    return [attack.model_copy(update={**figures, "name": f"{attack.name}, supervised"})]
