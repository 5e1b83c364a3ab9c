"""Attacks as plans of an account: what is covered enters, and everything else is refused."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from fedprivacy.account.entering import create, enter
from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.largest import Suggest
from fedprivacy.account.policy import Policy
from fedprivacy.errors import InputError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import find
from scenarios.budgets.attack_works import attack_works, audit_works, fewer_runs, fewer_trials
from scenarios.budgets.planned_work import training_work

CENTRAL = (
    "privacy={trust='central', clipping_norm=1.0, epsilon=2.0, delta=1e-5}",
    "server.rounds=1000",
    "game.warm_up=20",
)
POLICY = Policy.of_options(8.0, 1e-5, "client", "replace-one")
KEY = "0" * 32


def attacks(*names: str, settings: tuple[str, ...] = CENTRAL) -> AttackScenario:
    scenario = cast(AttackScenario, load(find("active-gradient-ascent"), settings))
    chosen = {name: scenario.attacks[name] for name in names}
    return scenario.model_copy(update={"attacks": chosen})


def parts(scenario: AttackScenario) -> list[dict[str, Any]]:
    people, plan = population(scenario.data), plan_of(scenario)
    return [work.part(POLICY, KEY) for work in attack_works([(scenario, plan, "noise")], people)]


def test_a_passive_attack_costs_what_its_run_costs() -> None:
    scenario = attacks("passive")
    (part,) = parts(scenario)
    run = training_work(scenario, plan_of(scenario), population(scenario.data), "noise").part(POLICY, KEY)
    assert part["work"] == "attacks"
    for observer, claim in part["claims"].items():
        assert claim["events"] == run["claims"][observer]["events"]
        assert claim["cost"] == run["claims"][observer]["cost"]


@pytest.mark.parametrize("name", ["ascent", "isolating", "isolating-ascent"])
def test_an_attack_with_requests_of_its_own_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"attacks.{name} sends requests that the run's plan does not cover"):
        parts(attacks("passive", name))


def test_two_seats_are_refused() -> None:
    scenario = attacks("passive")
    seats = {"passive": scenario.attacks["passive"]}
    seats["outsider"] = seats["passive"].model_copy(update={"seat": "participant"})
    with pytest.raises(InputError, match="passive and outsider each continue the run"):
        parts(scenario.model_copy(update={"attacks": seats}))


def test_early_stopping_on_the_records_of_a_game_is_refused() -> None:
    with pytest.raises(InputError, match="use the public records that a game leaves"):
        parts(attacks("passive", settings=(*CENTRAL, "server.patience=2", "evaluation.on='public'")))


def test_attacks_on_a_run_without_noise_are_refused() -> None:
    with pytest.raises(InputError, match="has no guarantee against the participant"):
        parts(attacks("passive", settings=()))


def refusal(works: list[PlannedWork], epsilon: float, suggest: Suggest, path: Path) -> str:
    create(path, Policy.of_options(epsilon, 1e-5, "client", "replace-one"))
    with pytest.raises(InputError) as refused:
        enter(path, works, command="replay", suggest=suggest)
    return str(refused.value)


def options_of(message: str) -> list[str]:
    words = shlex.split(message.rpartition("fits: ")[2].removesuffix("."))
    return [option for word, option in pairwise(words) if word == "--set"]


def attacked(scenario: AttackScenario) -> list[PlannedWork]:
    people, runs = population(scenario.data), []
    for variant in scenario.variants:
        plan = plan_of(variant)
        for seed in range(scenario.seed, scenario.seed + scenario.game.repeats):
            seeded = variant.model_copy(update={"seed": seed})
            runs.append((seeded, plan, f"{variant.label}/{seed}"))
    return attack_works(runs, people)


@pytest.mark.parametrize(
    ("settings", "epsilon", "expected"),
    [
        (("game.repeats=3",), 2.9, "game.repeats=1"),
        (("game.repeats=3", "game.epsilons=[2.0, 0.5]"), 1.2, "game.epsilons=[0.5]"),
    ],
)
def test_a_refused_replay_names_options_that_fit(
    settings: tuple[str, ...], epsilon: float, expected: str, tmp_path: Path
) -> None:
    scenario = attacks("passive", settings=(*CENTRAL, *settings))
    path = tmp_path / "clients.account"
    message = refusal(attacked(scenario), epsilon, fewer_runs(scenario), path)
    options = options_of(message)
    assert options[0].startswith(expected), message
    smaller = cast(AttackScenario, load(find("active-gradient-ascent"), [*CENTRAL, *settings, *options]))
    smaller = smaller.model_copy(update={"attacks": scenario.attacks})
    enter(path, attacked(smaller), command="replay")


def test_an_audit_of_which_no_trial_fits_names_one_with_fewer_rounds(tmp_path: Path) -> None:
    path, canaries = tmp_path / "clients.account", 50

    def works(settings: list[str], trials: int) -> list[PlannedWork]:
        scenario = load(find("digits"), settings)
        assert type(scenario) is Scenario
        people, plan = population(scenario.data), plan_of(scenario)
        return audit_works(scenario, plan, people, "", canaries=canaries, trials=trials)

    message = refusal(works([], 3), 0.3, fewer_trials(3), path)
    assert message.endswith(" --trials 1.")
    enter(path, works(options_of(message.removesuffix(" --trials 1.")), 1), command="audit")
