"""The part of a replay's document that says what was found: attacks, ledgers, the verdict on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedprivacy.accounting.ledger import Ledger
from fedprivacy.accounting.statement import guarantees
from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.document import attack_document, told_figures
from fedprivacy.attacks.empirical import Guesses, lower_bound
from fedprivacy.attacks.metrics import points_of
from fedprivacy.attacks.verdict import Case, Verdict, verdict
from fedprivacy.audit import LowerBound
from fedprivacy.plan import Plan
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.sections import Ascent, Passive, Released
from scenarios.judging import Judged, histogram
from scenarios.trained import BY_ARM, Trained, arms_document

Played = dict[tuple[int, int, str], Judged]  # by the number of the variant, the seed, the attack
Begun = Mapping[tuple[int, int], int]  # by the number of the variant, the seed
GAME = (
    "Each record of the victim and of the public part is a member by a fair coin of its own; the victim "
    "trains on its members, nobody on the others. Scores and thresholds are chosen on one half of the "
    "targets and measured on the other. An empirical epsilon is of the targets alone that were drawn blind "
    "to membership, whose coins are still fair; it holds at its confidence for each attack by itself."
)
BRANCHES = (
    "Each attack goes on from where training ended, with noise of its own, and spends rounds: what clients "
    "answered to one attack is spent for those after it, so that the guarantee of a run covers all attacks "
    "on it together. Several runs (seeds, epsilons) are several releases."
)
TRANSCRIPTS = (
    "The folders `seen` hold what the attackers saw, raw updates among it: they are as sensitive as the data."
)


RELEASED = (
    "An attacker of the released model has that model alone. It knows the records of the training data and "
    "their labels, how models are trained on them, and records that nobody trains on, but neither whose a "
    "record is nor who is a member. Each of its reference models is trained on a half of these records that "
    "its own coins drew, in one place and without noise."
)


def results(
    scenario: AttackScenario,
    plans: Sequence[Plan],
    played: Played,
    trained: Trained | None = None,
    begun: Begun | None = None,
) -> dict[str, Any]:
    """What the document says of the attacks that all seeds have finished.

    Args:
        scenario: What was asked for.
        plans: Of each variant.
        played: What has finished.
        trained: How good the runs of arms are, as far as that was measured.
        begun: After how many rounds attacks begin, of the runs that early stopping may have ended before.
    """
    begun = begun or {}
    variants = scenario.variants
    seeds = range(scenario.seed, scenario.seed + scenario.game.repeats)
    ledgers = [Ledger(plan).in_advance().to_json() for plan in plans]
    attacks = [
        _attack(
            variant,
            name,
            number,
            [played[number, seed, name] for seed in seeds],
            ledgers[number],
            plans[number],
            {variant.warm_up if variant.server.patience is None else begun.get((number, s)) for s in seeds},
        )
        for number, variant in enumerate(variants)
        for name in variant.attacks
        if all((number, seed, name) in played for seed in seeds)
    ]
    looked = any(isinstance(one, Released) for one in scenario.attacks.values())
    stored = [TRANSCRIPTS] * scenario.game.transcripts + [RELEASED] * looked
    arms = {}
    if scenario.arms:
        epsilons = [budget(*one) for one in zip(variants, plans, strict=True)]
        arms["arms"] = arms_document(variants, plans, ledgers, epsilons, trained or {}, seeds)
    return {
        "attacks": attacks,
        **arms,
        **({"exposures": exposures} if (exposures := _exposures(scenario, played)) else {}),
        "ledgers": ledgers,
        "verdict": _verdict(scenario, attacks, ledgers, played).to_json(),
        "notes": [GAME, BRANCHES, *([BY_ARM] if arms else []), *stored],
    }


def _verdict(
    scenario: AttackScenario,
    attacks: Sequence[Mapping[str, Any]],
    ledgers: Sequence[Mapping[str, Any]],
    played: Played,
) -> Verdict:
    """All attacks together against their bounds."""
    cases, variants = [], scenario.variants
    for attack in attacks:
        runs = [
            one for (at, _, name), one in played.items() if (at, name) == (attack["ledger"], attack["name"])
        ]
        kept = f" ({variants[attack['ledger']].label})" if len(variants) > 1 else ""
        bound = bound_of_ledger(ledgers[attack["ledger"]], attack["seat"])
        points = points_of([run.measured for run in runs])
        learned = [run.supervised for run in runs if run.supervised is not None]
        if scenario.arms and len(learned) == len(runs):  # there it may be told beside the bound
            points.update({f"{at}, supervised": counts for at, counts in points_of(learned).items()})
        cases.append(Case(f"{attack['name']}{kept}", bound, points))
    return verdict(cases)


def _attack(
    variant: AttackScenario,
    name: str,
    number: int,
    runs: Sequence[Judged],
    ledger: Mapping[str, Any],
    plan: Plan,
    begun: set[int | None],
) -> dict[str, Any]:
    attack = variant.attacks[name]
    guarantee = next(one for one in guarantees(ledger) if one.observer == attack.seat)
    figures = attack_document(
        [run.measured for run in runs],
        bound=bound_of_ledger(ledger, attack.seat),
        empirical=_empirical(runs, variant.privacy.delta or 0.0),
    )
    accuracies = np.array([run.accuracy for run in runs])
    return {
        "name": name,
        **({"arm": variant.arm} if variant.arm else {}),
        "attack": attack.kind,
        "seat": attack.seat,
        "isolating": attack.isolating,
        "trust": variant.privacy.trust,
        "mechanism": None if plan.mechanism is None else plan.mechanism.name,
        "epsilon": budget(variant, plan),
        "ledger": number,
        "targets_per_round": attack.targets_per_round if isinstance(attack, Ascent) else None,
        "rounds": attack.played(variant.game.members + variant.game.nonmembers) or None,
        "observed": _observed(begun, runs[0]),
        "rounds_refused": attack.rounds - len(runs[0].observed) if isinstance(attack, Passive) else None,
        "targets_lost": sum(run.lost for run in runs),
        **figures,
        "score": [run.score for run in runs],
        "calibration_auc": float(np.mean([run.calibration_auc for run in runs])),
        **_supervised(runs),
        "scores": {key: _mean_of([run.scores[key] for run in runs]) for key in runs[0].scores},
        "histograms": _histograms(runs),
        "story": [run.story for run in runs] if runs[0].story else None,
        "blind": _mean_of([run.blind for run in runs]),
        "model_accuracy": {
            "before": float(accuracies[:, 0].mean()),
            "after": float(accuracies[:, 1].mean()),
            **_trained(runs),
        },
        "guarantee": guarantee.to_json(),
        "seconds": round(sum(run.seconds for run in runs), 3),
    }


def _supervised(runs: Sequence[Judged]) -> dict[str, Any]:
    """The figures of `supervised`, which may be stronger than the score that was chosen."""
    figures = [run.supervised for run in runs if run.supervised is not None]
    areas = [run.supervised_calibration_auc for run in runs if run.supervised_calibration_auc is not None]
    if not len(figures) == len(areas) == len(runs):
        return {}  # cells of an earlier version
    return {"supervised": {**told_figures(figures), "calibration_auc": float(np.mean(areas))}}


def _trained(runs: Sequence[Judged]) -> dict[str, float]:
    """The accuracy of the attacked models on what they were trained on, where it was measured."""
    found = [run.train_accuracy for run in runs if run.train_accuracy is not None]
    return {"train": float(np.mean(found))} if found else {}


def _exposures(scenario: AttackScenario, played: Played) -> list[dict[str, Any]]:
    """Whose records each attack by LiRA tells: of the first run, whose references know of no privacy."""
    found = ((name, played.get((0, scenario.seed, name))) for name in scenario.attacks)
    return [{"attack": name, **one.exposure} for name, one in found if one and one.exposure]


def budget(variant: AttackScenario, plan: Plan) -> float | None:
    """The epsilon of a run: of its scenario, or where that gives the noise what it costs; None without."""
    if variant.privacy.trust == "none":
        return None
    return variant.privacy.epsilon or plan.spent().epsilon


def _histograms(runs: Sequence[Judged]) -> list[dict[str, Any]]:
    """How the scores of each run lie; with the same edges where it is the same score in all."""
    together = np.concatenate([run.scores_of[kind] for run in runs for kind in run.scores_of])
    same = len({run.score for run in runs}) == 1
    return [histogram(run.scores_of, together if same else None) for run in runs]


def _observed(begun: set[int | None], run: Judged) -> dict[str, int] | None:
    """The rounds that a passive attack saw; 1 is the first of training.

    Attacks see the same rounds of every seed, counted from where they begin. None where seeds differ in that.
    """
    warm_up = next(iter(begun)) if len(begun) == 1 else None
    if not run.observed or warm_up is None:
        return None
    first, last = (warm_up + 1 + number for number in (run.observed[0], run.observed[-1]))
    return {"first": first, "last": last, "count": len(run.observed)}


def _empirical(runs: Sequence[Judged], delta: float) -> LowerBound | str:
    """What the guesses of all runs prove together, or why they cannot."""
    total = Guesses(0, 0, 0)
    for run in runs:
        if isinstance(run.guesses, str):
            return run.guesses
        total += run.guesses
    return lower_bound(total, delta)


def _mean_of(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in figures])) for key in ("value", "low", "high")}
