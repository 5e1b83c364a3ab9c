"""The parts of a replay's document that its scenario and plans decide, and what its counts amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.one_run_epsilon import Guesses, lower_bound
from fedprivacy.attacks.roc import Counts
from fedprivacy.attacks.targets import FOLDS
from fedprivacy.attacks.trials import Without, success_rate, trials_of
from fedprivacy.attacks.verdict import Case, TrialCase, Verdict, verdict
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.guarantees.statement import SEES, guarantees
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import PoissonSampling
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.sections import Attack

BOUNDS = ("advantage", "balanced_accuracy", "auc", "tpr_at_fpr", "basis")
POOL = "Each record of the victim and of the public part is a member by a fair coin of its own"
POOL_OF_USER = "Each record of the victim is a member by a fair coin of its own"
GAME = (
    "; the victim trains on its members, nobody on the others. The targets are dealt to folds, and each "
    "fold is measured by scores, thresholds and models that were chosen and fitted on the others. What is "
    "held against a bound, and an empirical epsilon, needs counts that do not depend on each other: it "
    "fits on the first folds and counts on the last. An empirical epsilon is of the targets alone that "
    "were drawn blind to membership, whose coins are still fair: on these alone it counts, and chooses "
    "one of the scores that are not fitted to memberships. It holds at its confidence for each attack by "
    "itself."
)
BRANCHES = (
    "Each attack goes on from where training ended, with noise of its own, and spends rounds: what clients "
    "answered to one attack is spent for those after it, so that the guarantee of a run covers all attacks "
    "on it together. Several runs (seeds, epsilons) are several releases."
)
TRANSCRIPTS = (
    "The folders `seen` hold what the attackers saw, raw updates among it: they are as sensitive as the data."
)
SCORED_AGAIN = (
    "Trials with `scored_again` were observed for another attack, in the transcript of that name: settings "
    "may have been chosen after their outcome. Interval and bound hold for settings that were chosen before, "
    "and the verdict leaves such trials out."
)
SUMS = (
    "A server that sees sums learns the sum of a round's clients, how many they are, and no update; of one "
    "client the sum is its update. It "
    "trains clients of its own on test records, from the model that it sent, and takes from the sum what "
    "these let it expect of the others. It takes the rounds that have the victim."
)
BY_ARM = (
    "Each arm plays the same game with the same coins. Each epsilon is that of one run of one arm alone; "
    "whoever sees several of them has seen several releases of the same people."
)


def budget(variant: AttackScenario, plan: Plan) -> float | None:
    """The epsilon of a run: of its scenario, or where that gives the noise what it costs; None without."""
    if variant.privacy.trust == "none":
        return None
    return variant.privacy.epsilon or plan.spent().epsilon


def frame_of(scenario: AttackScenario, results: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The entries of the document that concern all attacks: notes and operator-only fields.

    Args:
        scenario: The scenario.
        results: The attacks in trials, with `runs`.
    """
    pool = POOL_OF_USER if getattr(scenario.data, "partition", None) == "by-user" else POOL
    game = [pool + GAME] if scenario.membership_attacks else []
    trials = dict.fromkeys(attack.note for attack in trials_of(scenario).values())
    judging = [attack.note for attack in scenario.membership_attacks.values() if attack.note]
    sums = any(attack.in_sum for attack in scenario.attacks.values())
    seen = scenario.game.transcripts
    again = any(map(is_scored_again, results))
    stored = [TRANSCRIPTS] * seen + [SCORED_AGAIN] * again + list(dict.fromkeys(judging)) + [SUMS] * sums
    notes = [*game, *trials, BRANCHES, *([BY_ARM] if scenario.arms else []), *stored]
    return {"notes": notes, "operator_only": list(ReplayDocument.OPERATOR_ONLY)}


def is_scored_again(result: Mapping[str, Any]) -> bool:
    """Whether trials of an attack were observed by another one, with other settings."""
    return any(run.get("scored_again") for run in result["runs"])


def attack_claims(
    variant: AttackScenario, name: str, number: int, plan: Plan, ledger: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries of the document about an attack that do not depend on its scores.

    Args:
        variant: The scenario of the attacked runs.
        name: The attack's.
        number: That of the variant, and of its ledger.
        plan: Of the attacked runs.
        ledger: Theirs.
    """
    attack = variant.attacks[name]
    return {
        **_run_claims(variant, name, number, plan, ledger),
        "folds": FOLDS,
        "isolating": attack.isolating,
        **_of_sum(attack, plan, variant.federation.dropout),
        "targets_per_round": None,
        **attack.claims(),
        "bound": bound_of_ledger(ledger, attack.seat).to_json(),
    }


def trial_claims(
    variant: AttackScenario,
    name: str,
    number: int,
    plan: Plan,
    ledger: Mapping[str, Any],
    runs: Sequence[tuple[int, int]],
    without: Without | None = None,
) -> dict[str, Any]:
    """The entries of the document about an attack in trials that follow from its counts and its plan.

    Args:
        variant: The scenario of the attacked runs.
        name: The attack's.
        number: That of the variant, and of its ledger.
        plan: Of the attacked runs.
        ledger: Theirs.
        runs: Successes and trials of each run.
        without: The same trials without the attack, where its kind runs them.
    """
    attack = trials_of(variant)[name]
    compared = {} if without is None else {"without": without.to_json()}
    return {
        **_run_claims(variant, name, number, plan, ledger),
        "means": attack.success,
        "success": success_rate(runs).to_json(),
        "comparison": attack.comparison,
        "chance": attack.chance(without),
        **compared,
        "bound": attack.ceiling(ledger, variant, without).to_json(),
    }


def _run_claims(
    variant: AttackScenario, name: str, number: int, plan: Plan, ledger: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries of any attack about its seat and the attacked runs."""
    attack = variant.attacks[name]
    guarantee = next(stated for stated in guarantees(ledger) if stated.observer == attack.seat)
    return {
        "name": name,
        **({"arm": variant.arm} if variant.arm else {}),
        "attack": attack.kind,
        "seat": attack.seat,
        "trust": variant.privacy.trust,
        "mechanism": None if plan.mechanism is None else plan.mechanism.name,
        "epsilon": budget(variant, plan),
        "ledger": number,
        "rounds": attack.rounds_taken(variant.game.members + variant.game.nonmembers) or None,
        "guarantee": guarantee.to_json(),
    }


def _of_sum(attack: Attack, plan: Plan, dropout: float) -> dict[str, int]:
    """How many clients an observed sum has on average; nothing for an attack that sees updates or models."""
    if not attack.in_sum:
        return {}
    # Attacks take rounds with the victim: of independent draws it is in the cohort beside the others' mean.
    drawn = plan.sampler.expected_cohort(plan.population)
    if isinstance(plan.sampler, PoissonSampling):
        drawn = 1 + plan.sampler.rate * (plan.population - 1)
    return {"clients_in_sum": max(1, round(drawn * (1 - dropout)))}


def proved(guesses: Guesses, delta: float) -> dict[str, Any]:
    """The guesses of an attack and the bounds that they prove, as entries of the document.

    Args:
        guesses: Of all runs together.
        delta: Of the claim.
    """
    bound = lower_bound(guesses, delta)
    return {
        "epsilon_lower_bound": bound.epsilon,
        "empirical_epsilon": {**asdict(bound), "guesses": asdict(guesses)},
    }


def arm_claims(
    variant: AttackScenario, number: int, plan: Plan, ledger: Mapping[str, Any], epsilon: float | None
) -> dict[str, Any]:
    """The entries of the document about an arm at an epsilon that do not depend on its runs.

    Args:
        variant: The scenario of its runs.
        number: That of the variant, and of its ledger.
        plan: Of its runs.
        ledger: Theirs.
        epsilon: The target, or the one spent (`budget`).
    """
    return {
        "arm": variant.arm,
        "trust": variant.privacy.trust,
        "mechanism": None if plan.mechanism is None else plan.mechanism.name,
        "unit": variant.privacy.unit,
        "adjacency": variant.privacy.adjacency,
        "epsilon": epsilon,
        "ledger": number,
        "rounds": variant.warm_up,
        "guarantees": [guarantee.to_json() for guarantee in guarantees(ledger)],
        "bounds": bounds_of(ledger),
        "skipped": dict(variant.skipped),
    }


def bounds_of(ledger: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By seat, the most that any attack can reach there; without the curve, which attacks have."""
    bounds = {seat: bound_of_ledger(ledger, seat).to_json() for seat in SEES}
    return {seat: {key: bound[key] for key in BOUNDS} for seat, bound in bounds.items()}


def verdict_of(
    variants: Sequence[AttackScenario],
    attacks: Sequence[Mapping[str, Any]],
    trials: Sequence[Mapping[str, Any]],
    ledgers: Sequence[Any],
) -> Verdict:
    """All attacks of a document together against their bounds.

    Args:
        variants: The scenarios of the attacked runs.
        attacks: As the document has them: with `points`, and where it may be shown with the bound, those of
            `supervised`.
        trials: The attacks in trials, with `runs` and `bound`.
        ledgers: Of the attacked runs.
    """
    cases: list[Case | TrialCase] = []
    again = []
    for attack in attacks:
        points = _points(attack["points"])
        learned = _points((attack.get("supervised") or {}).get("points") or {})
        points.update({f"{at}, supervised": counts for at, counts in learned.items()})
        bound = bound_of_ledger(ledgers[attack["ledger"]], attack["seat"])
        cases.append(Case(_labelled(attack, variants), bound, points))
    for attack in trials:
        if attack["bound"].get("provided"):
            continue  # of some attackers alone: a success above it refutes no guarantee
        if is_scored_again(attack):
            again.append(_labelled(attack, variants))
            continue
        successes, count = (sum(run[key] for run in attack["runs"]) for key in ("successes", "trials"))
        most = attack["bound"]["success"]
        measured = None
        if attack.get("without") is not None and most is not None:
            measured = partial(_allowed_at, attack, variants, ledgers)
        cases.append(TrialCase(_labelled(attack, variants), successes, count, most, measured))
    return verdict(cases, scored_again=again)


def _allowed_at(
    attack: Mapping[str, Any], variants: Sequence[AttackScenario], ledgers: Sequence[Any], error: float
) -> float | None:
    """The largest success by the trials without the attack, whose rate has an end with this error."""
    number, counts = attack["ledger"], [(run["without"], run["trials"]) for run in attack["runs"]]
    settings = trials_of(variants[number])[attack["name"]]
    without = Without(success_rate(counts, error), {}, sum(trials for _, trials in counts))
    return settings.ceiling(ledgers[number], variants[number], without).success


def _labelled(attack: Mapping[str, Any], variants: Sequence[AttackScenario]) -> str:
    """The name of an attack, with its variant where there are several."""
    suffix = f" ({variants[attack['ledger']].label})" if len(variants) > 1 else ""
    return f"{attack['name']}{suffix}"


def points_json(points: Mapping[str, Sequence[Counts]]) -> dict[str, list[dict[str, int]]]:
    """Operating points as a JSON object."""
    return {name: [counts.to_json() for counts in counted] for name, counted in points.items()}


def _points(stored: Mapping[str, Sequence[Mapping[str, int]]]) -> dict[str, list[Counts]]:
    return {name: [Counts(**counts) for counts in counted] for name, counted in stored.items()}
