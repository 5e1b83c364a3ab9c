"""What was answered to one attack on a run is spent for the next, also for one that comes later."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fedprivacy.attacks.gradient_ascent import GradientAscent
from fedprivacy.attacks.passive import Passive
from fedprivacy.errors import InputError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.scenario.attack.branches import Branch, branches_of
from fedprivacy.training.model_spec import model_spec
from scenarios.attacks.participation_budget import FILE, AttackRounds, open_account, spend


@pytest.fixture
def plan(make_scenario) -> Plan:
    scenario = make_scenario('privacy={trust="central", clipping_norm=1.0, epsilon=8.0, delta=1e-3}')
    people = population(scenario.data)
    found = plan_of(scenario, model_spec(scenario.model, people.features, people.dataset.classes))
    return replace(found, rounds=100)


@pytest.fixture
def folder(tmp_path) -> Path:
    open_account(tmp_path)
    return tmp_path


def branches(**rounds: int) -> list[Branch]:
    attacks: dict[str, Passive | GradientAscent] = {}
    for name, count in rounds.items():
        kind = {"kind": "passive", "rounds": count, "isolating": name.startswith("alone")}
        kind |= {"seat": "participant", "attacker": len(attacks)} if name.startswith("inside") else {}
        attacks[name] = Passive.model_validate(kind)
    return branches_of(attacks, 10)


def test_each_branch_begins_where_those_before_it_have_ended(folder, plan) -> None:
    found = spend(folder, branches(look=5, alone=20, inside=7), plan, warm_up=3)
    assert found == [AttackRounds(), AttackRounds(5, 0), AttackRounds(5, 20)]


def test_what_was_played_before_costs_nothing_more_and_all_others_do(folder, plan) -> None:
    first = spend(folder, branches(look=5, alone=20), plan, warm_up=3)
    assert spend(folder, branches(look=5, alone=20), plan, warm_up=3) == first
    assert spend(folder, branches(alone=20), plan, warm_up=3) == [AttackRounds(5, 0)]
    assert spend(folder, branches(look=6, alone=20), plan, warm_up=3) == [
        AttackRounds(5, 20),
        AttackRounds(5, 0),
    ]
    assert spend(folder, branches(inside=1), plan, warm_up=3) == [AttackRounds(11, 20)]


def test_no_more_global_models_than_their_noise_is_made_for(folder, plan) -> None:
    spend(folder, branches(look=90, alone=500), plan, warm_up=3)
    with pytest.raises(
        InputError, match="take 101 rounds, and the noise of its global models is made for 100"
    ):
        spend(folder, branches(inside=7), plan, warm_up=3)
    spend(folder, branches(inside=6), plan, warm_up=3)  # what was refused was not charged


@pytest.mark.parametrize(
    "text", [None, "{}", '[{"key": "x"}]', '[{"key": "x", "isolating": false, "rounds": -50}]']
)
def test_an_account_that_is_none_is_refused_and_not_taken_for_an_empty_one(folder, plan, text) -> None:
    path = folder / FILE
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(InputError, match=r"spent.json: missing or damaged .*Play the scenario anew"):
        spend(folder, branches(look=1), plan, warm_up=0)


def test_nothing_is_written_where_nothing_is_spent(folder, plan) -> None:
    spend(folder, branches(look=5), plan, warm_up=3)
    (folder / FILE).chmod(0o400)
    before = (folder / FILE).stat()
    assert spend(folder, branches(look=5), plan, warm_up=3) == [AttackRounds()]
    assert (folder / FILE).stat() == before
    assert spend(folder, [], plan, warm_up=3) == []


def _spend(folder: Path, plan: Plan, rounds: int) -> AttackRounds:
    [found] = spend(folder, branches(**{f"alone{rounds}": rounds}), plan, 0)
    return found


@pytest.mark.slow
def test_two_at_the_same_time_do_not_find_the_same_answers_unspent(folder, plan) -> None:
    """Twelve branches of 1 to 12 rounds from four processes: whatever the order, each begins after the others."""
    with ProcessPoolExecutor(4) as pool:
        found = list(pool.map(_spend, [folder] * 12, [plan] * 12, range(1, 13)))
    ends = sorted(
        (before.victim, before.victim + rounds) for before, rounds in zip(found, range(1, 13), strict=True)
    )
    assert [begin for begin, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == sum(range(1, 13))
