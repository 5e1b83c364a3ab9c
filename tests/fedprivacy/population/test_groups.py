"""Test records of groups of clients with budgets that differ: by user, by label, or at random."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.population.clients import population
from fedprivacy.population.groups import held_out_budget_groups
from fedprivacy.sampling.groups import Group, Groups, members

LIGHT = "privacy.groups.light={clients='0-2', weight=0.5}"


def dealt(make_scenario, *changes: str):
    asked = make_scenario("data.test_records=1000", *changes)
    people = population(asked.data)
    return people, held_out_budget_groups(asked.data, people, asked.privacy.groups)


@pytest.mark.parametrize(
    "partition",
    ["iid", "one-per-example", "fixed-records"],
)
def test_records_dealt_at_random_give_each_group_its_share_of_the_test_records(
    make_scenario, partition
) -> None:
    keys = {
        "iid": (),
        "one-per-example": (),
        "fixed-records": ("data.records_per_client=4", "data.clients=12"),
    }
    people, grouping = dealt(make_scenario, f"data.partition={partition}", *keys[partition], LIGHT)
    assert grouping.column == "privacy.groups"
    assert grouping.labels == ("light", "others")
    share = people.partition.sizes[:3].sum() / people.partition.sizes.sum()
    assert (grouping.codes == 0).sum() == round(1000 * share)
    # By coins, and not by the labels: within 5 standard deviations of the labels of all.
    labels = people.dataset.y_test
    error = 5 * np.sqrt(0.25 / (grouping.codes == 0).sum())
    assert abs(labels[grouping.codes == 0].mean() - labels.mean()) < error


@pytest.mark.parametrize("partition", ["by-label", "dirichlet"])
def test_records_dealt_by_label_give_each_group_the_labels_of_its_clients(make_scenario, partition) -> None:
    alpha = ("data.alpha=0.1",) if partition == "dirichlet" else ()
    people, grouping = dealt(make_scenario, f"data.partition={partition}", *alpha, LIGHT)
    y, y_test = people.dataset.y, people.dataset.y_test
    owned = np.concatenate([people.partition.records(client) for client in range(3)])
    for label in (0, 1):
        share = (y[owned] == label).sum() / (y[people.partition.order] == label).sum()
        held = grouping.codes[y_test == label]
        assert (held == 0).sum() == round(share * len(held))


def test_a_label_of_no_client_is_of_no_group(make_scenario) -> None:
    asked = make_scenario("data.partition=by-label", LIGHT)
    people = population(asked.data)
    people.dataset.y_test[:7] = 5
    try:
        grouping = held_out_budget_groups(asked.data, people, asked.privacy.groups)
    finally:
        population.__globals__["_population"].cache_clear()  # its copy was changed
    assert (grouping.codes[:7] == -1).all()
    assert (grouping.codes[7:] >= 0).all()


def test_the_same_records_are_held_out_for_each_seed_and_setting(make_scenario) -> None:
    first = dealt(make_scenario, LIGHT)[1].codes
    assert np.array_equal(first, dealt(make_scenario, LIGHT.replace("0.5", "0.9"), "seed=7")[1].codes)


def test_drawn_members_have_their_own_records(make_scenario) -> None:
    people, grouping = dealt(
        make_scenario, "data.partition=by-label", "privacy.groups.a={share=0.25, weight=0.5}"
    )
    places = members(Groups((Group("a", share=0.25),)), 12)
    owned = np.concatenate([people.partition.records(int(client)) for client in np.flatnonzero(places == 0)])
    share = people.dataset.y[owned].mean()
    assert people.dataset.y_test[grouping.codes == 0].mean() == pytest.approx(share, abs=0.05)


def test_without_groups_no_record_is_in_one(make_scenario) -> None:
    assert dealt(make_scenario)[1] is None
