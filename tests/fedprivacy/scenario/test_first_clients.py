"""Some of a scenario's clients, each with the records that it has among all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.account.populations import Relation, check_same, relation
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.plan.from_scenario import plan_of, stored_plan
from fedprivacy.population.clients import population
from fedprivacy.population.groups import held_out_budget_groups
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.variations import variations
from scenarios.budgets.planned_work import planned

WAYS = {
    "iid": (),
    "dirichlet": ("data.alpha=0.3",),
    "by-label": (),
    "one-per-example": (),
    "fixed-records": ("data.records_per_client=4",),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_first_clients_are_nested_and_keep_their_records(make_scenario, way: str) -> None:
    changes = (f"data.partition={way}", *WAYS[way], "data.public_fraction=0.1")
    whole = population(make_scenario(*changes).data).partition
    few, more = (make_scenario(*changes, f"data.first_clients={count}") for count in (3, 7))
    dealt = [population(asked.data).partition for asked in (few, more)]
    assert [each.clients for each in dealt] == [few.population, more.population] == [3, 7]
    records = [[tuple(each.records(client)) for client in range(each.clients)] for each in (*dealt, whole)]
    assert set(records[0]) < set(records[1]) < set(records[2])
    assert records[1] != records[2][:7]  # they are drawn, since ids may have an order
    places = [records[2].index(each) for each in records[1]]
    assert places == sorted(places)  # so that all of them are the clients of the scenario without the key
    assert all(np.array_equal(each.public, whole.public) for each in dealt)
    assert Scenario.from_text(few.to_toml()) == few


def test_more_than_there_are_is_refused(make_scenario) -> None:
    with pytest.raises(ScenarioError, match="first_clients=13: more than the 12 clients that there are"):
        make_scenario("data.first_clients=13")


@pytest.mark.parametrize("way", ["iid", "one-per-example", "by-label"])
def test_each_is_one_client_of_the_whole_to_an_account(make_scenario, way: str) -> None:
    """Their data differ, so that it has to be stated; dealt anew, a client may be several of the other."""
    changes = ("privacy.epsilon=1.0", f"data.partition={way}", "data.public_fraction=0.1")
    whole, some = (
        planned(make_scenario(*changes, *first)).population.to_json("00" * 16)
        for first in ((), ("data.first_clients=6",))
    )
    assert relation(some, whole, "client") is Relation.UNKNOWN
    with pytest.raises(InputError, match="state --same-population"):
        check_same([some], [whole], "client", stated=False)
    assert check_same([some], [whole], "client", stated=True)
    anew = planned(make_scenario("privacy.epsilon=1.0", "data.clients=6")).population.to_json("00" * 16)
    assert relation(anew, whole, "client") is Relation.OTHER_OWNERS


@pytest.mark.parametrize("clients", [(), ("data.clients=15",)], ids=["all", "some"])
def test_another_number_of_clients_is_that_of_those_who_take_part(make_scenario, clients) -> None:
    asked = make_scenario(
        "data={name='synthetic', records=60, test_records=50, features=4, partition='fixed-records', "
        "records_per_client=4, first_clients=5}",
        *clients, "privacy.epsilon=8.0", "compare.vary.data.clients=[5, 10, 15]",
    )  # fmt: skip
    varied = [asked.varied(each, 1) for each in variations(asked.compare)]
    assert [each.population for each in varied] == [5, 10, 15]
    assert [population(each.data).partition.clients for each in varied] == [5, 10, 15]


@pytest.mark.parametrize("change", ["clients=4", "clients=12, first_clients=4"])
def test_a_stored_plan_is_for_the_clients_that_take_part_of_a_file(
    make_scenario, tmp_path: Path, change: str
) -> None:
    x, y = np.zeros((120, 4), np.float32), np.arange(120) % 2
    np.savez(tmp_path / "p.npz", x_train=x, y_train=y, x_test=x, y_test=y)

    def of(dealt: str) -> Scenario:
        return make_scenario(f"data={{name='npz', path='{tmp_path / 'p.npz'}', partition='iid', {dealt}}}")

    assert stored_plan(of(change), plan_of(of("clients=12"))) == plan_of(of(change))


GROUPED = (
    "data.partition=by-label", "data.seed=3", "privacy.epsilon=8.0", "sampling={name='poisson', rate=0.5}",
    "privacy.groups.light={clients='0-2', epsilon=1.0}",
)  # fmt: skip


def test_a_group_by_ids_is_the_same_persons_however_many_take_part(make_scenario) -> None:
    """Ids are those among all clients. Verification needs no data, and accuracy is of the same members."""
    whole = population(make_scenario(*GROUPED).data).partition
    light = {tuple(whole.records(client)) for client in (0, 1, 2)}
    members_of = []
    for count in (8, 12):
        asked = make_scenario(*GROUPED, f"data.first_clients={count}")
        people, plan = population(asked.data), plan_of(asked)
        present = {tuple(people.partition.records(client)) for client in plan.groups["light"].clients}
        assert present == light & {tuple(people.partition.records(client)) for client in range(count)}
        members_of.append(present)
        assert stored_plan(asked, plan) == plan
        tested = held_out_budget_groups(asked.data, people, asked.privacy.groups)
        labels = set(people.dataset.y_test[tested.codes == 0])
        assert labels == {int(people.dataset.y[records[0]]) for records in present}
        assert "clients=" in planned(asked).settings(1)
        assert planned(asked).ledgers_of_settings(1)[0]["groups"][0]["clients"] == len(present)
    assert members_of[0] < members_of[1] == light


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("privacy.groups.light={clients='0-12', epsilon=1.0}",), "no client 12: ids are from 0 to 11"),
        (("data.first_clients=1",), "light.clients: none of them is among the 1 clients that take part"),
    ],
)
def test_a_group_without_clients_that_take_part_is_refused(make_scenario, changes, words: str) -> None:
    with pytest.raises((InputError, ScenarioError), match=words):
        plan_of(make_scenario(*GROUPED, "data.first_clients=8", *changes))


def test_ids_among_clients_that_only_a_file_counts_are_refused(make_scenario, tmp_path: Path) -> None:
    x, y = np.zeros((120, 4), np.float32), np.arange(120) % 2
    users = np.repeat(np.arange(12), 10)
    np.savez(tmp_path / "p.npz", x_train=x, y_train=y, x_test=x, y_test=y, user_train=users)
    with pytest.raises(ScenarioError, match=r"light.clients.*whose number is in the file alone"):
        make_scenario(
            f"data={{name='npz', path='{tmp_path / 'p.npz'}', partition='by-user', first_clients=8}}",
            *GROUPED[2:],
        )
