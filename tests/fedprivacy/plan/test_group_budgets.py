"""The noise, weight or rate that keeps the epsilon of a group, and the plan of a run with this group alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from dp_accounting import dp_event as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.from_scenario import plan_of, stored_plan
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import PoissonSampling
from fedprivacy.sampling.group_limits import OTHERS
from fedprivacy.sampling.groups import Group, Groups
from fedprivacy.scenario import Scenario

TEXT = """
name = "groups"
[data]
name = "synthetic"
records = 400
test_records = 100
features = 5
partition = "iid"
clients = 40
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 4
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "central"
adjacency = "add-remove"
clipping_norm = 2.0
delta = 1e-3
epsilon = 4.0
[privacy.groups.light]
share = 0.25
epsilon = 1.0
[privacy.groups.rare]
clients = [3, 7]
epsilon = 2.0
through = "rate"
"""
LOCAL = (
    "privacy.trust=local",
    "privacy.adjacency=replace-one",
    "privacy.groups.rare={clients=[3, 7], epsilon=2.0}",
)


def scenario(*changes: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=changes)


def oracle(event: dp.DpEvent, delta: float, relation: NeighboringRelation) -> float:
    return PLDAccountant(relation).compose(event).get_epsilon(delta)


@pytest.mark.exhaustive
def test_under_central_trust_weights_and_rates_keep_the_epsilon_of_each_group() -> None:
    """The oracle composes what the server releases about one client of the group, from first principles."""
    plan = plan_of(scenario())
    light, rare = plan.groups["light"], plan.groups["rare"]
    assert light.rate is None
    assert rare.weight is None
    z, q = plan.noise_multiplier, 0.5
    for multiplier, rate, asked in (
        (z, q, 4.0),  # the others: sensitivity C
        (z / light.weight, q, 1.0),  # sensitivity w C
        (z, rare.rate, 2.0),
    ):
        event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier)), 4)
        spent = oracle(event, 1e-3, NeighboringRelation.ADD_OR_REMOVE_ONE)
        assert asked * (1 - 2e-3) <= spent <= asked * (1 + 1e-3)


def test_under_local_trust_each_group_has_its_own_noise() -> None:
    plan = plan_of(scenario(*LOCAL))
    for name, asked in (("light", 1.0), ("rare", 2.0), (OTHERS, 4.0)):
        own = plan.of_group(name)
        assert own.mechanism.clipping_norm == 2.0
        # Replaced: an update moves by 2C, so the noise is half as much in units of what moves.
        event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(own.noise_multiplier / 2), 4)
        assert oracle(event, 1e-3, NeighboringRelation.ADD_OR_REMOVE_ONE) == pytest.approx(asked, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_other_adjacencies_keep_the_epsilon_of_each_group(adjacency: str) -> None:
    plan = plan_of(scenario(f"privacy.adjacency={adjacency}"))
    for name, asked in (("light", 1.0), ("rare", 2.0), (OTHERS, 4.0)):
        assert asked * (1 - 2e-3) <= plan.of_group(name).spent().epsilon <= asked * (1 + 1e-9)


def test_the_plan_of_a_group_is_that_of_a_run_whose_only_group_it_is() -> None:
    """Bit for bit: noise z C on updates of norm w C; the rate of the group; the noise of its clients."""
    plan = plan_of(scenario())
    z, weight = plan.noise_multiplier, plan.groups["light"].weight
    alone = replace(plan, groups=None, mechanism=Gaussian(2.0 * weight, z / weight))
    assert plan.of_group("light") == alone
    assert plan.of_group("light").mechanism.standard_deviation == pytest.approx(z * 2.0, rel=1e-12)
    rate = plan.groups["rare"].rate
    assert plan.of_group("rare") == replace(plan, groups=None, sampler=PoissonSampling(rate))
    assert plan.of_group(OTHERS) == replace(plan, groups=None)
    local = plan_of(scenario(*LOCAL))
    noise = local.groups["rare"].noise_multiplier
    assert local.of_group("rare") == replace(local, groups=None, mechanism=Gaussian(2.0, noise))


def test_groups_leave_the_plan_of_the_others_as_it_is_without_them() -> None:
    plan, tables = plan_of(scenario()), scenario().tables()
    tables.pop("compare")
    tables["privacy"].pop("groups")
    assert plan.of_group(OTHERS) == plan_of(Scenario.from_tables(tables, "without"))
    # What is stated of all clients bounds each group.
    for name in plan.groups.names:
        assert plan.of_group(name).spent().epsilon <= plan.spent().epsilon


def test_the_denominator_is_the_expected_weight_of_a_cohort() -> None:
    plan = plan_of(scenario())
    weight, rate = plan.groups["light"].weight, plan.groups["rare"].rate
    assert plan.expected_weight == pytest.approx(10 * 0.5 * weight + 2 * rate + 28 * 0.5)
    assert plan_of(scenario(*LOCAL)).expected_weight == 20


@pytest.mark.parametrize("changes", [(), LOCAL, ("privacy.groups.light={share=0.25, weight=0.5}",)])
def test_a_stored_plan_is_read_back_and_checked_against_the_scenario(changes: tuple[str, ...]) -> None:
    asked = scenario(*changes)
    plan = plan_of(asked)
    data = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(data) == plan
    assert stored_plan(asked, Plan.from_json(data)) == plan
    # Any other setting of a group is not what the scenario asks for, and is replaced by what it asks for.
    first = plan.groups.groups[0]
    setting = "noise_multiplier" if changes == LOCAL else "weight"
    stricter = {"noise_multiplier": 1.01, "weight": 0.99}[setting] * getattr(first, setting)
    for changed in (
        replace(first, **{setting: stricter}),
        replace(first, share=0.5),
        replace(first, name="other"),
    ):
        forged = replace(plan, groups=Groups((changed, *plan.groups.groups[1:])))
        back = stored_plan(asked, forged).groups
        assert back != forged.groups
        assert back.names == plan.groups.names
        assert getattr(back.groups[0], setting) == pytest.approx(getattr(first, setting), rel=1e-9)
    assert stored_plan(asked, replace(plan, groups=None)).groups.names == plan.groups.names


def test_a_client_refuses_a_plan_with_another_setting_of_any_group() -> None:
    plan = plan_of(scenario())
    for place, group in enumerate(plan.groups.groups):
        for change in ({"weight": 1.0}, {"rate": 0.5}, {"share": 0.1, "clients": None}):
            groups = [*plan.groups.groups]
            groups[place] = replace(group, **change)
            assert "groups: requested" in plan.refusal(replace(plan, groups=Groups(tuple(groups))))
    assert "groups: requested" in plan.refusal(replace(plan, groups=None))
    assert plan.refusal(Plan.from_json(plan.to_json())) is None


def test_a_group_is_never_less_protected_than_the_plan_of_all() -> None:
    plan, local = plan_of(scenario()), plan_of(scenario(*LOCAL))
    for base, group in (
        (plan, Group("a", share=0.2, weight=1.1)),
        (plan, Group("a", share=0.2, rate=0.6)),
        (plan, Group("a", share=0.2, noise_multiplier=99.0)),
        (local, Group("a", share=0.2, noise_multiplier=local.noise_multiplier / 2)),
        (local, Group("a", share=0.2, weight=0.5)),
    ):
        with pytest.raises(InputError, match=r"groups\.a\."):
            replace(base, groups=Groups((group,)))


def test_an_epsilon_that_no_weight_keeps_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r'light\.epsilon = 0\.0001.*through = "rate"'):
        plan_of(scenario("privacy.groups.light.epsilon=1e-4", "privacy.epsilon=100.0"))


@pytest.mark.parametrize(
    ("partition", "shows"), [("by-label", True), ("iid", False)], ids=["by label", "at random"]
)
def test_groups_by_ids_show_labels_where_clients_are_dealt_by_label(partition: str, shows: bool) -> None:
    """The claims then have an assumption of their own, which a stored plan cannot leave out."""
    asked = scenario(f"data.partition={partition}")
    plan = plan_of(asked)
    assert [group.shows_labels for group in plan.groups.groups] == [
        shows and group.clients is not None for group in plan.groups.groups
    ]
    assert any(group.shows_labels for group in plan.groups.groups) == shows
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    silent = Groups(tuple(replace(group, shows_labels=False) for group in plan.groups.groups))
    assert stored_plan(asked, replace(plan, groups=silent)) == plan
    stored = Ledger(plan).to_json()
    claims = [*stored["claims"], *(claim for group in stored["groups"] for claim in group["claims"])]
    for claim in claims:
        if claim["event"] is not None:
            assert TrainingAssumption.GROUPS_BY_LABEL.among(claim["assumptions"]) == shows
            assert TrainingAssumption.GROUPS_PUBLIC.among(claim["assumptions"]) != shows
