"""Audits and attacks as plans of an account: what the runs that they make release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from fedprivacy.account.entry import Ledgers, PlannedWork
from fedprivacy.account.largest import Fits, Suggest
from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.errors import InputError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch, branches_of
from fedprivacy.scenario.loading import loads
from scenarios.budgets.operator_claims import as_operators
from scenarios.budgets.planned_work import as_options, settings_of, training_work, with_rounds

# Why nothing is claimed against the server.
_REHEARSES = "an audit trains without noise too, which the server sees"
_JUDGES = "attacks are judged by the true records at the server"
_REMEDY = "Give a smaller epsilon: privacy.epsilon or game.epsilons."


def audit_works(
    scenario: Scenario, plan: Plan, people: Population, code: str, *, canaries: int, trials: int
) -> list[PlannedWork]:
    """Returns what the trials of an audit release, each with a seed of its own.

    Args:
        scenario: The audited scenario, with the seed of the first trial.
        plan: Its plan.
        people: Its clients.
        code: The digest of its model's code (`ModelSpec.code`).
        canaries: How many clients are added.
        trials: How many there are.
    """
    works = []
    for seed in range(scenario.seed, scenario.seed + trials):
        seeded = scenario.model_copy(update={"seed": seed})
        key = f"{run_streams(seeded, people, code).run}/audit/{canaries}"
        work = _trial(seeded, plan, people, key, canaries)
        works.append(_with_options(work, seeded, plan, " --trials 1" if trials > 1 else ""))
    return [as_operators(work, "audit", _REHEARSES) for work in works]


def _trial(scenario: Scenario, plan: Plan, people: Population, key: str, canaries: int) -> PlannedWork:
    def ledgers(rounds: int) -> Ledgers:
        smaller = loads(scenario.to_toml(), scenario.name, settings_of(scenario, [with_rounds(plan, rounds)]))
        assert isinstance(smaller, Scenario)
        return training_work(smaller, audited_plan(plan_of(smaller), canaries), people, key).ledgers

    work = training_work(scenario, audited_plan(plan, canaries), people, key)
    return replace(work, ledgers_of_settings=ledgers)


def _with_options(work: PlannedWork, scenario: Scenario, plan: Plan, more: str) -> PlannedWork:
    """The work with the options of its smaller plans, and further ones of the command."""

    def settings(rounds: int) -> str:
        return as_options(settings_of(scenario, [with_rounds(plan, rounds)])) + more

    return replace(work, settings=settings)


def fewer_trials(trials: int) -> Suggest:
    """Names the largest number of trials of an audit that fits."""

    def suggest(fits: Fits) -> str:
        fit = _most(trials, lambda count: fits(range(count)))
        return f"The largest audit that fits: --trials {fit}." if fit else ""

    return suggest


def fewer_runs(scenario: AttackScenario) -> Suggest:
    """Names the repeats of a replay that fit, and where not even one of each epsilon does, the epsilons."""
    game, variants = scenario.game, scenario.variants

    def runs(chosen: Sequence[int], count: int) -> list[int]:
        return [variant * game.repeats + repeat for variant in chosen for repeat in range(count)]

    def suggest(fits: Fits) -> str:
        options: list[str] = []
        chosen: list[int] = [*range(len(variants))]
        if not fits(runs(chosen, 1)):
            if scenario.arms:
                return "No smaller replay of these arms is known. Leave out arms, or attack each by itself."
            strict = sorted(chosen, key=lambda number: variants[number].privacy.epsilon or math.inf)
            chosen = []
            for number in strict:
                if fits(runs([*chosen, number], 1)):
                    chosen.append(number)
            if not chosen:
                return ""
            if game.epsilons:
                epsilons = [variants[number].privacy.epsilon for number in chosen]
                options.append(f"game.epsilons={epsilons}")
            options += [f"game.{level}=false" for level in ("clipped", "unprotected") if getattr(game, level)]
        fit = _most(game.repeats + 1, lambda count: fits(runs(chosen, count)))
        return f"The largest replay that fits{as_options([*options, f'game.repeats={fit}'])}."

    return suggest


def _most(too_many: int, fits: Callable[[int], bool]) -> int:
    """The largest number below another that fits, if each smaller one does too; 0: none."""
    fit = 0
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        fit, too_many = (middle, too_many) if fits(middle) else (fit, middle)
    return fit


def attack_works(runs: Sequence[tuple[AttackScenario, Plan, str]], people: Population) -> list[PlannedWork]:
    """Returns what the attacked runs of a replay release.

    Args:
        runs: Of each its scenario with its seed, its plan, and the key of its noise.
        people: The clients before a game is drawn.

    Raises:
        InputError: the plan of a run does not cover its attacks.
    """
    for scenario, _, _ in runs:
        _check_attacks(scenario)
    works = []
    for scenario, plan, key in runs:
        work = replace(training_work(scenario, plan, people, key), name=scenario.name, remedy=_REMEDY)
        work = replace(work, first=None, ledgers_of_settings=None)
        works.append(as_operators(work, "attacks", _JUDGES))
    return works


def _check_attacks(scenario: AttackScenario) -> None:
    """Refuses attacks that release more than the plan of the run that they attack.

    A passive attack observes rounds of the run itself. Others send requests of their own, and two branches
    continue from the same models with the same cohorts. Public records of a defence or of early stopping are
    those that the game does not judge, which depends on the duplicates among all clients' records.

    Raises:
        InputError: an attack is none of these, there are several branches, or the run uses public records.
    """
    if scenario.training.adversarial is not None or scenario.server.patience is not None:
        raise InputError(
            "--account: training.adversarial and server.patience use the public records that a game leaves, "
            "and these depend on clients' records. Leave them out."
        )
    game = scenario.game
    branches = branches_of(scenario.attacks, game.members + game.nonmembers)
    requesting = [branch for branch in branches if not branch.silent]
    other = next((branch for branch in requesting if not _is_covered(branch)), None)
    if other is not None:
        raise InputError(
            f"--account: attacks.{other.names[0]} sends requests that the run's plan does not cover. Name the"
            " passive attacks and those on the released model: --attack NAME."
        )
    if len(requesting) > 1:
        names = " and ".join(branch.names[0] for branch in requesting)
        raise InputError(
            f"--account: {names} each continue the run from the same models, and no event covers both "
            "together. Attack from one seat: --attack NAME."
        )


def _is_covered(branch: Branch) -> bool:
    attack = branch.attack
    return not attack.active and bool(attack.watched) and not attack.isolating
