"""Builds the results of a replay's document: attacks, ledgers and the joint verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.document import attack_document, over_targets, performance_figures
from fedprivacy.attacks.document_claims import (
    attack_claims,
    budget,
    frame_of,
    points_json,
    proved,
    trial_claims,
    verdict_of,
)
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import measure, points_of
from fedprivacy.attacks.one_run_epsilon import Guesses, lower_bound
from fedprivacy.attacks.strongest import Contender, strongest
from fedprivacy.attacks.targets import Targets
from fedprivacy.attacks.trials import Outcome, Without, success_rate
from fedprivacy.documents.attack import SEES_LESS, Attack, ModelAccuracy
from fedprivacy.documents.trial import TrialResult
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.accuracy import Trained, arms_document
from scenarios.attacks.scoring import AttackResult, Result, histogram

ResultsByRun = dict[tuple[int, int, str], Result]  # by the number of the variant, the seed, the attack
RoundsStarted = Mapping[tuple[int, int], int]  # by the number of the variant, the seed


def results(
    scenario: AttackScenario,
    plans: Sequence[Plan],
    results_by_run: ResultsByRun,
    trained: Trained | None = None,
    started: RoundsStarted | None = None,
) -> dict[str, Any]:
    """The document's entries for the attacks that all seeds have finished.

    Args:
        scenario: The scenario of the attacks.
        plans: Of each variant.
        results_by_run: What has finished.
        trained: How good the runs of arms are, as far as that was measured.
        started: After how many rounds attacks begin, of the runs that early stopping may have ended before.
    """
    started = started or {}
    variants = scenario.variants
    seeds = range(scenario.seed, scenario.seed + scenario.game.repeats)
    ledgers = [Ledger(plan).in_advance().to_json() for plan in plans]
    attacks, trials = [], []
    for number, variant in enumerate(variants):
        for name in variant.attacks:
            completed = [results_by_run.get((number, seed, name)) for seed in seeds]
            judged = [run for run in completed if isinstance(run, AttackResult)]
            repeated = [run for run in completed if isinstance(run, Outcome)]
            if len(judged) == len(seeds):
                stops = variant.server.patience is not None
                rounds = {started.get((number, seed)) if stops else variant.warm_up for seed in seeds}
                attacks.append(_attack(variant, name, number, judged, ledgers[number], plans[number], rounds))
            elif len(repeated) == len(seeds):
                trials.append(_in_trials(variant, name, number, repeated, ledgers[number], plans[number]))
    arms = {}
    if scenario.arms:
        epsilons = [budget(*pair) for pair in zip(variants, plans, strict=True)]
        best = [_strongest(variant, number, results_by_run, seeds) for number, variant in enumerate(variants)]
        arms["arms"] = arms_document(variants, plans, ledgers, epsilons, trained or {}, seeds, best)
    return {
        "attacks": attacks,
        **({"trials": trials} if trials else {}),
        **arms,
        **({"exposures": exposures} if (exposures := _exposures(scenario, results_by_run)) else {}),
        "plans": [plan.to_json() for plan in plans],
        "ledgers": ledgers,
        "verdict": verdict_of(variants, attacks, trials, ledgers).to_json(),
        **frame_of(scenario, trials),
    }


def _in_trials(
    variant: AttackScenario,
    name: str,
    number: int,
    runs: Sequence[Outcome],
    ledger: Mapping[str, Any],
    plan: Plan,
) -> dict[str, Any]:
    counts = [(run.successes, run.trials) for run in runs]
    accuracies = [run.accuracy for run in runs if run.accuracy is not None]
    honest = [run.without for run in runs if run.without is not None]
    without = None
    if honest:
        rates = success_rate([(run.successes, run.trials) for run in honest])
        names = honest[0].figures
        figures = {key: over_targets([run.figures[key] for run in honest]) for key in names}
        without = Without(rates, figures, sum(run.trials for run in honest))
    return TrialResult.new(
        **trial_claims(variant, name, number, plan, ledger, counts, without),
        seeds=len(runs),
        runs=[
            {
                "successes": run.successes,
                "trials": run.trials,
                **({} if run.without is None else {"without": run.without.successes}),
                **({"scored_again": run.scored_again} if run.scored_again else {}),
            }
            for run in runs
        ],
        figures={key: _mean_of([run.figures[key] for run in runs]) for key in runs[0].figures},
        **({"model_accuracy": ModelAccuracy.new(before=float(np.mean(accuracies)))} if accuracies else {}),
        numbers={key: float(np.mean([run.numbers[key] for run in runs])) for key in runs[0].numbers},
        **_pictures(variant, runs[0]),
        seconds=round(sum(run.seconds for run in runs), 3),
    ).to_json()


def _pictures(variant: AttackScenario, run: Outcome) -> dict[str, Any]:
    """The pictures of one run: training data, and the operator's unless the records are public."""
    if not run.pictures:
        return {}
    public = getattr(variant.data, "public", False)
    return {"public_pictures" if public else "pictures": [vars(picture).copy() for picture in run.pictures]}


def _attack(
    variant: AttackScenario,
    name: str,
    number: int,
    runs: Sequence[AttackResult],
    ledger: Mapping[str, Any],
    plan: Plan,
    started: set[int | None],
) -> dict[str, Any]:
    attack = variant.attacks[name]
    guesses, delta = _guesses(runs), variant.privacy.delta or 0.0
    figures = attack_document(
        [measure(run.chosen) for run in runs],
        bound=bound_of_ledger(ledger, attack.seat),
        empirical=guesses if isinstance(guesses, str) else lower_bound(guesses, delta),
    )
    accuracies = np.array([run.accuracy for run in runs])
    claims = {
        **figures,
        **attack_claims(variant, name, number, plan, ledger),
        **({} if isinstance(guesses, str) else proved(guesses, delta)),
    }
    return Attack.new(
        observed=_observed(started, runs[0]),
        rounds_refused=len(attack.watched) - len(runs[0].observed) if attack.watched else None,
        targets_lost=sum(run.lost for run in runs),
        **claims,
        score=[name for run in runs for name in run.score],
        single_score=[run.single_score for run in runs],
        supervised=_supervised(runs, arms=bool(variant.arm)),
        scores={key: _mean_of([run.scores[key] for run in runs]) for key in runs[0].scores},
        histograms=_histograms(runs),
        stories=[run.story for run in runs] if runs[0].story else None,
        blind=_mean_of([run.blind for run in runs]),
        model_accuracy=ModelAccuracy.new(
            before=float(accuracies[:, 0].mean()),
            after=float(accuracies[:, 1].mean()),
            **_trained(runs),
        ),
        seconds=round(sum(run.seconds for run in runs), 3),
    ).to_json()


def _supervised(runs: Sequence[AttackResult], *, arms: bool) -> dict[str, Any]:
    """The figures of `supervised`, which may be stronger than the scores that were chosen."""
    figures = [measure(run.supervised) for run in runs]
    # In a game of arms it may be the reported attack, so it is checked against the bound too.
    points = {"points": points_json(points_of(figures))} if arms else {}
    return {**performance_figures(figures), **points}


def _strongest(
    variant: AttackScenario, number: int, results_by_run: ResultsByRun, seeds: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """The strongest attack at each seat of an arm at an epsilon, of those that all seeds have finished."""
    by_seat = {}
    for seat, visible in SEES_LESS.items():
        contenders: dict[Contender, list[Targets]] = {}
        # Its own attacks go first where two are as good.
        for of in visible:
            for name in (name for name, attack in variant.attacks.items() if attack.seat == of):
                completed = [results_by_run.get((number, seed, name)) for seed in seeds]
                runs = [run for run in completed if isinstance(run, AttackResult)]
                if len(runs) == len(seeds):
                    contenders[Contender(name, of, supervised=False)] = [run.chosen for run in runs]
                    contenders[Contender(name, of, supervised=True)] = [run.supervised for run in runs]
        if contenders:
            best = strongest(contenders)
            attacks = [{**asdict(contender), "folds": folds} for contender, folds in best.folds.items()]
            by_seat[seat] = {"attacks": attacks, **performance_figures(best.runs)}
    return by_seat


def _trained(runs: Sequence[AttackResult]) -> dict[str, float]:
    """The accuracy of the attacked models on their training records, if measured."""
    accuracies = [run.train_accuracy for run in runs if run.train_accuracy is not None]
    return {"train": float(np.mean(accuracies))} if accuracies else {}


def _exposures(scenario: AttackScenario, results_by_run: ResultsByRun) -> list[dict[str, Any]]:
    """The exposure by each LiRA attack: of the first run, with references without privacy."""
    runs_of_attack = ((name, results_by_run.get((0, scenario.seed, name))) for name in scenario.attacks)
    return [
        {"attack": name, **run.exposure}
        for name, run in runs_of_attack
        if isinstance(run, AttackResult) and run.exposure
    ]


def _histograms(runs: Sequence[AttackResult]) -> list[dict[str, Any]]:
    """Histograms of the scores of each run, with the same edges if all have the same score."""
    together = np.concatenate([run.scores_of[kind] for run in runs for kind in run.scores_of])
    same = len({max(run.score, key=run.score.count) for run in runs}) == 1
    return [histogram(run.scores_of, together if same else None) for run in runs]


def _observed(started: set[int | None], run: AttackResult) -> dict[str, int] | None:
    """The rounds that a passive attack saw; 1 is the first of training.

    Attacks see the same rounds of every seed, counted from where they begin. None where seeds differ in that.
    """
    warm_up = next(iter(started)) if len(started) == 1 else None
    if not run.observed or warm_up is None:
        return None
    first, last = (warm_up + 1 + number for number in (run.observed[0], run.observed[-1]))
    return {"first": first, "last": last, "count": len(run.observed)}


def _guesses(runs: Sequence[AttackResult]) -> Guesses | str:
    """The guesses of all runs together, or why they prove nothing."""
    total = Guesses(0, 0, 0)
    for run in runs:
        if isinstance(run.guesses, str):
            return run.guesses
        total += run.guesses
    return total


def _mean_of(figures: Sequence[Figure]) -> dict[str, float]:
    mean = over_targets(figures)
    return {"value": mean.value, "low": mean.low, "high": mean.high}
