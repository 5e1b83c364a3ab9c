"""Some of a scenario's clients, each with the records that it has among all."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.population.clients import population
from fedprivacy.scenario import Scenario
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


def test_they_are_another_population_to_an_account(make_scenario) -> None:
    privacy = ("privacy.epsilon=1.0",)
    whole, some = planned(make_scenario(*privacy)), planned(make_scenario(*privacy, "data.first_clients=6"))
    assert whole.population.owners != some.population.owners
    assert whole.population.data != some.population.data
