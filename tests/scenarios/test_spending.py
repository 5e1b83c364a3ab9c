"""What was answered to one attack on a run is spent for the next, also for one that comes later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedprivacy.blueprint import blueprint
from fedprivacy.data.population import population
from fedprivacy.errors import InputError
from fedprivacy.plan import Plan
from fedprivacy.planning import plan_of
from fedprivacy.scenario.attack.branches import Branch, branches_of
from fedprivacy.scenario.attack.sections import Ascent, Passive
from scenarios.spending import FILE, Spent, spend


@pytest.fixture
def plan(make_scenario) -> Plan:
    scenario = make_scenario('privacy={trust="central", clipping_norm=1.0, epsilon=8.0, delta=1e-3}')
    people = population(scenario.data)
    found = plan_of(scenario, blueprint(scenario.model, people.features, people.dataset.classes))
    return replace(found, rounds=100)


def branches(**rounds: int) -> list[Branch]:
    attacks: dict[str, Passive | Ascent] = {}
    for name, count in rounds.items():
        kind = {"kind": "passive", "rounds": count, "isolating": name.startswith("alone")}
        kind |= {"seat": "participant", "attacker": len(attacks)} if name.startswith("inside") else {}
        attacks[name] = Passive.model_validate(kind)
    return branches_of(attacks, 10)


def test_each_branch_begins_where_those_before_it_have_ended(tmp_path, plan) -> None:
    found = spend(tmp_path, branches(look=5, alone=20, inside=7), plan, warm_up=3)
    assert found == [Spent(), Spent(5, 0), Spent(5, 20)]


def test_what_was_played_before_costs_nothing_more_and_all_others_do(tmp_path, plan) -> None:
    first = spend(tmp_path, branches(look=5, alone=20), plan, warm_up=3)
    assert spend(tmp_path, branches(look=5, alone=20), plan, warm_up=3) == first
    assert spend(tmp_path, branches(alone=20), plan, warm_up=3) == [Spent(5, 0)]
    assert spend(tmp_path, branches(look=6, alone=20), plan, warm_up=3) == [Spent(5, 20), Spent(5, 0)]
    assert spend(tmp_path, branches(inside=1), plan, warm_up=3) == [Spent(11, 20)]


def test_no_more_global_models_than_their_noise_is_made_for(tmp_path, plan) -> None:
    spend(tmp_path, branches(look=90, alone=500), plan, warm_up=3)
    with pytest.raises(
        InputError, match="take 101 rounds, and the noise of its global models is made for 100"
    ):
        spend(tmp_path, branches(inside=7), plan, warm_up=3)
    spend(tmp_path, branches(inside=6), plan, warm_up=3)  # what was refused was not charged


def test_a_damaged_account_is_refused(tmp_path, plan) -> None:
    (tmp_path / FILE).write_text('[{"key": "x"}]')
    with pytest.raises(InputError, match=r"spent.json: damaged .*Play the scenario anew"):
        spend(tmp_path, branches(look=1), plan, warm_up=0)
