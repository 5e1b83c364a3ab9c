"""The ready statistics scenarios, played smaller: each shows what it says it shows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.scenario.bundled import scenario_of_app
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.statistics import Statistics
from scenarios.authoring.catalogue import ready
from scenarios.experiments.statistics_comparison import compare
from scenarios.experiments.statistics_run import ask

MADE_UP = ("star-wars-survey", "first-names", "common-disease", "digital-goods-auction", "shuffled-survey")


def compared(name: str, out: Path, *overrides: str) -> dict[str, Any]:
    scenario = load(ready()[name], [f"compare.{one}" if one[:5] != "data." else one for one in overrides])
    assert isinstance(scenario, Statistics)
    return compare(scenario, out, workers=1)


def cell(document: dict[str, Any], **where: Any) -> dict[str, Any]:
    """The only query of the only cell that is so."""
    [found] = [one for one in document["cells"] if all(one[key] == value for key, value in where.items())]
    return next(iter(found["queries"]))


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", MADE_UP)
def test_each_runs_alone_with_a_guarantee_for_each_observer(name: str, tmp_path: Path) -> None:
    document = ask(load(ready()[name], ["data.clients=2000"]), tmp_path)
    assert document["status"] == "finished"
    epsilon = document["scenario"]["privacy"]["epsilon"]
    claims = {one["observer"]: one["epsilon"] for one in document["privacy"]["guarantees"]}
    assert claims["outsider"] == pytest.approx(epsilon, rel=1e-3 if "analyst" in claims else 1e-9)
    assert (claims["server"] is None) == (document["privacy"]["trust"] == "central")


@pytest.mark.parametrize("name", MADE_UP)
def test_flower_finds_each_in_the_bundle(name: str) -> None:
    assert scenario_of_app(f"scenarios/{name}.toml") == load(ready()[name])


@pytest.mark.exhaustive
def test_local_needs_quadratically_more_people_than_central(tmp_path: Path) -> None:
    """n >= c/(eps^2 alpha^2) against n >= c/(eps alpha): errors fall as n^(-1/2) and n^(-1).

    False alarms: 1e-5, a slope beyond 4.5 standard deviations.
    """
    document = compared(
        "star-wars-survey", tmp_path, "clients=[100, 1000, 10000]", "epsilons=[0.5, 1.0]", "repeats=60"
    )
    x = [math.log(n / 1000) for n in (100, 1000, 10_000)]
    for trust, slope, kurtosis in (("local", -0.5, 3), ("central", -1.0, 6)):
        deviation = math.sqrt((kurtosis - 1) / (4 * 60) / sum(one**2 for one in x))
        assert document["slope"][trust] == pytest.approx(slope, abs=4.5 * deviation / math.sqrt(2))
    assert {one["trust"] for one in document["slopes"]} == {"local", "central"}
    # What a hundred people tell a trusted server takes about ten thousand to tell nobody in particular.
    few, many = (
        cell(document, trust=trust, epsilon=1.0, clients=n)
        for trust, n in (("central", 100), ("local", 10_000))
    )
    assert many["rmse"] == pytest.approx(few["rmse"], rel=0.6)
    assert cell(document, trust="local", epsilon=1.0, clients=100)["rmse"] > 4 * few["rmse"]


def test_a_shuffler_is_between_a_trusted_server_and_none_at_the_same_epsilon(tmp_path: Path) -> None:
    document = compared("shuffled-survey", tmp_path, "epsilons=[1.0]", "clients=[2000]", "repeats=15")
    errors = {trust: cell(document, trust=trust)["rmse"] for trust in ("central", "shuffled", "local")}
    assert 1.5 * errors["central"] < errors["shuffled"] < errors["local"] / 2
    assert "shuffled trust against the analyst behind the shuffler" in document["finding"]
    page = (Path(document["path"]) / "report.html").read_text()
    assert "Shuffled" in page
    assert "analyst" in page


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("adjacency", "most"), [("replace-one", 384.2), ("add-remove", 192.1)])
def test_the_worst_of_ten_thousand_names_is_off_by_no_more_than_the_bound_of_the_adjacency(
    adjacency: str, most: float, tmp_path: Path
) -> None:
    """(10 + ln k)/eps with Lap(1/eps), twice that under replace-one, with probability 1 - e^-10.

    False alarms: 20 e^-10 = 1e-3 each.
    """
    text = ready()["first-names"].read_text().replace('"replace-one"', f'"{adjacency}"')
    file = tmp_path / "names.toml"
    file.write_text(text)
    given = ["compare.trusts=['central']", "compare.epsilons=[0.1]", "compare.repeats=20"]
    document = compare(load(file, [*given, "data.clients=20_000"]), tmp_path, workers=1)
    names = cell(document, trust="central")
    assert names["bound"]["at_most"] == pytest.approx(most, abs=0.1)
    assert names["bound"]["probability"] == 1 - math.exp(-10)
    assert names["within_bound"] == 1.0
    assert names["error"]["mean"] > most / 3  # and the bound is no idle one


@pytest.mark.exhaustive
def test_a_bound_holds_as_often_as_it_says(tmp_path: Path) -> None:
    """At 0.95 in 100 repeats, under either trust. False alarms: 1e-4, fewer than 86 within."""
    scenario = load(
        ready()["first-names"],
        ["queries.names.bound_probability=0.95", "data.categories=200", "data.clients=20_000",
         "compare.trusts=['central', 'local']", "compare.epsilons=[1.0]", "compare.repeats=100"],
    )  # fmt: skip
    document = compare(scenario, tmp_path, workers=1)
    for trust in ("central", "local"):
        names = cell(document, trust=trust)
        assert names["within_bound"] >= 0.86
        assert names["covered"] == pytest.approx(0.95, abs=0.01)  # 20,000 intervals
    assert cell(document, trust="local")["rmse"] > 50 * cell(document, trust="central")["rmse"]


@pytest.mark.exhaustive
def test_noisy_max_names_the_most_common_disease_far_more_often_than_released_counts_show_it(
    tmp_path: Path,
) -> None:
    """People count in up to five diseases: all counts need Lap(10/eps), a choice Lap(2/eps).

    False alarms: 1e-3.
    """
    document = compared("common-disease", tmp_path, "epsilons=[0.05]", "repeats=60", "trusts=['central']")
    right = {one["asked"]: one["queries"][0]["right"] for one in document["cells"]}
    choices = ("noisy-max", "permute-and-flip", "exponential-mechanism")
    assert min(right[name] for name in choices) > 0.85
    assert right["all-counts"] < 0.75
    for name in choices:
        assert cell(document, asked=name)["within_bound"] >= 0.85  # promised with 0.95


def test_without_noise_the_disease_is_the_one_of_most_people(tmp_path: Path) -> None:
    document = compared("common-disease", tmp_path, "trusts=['none']", "central=[]")
    assert cell(document)["answer"]["estimate"] == "high blood pressure"


@pytest.mark.exhaustive
def test_an_auction_loses_no_more_revenue_than_the_exponential_mechanism_promises(tmp_path: Path) -> None:
    document = compared(
        "digital-goods-auction", tmp_path, "clients=[100, 1000, 10000]", "epsilons=[0.5]", "repeats=40"
    )
    lost = []
    for clients in (100, 1000, 10_000):
        local = cell(document, trust="local", clients=clients)
        central = cell(document, trust="central", asked="exponential-mechanism", clients=clients)
        # 2 * 30/eps * ln(11 * 0.95/0.05), whatever the number of bids.
        assert central["bound"]["at_most"] == pytest.approx(641.1, abs=0.1)
        assert central["within_bound"] >= 0.95
        assert central["score"]["mean"] <= central["best"] == cell(
            document, trust="none", clients=clients
        )["score"]["mean"]  # fmt: skip
        assert central["error"]["mean"] < local["error"]["mean"]
        lost.append(central["error"]["mean"])
    assert lost[0] > lost[1] >= lost[2]
    assert lost[2] < 0.002
    assert document["slope"] is None  # a choice gets right faster than any power of n


@pytest.mark.exhaustive
def test_census_tables_exact_central_and_local_side_by_side(tmp_path: Path, real_data: Any) -> None:
    """False alarms: 1e-3 for the intervals, of which 90 % or more of 100 hold the truth."""
    path = f'data.path="{real_data("pums_fulton.npz")}"'
    document = compared("census-statistics", tmp_path, path, "epsilons=[1.0, 8.0]", "repeats=20")
    by_trust = {
        (one["trust"], one["epsilon"]): {query["name"]: query for query in one["queries"]}
        for one in document["cells"]
    }
    exact = by_trust["none", None]
    married = exact["married-by-education"]["answer"]["estimate"]
    assert married == sorted(married)  # who learned longer is married more often
    assert married[-1] - married[0] > 0.25
    assert exact["income"]["answer"]["estimate"] == [10_000.0, 25_000.0, 45_000.0, 90_000.0]
    for name in exact:
        assert exact[name]["error"]["mean"] == 0
        for epsilon in (1.0, 8.0):
            central, local = (by_trust[trust, epsilon][name] for trust in ("central", "local"))
            assert central["error"]["mean"] < local["error"]["mean"] / 4
            assert local["covered"] >= 0.9
        assert (
            by_trust["local", 8.0][name]["error"]["mean"] < by_trust["local", 1.0][name]["error"]["mean"] / 4
        )
    assert by_trust["central", 1.0]["married-by-education"]["error"]["mean"] < 0.005
    assert by_trust["central", 1.0]["income"]["error"]["mean"] < 0.002
