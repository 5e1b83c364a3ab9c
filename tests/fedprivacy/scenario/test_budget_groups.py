"""Groups of clients with stricter budgets in a scenario: what is accepted, and what is refused with a reason."""

from __future__ import annotations

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.plan.from_scenario import plan_of, stored_plan
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
trust = "{trust}"
clipping_norm = 1.0
delta = 1e-3
{budget}
[privacy.groups.cautious]
{group}
"""


def scenario(group: str, trust: str = "central", budget: str = "epsilon = 4.0", *changes: str) -> Scenario:
    return Scenario.from_text(TEXT.format(trust=trust, budget=budget, group=group), overrides=changes)


def tables(groups: str, trust: str = "central", budget: str = "epsilon = 4.0") -> Scenario:
    """The scenario with a text in place of its table of a group."""
    text = TEXT.format(trust=trust, budget=budget, group="").partition("[privacy.groups")[0]
    return Scenario.from_text(text + groups)


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_scenario_with_groups_is_written_and_read_back(trust: str) -> None:
    first = scenario("share = 0.25\nepsilon = 1.0", trust)
    assert first.privacy.groups["cautious"].share == 0.25
    assert Scenario.from_text(first.to_toml()) == first


def test_a_scenario_without_groups_does_not_name_them() -> None:
    tables = Scenario.from_text(
        TEXT.format(trust="central", budget="epsilon = 4.0", group="").partition("[privacy.groups")[0]
    ).tables()
    assert "groups" not in tables["privacy"]


def test_whole_tables_with_a_comparison_are_read_back() -> None:
    """A file is valid though its groups are not for each cell of the comparison that it has by default."""
    first = scenario('share = 0.25\nepsilon = 3.0\nthrough = "rate"')
    assert Scenario.from_tables(first.tables(), "tables") == first
    by_weight = scenario("share = 0.25\nweight = 0.5")
    assert Scenario.from_tables(by_weight.tables(), "tables") == by_weight


def test_a_cell_has_the_groups_with_their_epsilons_and_without_noise_their_clients_alone() -> None:
    first = scenario('share = 0.25\nepsilon = 1.0\nthrough = "rate"')
    local = first.cell("local", 2.0, 1).privacy.groups["cautious"]
    assert (local.epsilon, local.through, local.share) == (1.0, None, 0.25)
    assert first.cell("central", 2.0, 1).privacy.groups == first.privacy.groups
    plain = first.cell("none", None, 1).privacy.groups["cautious"]
    assert (plain.epsilon, plain.share) == (None, 0.25)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("share = 0.25\nclients = [1]\nepsilon = 1.0",), "cautious: has both a share and clients. Remove one."),
        (("epsilon = 1.0",), "cautious: has no clients. Add share = 0.2"),
        (("share = 0.25",), "cautious: has no budget of its own. Add epsilon or weight or rate."),
        (("share = 0.25\nepsilon = 1.0\nweight = 0.5",), "weight: given together with epsilon"),
        (("share = 0.25\nepsilon = 5.0",), "epsilon = 5.0: above privacy.epsilon = 4 of the clients in no group: a group may only be stricter"),
        (("share = 0.25\nnoise_multiplier = 5.0",), "one noise of the server protects all groups"),
        (("share = 0.25\nrate = 0.6",), "rate = 0.6: above sampling.rate = 0.5"),
        (("share = 0.25\nweight = 1e-4",), "weight = 0.0001: below 0.001"),
        (("share = 0.25\nweight = 0.5\nthrough = \"rate\"",), "through = \"rate\": has no effect"),
        (("share = 0.25\nepsilon = 1.0", "local", "noise_multiplier = 3.0"), "a group sets its budget alike"),
        (("share = 0.25\nnoise_multiplier = 2.0", "local", "noise_multiplier = 3.0"), "below privacy.noise_multiplier = 3"),
        (("share = 0.25\nweight = 0.5", "local"), "each message is charged in full"),
        (("share = 0.25\nepsilon = 1.0", "central", "noise_multiplier = 3.0"), "the epsilon of nobody is known"),
        (("share = 0.25\nepsilon = 1.0", "distributed"), "sums in which shares differ"),
        (("share = 0.25\nepsilon = 1.0", "none", ""), "cautious.epsilon = 1.0: has no effect: with trust \"none\" nobody adds noise"),
        (("share = 0.25\nepsilon = 1.0", "central", "epsilon = 4.0", "sampling.name=fixed", "sampling.cohort=4"), "cohorts of a fixed size"),
        (("share = 0.25\nrate = 0.1", "central", "epsilon = 4.0", "sampling.name=all"), "draws nobody"),
        (("share = 0.25\nepsilon = 1.0", "central", "epsilon = 4.0", "privacy.unit=example"), "protected as a whole"),
        (("share = 0.25\nepsilon = 1.0", "central", "epsilon = 4.0", "privacy.clipping_quantile=0.5"), "the count that moves the clipping norm"),
        (("share = 0.25\nepsilon = 1.0", "central", "epsilon = 4.0", "privacy.encoding=signs"), "groups: a weight would come after the encoding"),
        (("share = 0.25\nepsilon = 1.0", "local", "epsilon = 4.0", "privacy.mechanism=privunit"), "accounted for with Gaussian noise"),
        (("share = 0.25\nepsilon = 1.0", "local", "epsilon = 4.0", "server.denoise=james-stein"), "its size has to be known"),
        (("clients = [40]\nepsilon = 1.0",), "there is no client 40: ids are from 0 to 39"),
        (("clients = [1, 1]\nepsilon = 1.0",), "clients: names client 1 twice. Remove one."),
        (("clients = [1]\nepsilon = 1.0\n[privacy.groups.b]\nclients = \"0-2\"\nepsilon = 1.0",), "b.clients: client 1 is in group cautious too. Remove it from one group."),
        (("clients = \"3-1\"\nepsilon = 1.0",), "clients = \"3-1\": must be a list of ids, or text with ranges"),
        (("clients = \"0-99999999\"\nepsilon = 1.0",), "lists more than 10,000 ids"),
        (("share = 0.001\nepsilon = 1.0",), "share = 0.001: is less than one of 40 clients"),
        (("share = 0.99\nepsilon = 1.0",), "groups: take 40 of 40 clients, and leave nobody to the budget of the section"),
        (("share = 1.5\nepsilon = 1.0",), "share = 1.5: must be above 0 and below 1. The share of all clients"),
        (("shares = 0.5\nepsilon = 1.0",), "cautious.shares: unknown key. Did you mean share?"),
        (("share = 0.25\nepsilon = 1.0\n[privacy.groups.others]\nshare = 0.2\nepsilon = 1.0",), "the name of the clients in no group"),
    ],
)  # fmt: skip
def test_groups_that_cannot_be_are_refused_with_the_reason(changes: tuple[str, ...], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario(*changes)
    assert words in str(refused.value), str(refused.value)


def test_names_of_groups_have_hyphens_and_underscores() -> None:
    named = tables("[privacy.groups.very_cautious-1]\nshare = 0.25\nepsilon = 1.0")
    assert list(named.privacy.groups) == ["very_cautious-1"]
    assert Scenario.from_text(named.to_toml()) == named


@pytest.mark.parametrize("name", ["a b", "", "_a", "x" * 41, "a\\n"])
def test_other_names_are_refused_with_what_a_name_may_be(name: str) -> None:
    with pytest.raises(ScenarioError, match="the name must be letters, digits, hyphens and underscores"):
        tables(f'[privacy.groups."{name}"]\nshare = 0.25\nepsilon = 1.0')


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("groups = {}", "groups: the section is empty, at least one table is needed"),
        ("groups = {cautious = 3}", "cautious: 3 is a whole number, a section is needed"),
        ('groups.cautious = {share = 0.25, epsilon = 1.0, through = "x"}',
         'through = "x": unknown way to keep an epsilon. Known here: "weight", "rate"'),
        ("\n".join(f"groups.g{i} = {{share = 0.03, epsilon = 1.0}}" for i in range(21)),
         "groups: 20 tables are the most"),
    ],
)  # fmt: skip
def test_tables_of_groups_are_called_what_they_are(groups: str, words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        tables(groups)
    assert words in str(refused.value), str(refused.value)


def test_no_remedy_offers_a_trust_model_that_refuses_groups() -> None:
    with pytest.raises(ScenarioError) as refused:
        tables("[privacy.groups.a]\nshare = 0.25\nepsilon = 1.0", "none", "")
    groups = next(line for line in str(refused.value).splitlines() if "privacy.groups" in line)
    assert groups.endswith('Remove it, or set privacy.trust = "central" or "local".')


@pytest.mark.parametrize(
    ("ids", "read", "written"),
    [
        ('"3, 7-9"', (3, 7, 8, 9), "3, 7-9"),
        ("[0, 1, 2, 9]", (0, 1, 2, 9), "0-2, 9"),
        ("[3, 4]", (3, 4), [3, 4]),
    ],
)
def test_clients_are_ids_or_ranges_of_them(ids: str, read: tuple[int, ...], written: object) -> None:
    first = scenario(f"clients = {ids}\nepsilon = 1.0")
    assert first.privacy.groups["cautious"].clients == read
    assert first.tables()["privacy"]["groups"]["cautious"]["clients"] == written
    assert Scenario.from_text(first.to_toml()) == first


def test_without_privacy_a_group_is_its_clients_alone() -> None:
    """`--set privacy.trust=none` leaves the groups, so that what they would reach without noise is measured."""
    plain = scenario(
        'share = 0.25\nepsilon = 1.0\nthrough = "rate"', "central", "epsilon = 4.0", "privacy.trust=none"
    )
    assert plain.tables()["privacy"]["groups"] == {"cautious": {"share": 0.25}}
    assert plan_of(plain).groups is None
    assert stored_plan(plain, plan_of(plain)) == plan_of(plain)
    local = scenario(
        'share = 0.25\nepsilon = 1.0\nthrough = "rate"', "central", "epsilon = 4.0", "privacy.trust=local"
    )
    assert local.tables()["privacy"]["groups"] == {"cautious": {"share": 0.25, "epsilon": 1.0}}
