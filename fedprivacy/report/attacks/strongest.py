"""The strongest attack at each seat of each arm, chosen on other targets than it is measured on."""

from __future__ import annotations

from dataclasses import dataclass

from fedprivacy.documents.attack import SEATS, ArmResult, Bound, Strongest
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, headline, levels
from fedprivacy.report.charts.looks import LOOKS, MORE, Look

CHOSEN = (
    "The strongest attack at a seat is chosen for each fold of the targets: the one with the largest AUC on "
    "the other folds, the mean over all runs; each attack competes twice, with the scores that were chosen "
    "for it there and supervised, with a logistic regression on all its scores. Its AUC is that of all "
    "folds, none of which helped to choose for itself, so that it is not flattered by taking the largest of "
    "several; its interval is widened, since folds choose for each other. All folds are of the same runs. An "
    "observer that sees more can run the attacks of one that sees less: a participant those of an outsider, "
    "the server all. Each interval holds by itself."
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
        best: The strongest attack there; None where none was run.
    """

    arm: ArmResult
    seat: str
    best: Strongest | None

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
        """The attacks that are strongest in some fold, with their seat where that is another one."""
        if self.best is None:
            return "none was run"
        several, folds = len(self.best.attacks) > 1, sum(each.folds for each in self.best.attacks)
        names = [
            each.name
            + (", supervised" if each.supervised else "")
            + ("" if each.seat == self.seat else f" (as {each.seat})")
            + (f" in {each.folds} of {folds} folds" if several else "")
            for each in self.best.attacks
        ]
        return "; ".join(names)


def reached(document: ReplayDocument) -> dict[str, list[Reached]]:
    """By seat, each arm at each epsilon in the document's order."""
    return {seat: [Reached(arm, seat, arm.strongest.get(seat)) for arm in document.arms] for seat in SEATS}


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
