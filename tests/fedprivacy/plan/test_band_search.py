"""The number of bands by formula: never worse than Poisson DP-FedAvg, and chosen before any data is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.plan.band_search import least_error, numbers_of_bands, squared_error
from fedprivacy.plan.from_scenario import plan_of, stored_plan
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.group_limit import most_groups
from fedprivacy.scenario import Scenario

TEXT = Path("scenarios/correlated-noise.toml").read_text().split("[compare]")[0]
CYCLIC = ("sampling.name=cyclic-poisson", "sampling.rate=0.125")
ZEROED = (*CYCLIC, "privacy.adjacency=zero-out")


def scenario(*overrides: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=overrides)


# Epsilon -> the squared error of 1, 2, 4 and 8 bands, and the number of bands that is chosen.
ERRORS = {
    1.0: ((62381, 65350, 73831, 91826), 1),
    2.0: ((19973, 20157, 22042, 26228), 1),
    4.0: ((7355, 6841, 7005, 7712), 2),
    8.0: ((3218, 2651, 2437, 2377), 8),
}


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("epsilon", ERRORS)
def test_the_choice_is_never_worse_than_poisson_at_any_epsilon_of_the_scenario(epsilon: float) -> None:
    chosen = plan_of(scenario(*ZEROED, "privacy.bands=auto", f"privacy.epsilon={epsilon}"))
    one = ("sampling.name=poisson", "sampling.rate=0.125", "privacy.adjacency=zero-out")
    poisson = plan_of(scenario(*one, f"privacy.epsilon={epsilon}"))
    errors, bands = ERRORS[epsilon]
    independent = poisson.noise_multiplier**2 * 80 * 81 / 2
    assert independent == pytest.approx(errors[0], abs=1)
    assert (chosen.banded.bands, chosen.sampler.groups) == (bands, bands)
    assert squared_error(chosen) == pytest.approx(min(errors), abs=1)
    assert squared_error(chosen) <= independent * (1 + 1e-12)
    for each in (chosen, poisson):
        assert 0.99 * epsilon < each.spent().epsilon <= epsilon
        assert (each.adjacency, each.delta) == ("zero-out", 1e-5)


def test_the_table_of_the_docs_has_the_error_of_each_number_of_bands() -> None:
    text = Path("docs/less-loss.md").read_text()
    for epsilon, (errors, bands) in ERRORS.items():
        cells = " | ".join(f"{error:,}" for error in errors)
        assert f"| {epsilon:g} | {cells} | {bands} band{'s' * (bands > 1)} |" in text
    for bands, error in zip((2, 4, 8), ERRORS[4.0][0][1:], strict=True):
        plan = plan_of(scenario(*ZEROED, f"privacy.bands={bands}", "privacy.epsilon=4"))
        assert squared_error(plan) == pytest.approx(error, abs=1)


def test_the_choice_is_the_least_of_all_numbers_and_of_equal_ones_the_first() -> None:
    plans = {
        bands: plan_of(scenario(*ZEROED, f"privacy.bands={bands}", "privacy.epsilon=4"))
        for bands in (3, 2, 1)
    }
    assert least_error(plans) is plans[2]
    assert least_error({1: plans[3], 2: replace(plans[3], delta=1e-6)}) is plans[3]


def test_a_process_calibrates_few_numbers_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrated: list[int] = []

    def calibrate(plan: Plan, epsilon: float) -> Plan:
        calibrated.append(plan.sampler.groups)
        return plan

    monkeypatch.setattr(Plan, "calibrate", calibrate)
    asked = scenario(*ZEROED, "sampling.rate=0.02", "privacy.bands=auto", "privacy.epsilon=7")
    assert plan_of(asked) == plan_of(asked)
    assert calibrated == [1, 2, 4, 8, 16, 32, 50]
    assert len(numbers_of_bands(0.001, 1000)) == 11


def test_replaced_clients_of_this_scenario_need_poisson_sampling() -> None:
    chosen = plan_of(scenario(*CYCLIC, "privacy.bands=auto", "privacy.epsilon=8"))
    assert (chosen.adjacency, chosen.banded.bands) == ("replace-one", 1)


def test_a_stored_choice_is_checked_without_searching_again() -> None:
    asked = scenario(*ZEROED, "privacy.bands=auto", "privacy.epsilon=4")
    plan = plan_of(asked)
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert stored_plan(asked, again) == plan
    weaker = replace(again, mechanism=replace(again.banded, noise_multiplier=1.0))
    with pytest.raises(InputError, match=r"asks for privacy\.epsilon = 4"):
        stored_plan(asked, weaker)
    many = replace(again, sampler=replace(again.sampler, rate=0.05, groups=20))
    with pytest.raises(InputError, match="not one that the scenario chooses from"):
        stored_plan(asked, replace(many, mechanism=replace(again.banded, bands=20)))


def test_numbers_of_bands_reach_from_poisson_to_a_round_for_each_group() -> None:
    for rate, rounds in ((0.125, 80), (1 / 60, 120), (1.0, 9), (0.3, 2), (1e-6, 500)):
        numbers = numbers_of_bands(rate, rounds)
        assert numbers[0] == 1
        assert list(numbers) == sorted(set(numbers))
        assert numbers[-1] == min(most_groups(rate), rounds)
    assert numbers_of_bands(0.125, 80, 5) == (1, 2, 4, 5)
    assert max(numbers_of_bands(1e-6, 10**5)) <= 100  # a search of a second each


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ((), "as many groups as there are bands of noise, and there are none. Set bands = 4"),
        (("privacy.bands=9",), "At most 8, which is 1/rate"),
        (("sampling.rate=0.16666666667", "privacy.bands=6"), "At most 5, which is 1/rate rounded down"),
        (("privacy.bands=4", "privacy.adjacency=add-remove"), 'sampling "cyclic-poisson"'),
        (("privacy.bands=auto", "privacy.noise_multiplier=2"), "Set privacy.epsilon in place"),
        (("sampling={name='separated', cohort=9, separation=6}", "privacy.bands=auto"), "Set bands = 6"),
        (("privacy.bands=most",), "privacy.bands"),
        (("privacy.bands=8", "data.partition=iid", "data.clients=5"), "there are 5 clients, .* At most 5"),
        (("sampling.rate=0", "privacy.bands=2"), "sampling.rate"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_remedy(overrides: tuple[str, ...], text: str) -> None:
    with pytest.raises(ScenarioError, match=text.replace("(", r"\(")):
        scenario(*CYCLIC, *overrides)
