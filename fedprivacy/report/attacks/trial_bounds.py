"""What the bound on each attack in trials follows from, or why it has none."""

from __future__ import annotations

from collections.abc import Iterable

from fedprivacy.attacks.trials import TrialAttack
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.trial import TrialResult
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.scenario.attack.registry import ATTACK_KINDS


def texts(document: ReplayDocument) -> list[str]:
    """One sentence for all results of an attack whose bounds have the same assumptions."""
    groups: dict[tuple[str, bool, tuple[str, ...]], list[TrialResult]] = {}
    for trial in document.trials:
        bounded = trial.bound.success is not None
        known = trial.guarantee.assumptions if bounded and trial.guarantee else ()
        steps = tuple(text for text in trial.bound.assumptions if text not in known)
        groups.setdefault((trial.name, bounded, steps), []).append(trial)
    return [
        _follows(document, trials, steps) if bounded else _lacking(document, trials, steps)
        for (_, bounded, steps), trials in groups.items()
        if bounded or steps
    ]


def _follows(document: ReplayDocument, trials: list[TrialResult], steps: Iterable[str]) -> str:
    bases = dict.fromkeys(trial.bound.basis for trial in trials if trial.bound.basis)
    basis = f" ({'; '.join(bases)})" if bases else ""
    if provided := "; ".join(steps):
        provided = f", provided that {provided}"
    claim = f"the guarantee against {figures.seat(trials[0].seat)}"
    return f"The {_noun(trials)} {_against(document, trials)} follows from {claim}{basis}{provided}."


def _lacking(document: ReplayDocument, trials: list[TrialResult], reasons: Iterable[str]) -> str:
    return f"There is no {_noun(trials)} {_against(document, trials)}: {'; '.join(reasons)}."


def _noun(trials: list[TrialResult]) -> str:
    kind = ATTACK_KINDS.get(trials[0].attack)
    return kind.bound_noun if kind is not None and issubclass(kind, TrialAttack) else "bound"


def _against(document: ReplayDocument, trials: list[TrialResult]) -> str:
    """The attack, and the arms and privacy levels of the results where the page has several."""
    if not (document.several or document.arms):
        return f"on {trials[0].name}"
    places = dict.fromkeys(map(_place, trials))
    return f"on {trials[0].name} ({words.listed(places)})"


def _place(trial: TrialResult) -> str:
    if not trial.arm:
        return levels.name(trial.level)
    return f"{trial.arm} {levels.at(trial.level)}" if isinstance(trial.level, float) else trial.arm
