"""Audits and attacks as plans of an account: what the runs that they make release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.largest import Fits, Suggest
from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.errors import InputError
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.branches import Branch, branches_of
from scenarios.budgets.operator_claims import as_operators
from scenarios.budgets.planned_work import training_work

# Why nothing is claimed against the server.
_REHEARSES = "an audit trains without noise too, which the server sees"
_JUDGES = "attacks are judged by the true records at the server"


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
        works.append(training_work(seeded, audited_plan(plan, canaries), people, key))
    return [as_operators(work, "audit", _REHEARSES) for work in works]


def fewer_trials(trials: int) -> Suggest:
    """Words how many trials of an audit fit."""

    def suggest(fits: Fits) -> str:
        fit, too_many = 0, trials
        while too_many - fit > 1:
            middle = (fit + too_many) // 2
            fit, too_many = (middle, too_many) if fits(range(middle)) else (fit, middle)
        return f"The largest audit that fits: --trials {fit}." if fit else ""

    return suggest


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
    return [
        replace(
            as_operators(training_work(scenario, plan, people, key), "attacks", _JUDGES),
            name=scenario.name,
            first=None,
            ledgers_of_settings=None,
        )
        for scenario, plan, key in runs
    ]


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
    asking = [branch for branch in branches if not branch.silent]
    other = next((branch for branch in asking if not _is_covered(branch)), None)
    if other is not None:
        raise InputError(
            f"--account: attacks.{other.names[0]} sends requests that the run's plan does not cover. Name the"
            " passive attacks and those on the released model: --attack NAME."
        )
    if len(asking) > 1:
        names = " and ".join(branch.names[0] for branch in asking)
        raise InputError(
            f"--account: {names} each continue the run from the same models, and no event covers both "
            "together. Attack from one seat: --attack NAME."
        )


def _is_covered(branch: Branch) -> bool:
    attack = branch.attack
    return not attack.active and bool(attack.watched) and not attack.isolating
