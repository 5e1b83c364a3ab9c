"""A comparison of statistics: its cells, its repeats, its document, and what is left of a broken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.killing import timeless
from clients.statistics import StatisticsClients
from fedprivacy.errors import InputError
from fedprivacy.statistics.cells import ONE_RUN_ALONE
from scenarios.experiments.statistics_comparison import BATCH, cells_of, compare
from scenarios.experiments.statistics_run import release

SMALL = """
name = "sweep"
seed = 5
[data]
name = "bits"
clients = 40
share = 0.6
[queries.seen]
kind = "mean-of-bits"
[queries.many]
kind = "count"
[privacy]
trust = "central"
epsilon = 1.0
[compare]
epsilons = [0.5, 2.0]
clients = [20, 200]
repeats = 3
"""


def written(out: Path) -> dict[str, Any]:
    [path] = out.iterdir()
    assert (path / "report.html").exists()
    return json.loads((path / "run.json").read_text())


def test_a_cell_for_each_trust_mechanism_epsilon_and_number_of_clients(make_statistics) -> None:
    cells = list(cells_of(make_statistics("compare.local=['auto','laplace']", text=SMALL)))
    found = [(cell.trust, cell.mechanism, cell.epsilon, cell.clients) for cell in cells]
    noisy = [(e, n) for e in (0.5, 2.0) for n in (20, 200)]
    assert found == [
        ("none", None, None, 20),
        ("none", None, None, 200),
        *(("central", None, *point) for point in noisy),
        *(("local", "auto", *point) for point in noisy),
        *(("local", "laplace", *point) for point in noisy),
    ]
    assert {cell.scenario.queries["seen"].local for cell in cells if cell.mechanism == "laplace"} == {
        "laplace"
    }
    assert {cell.scenario.population for cell in cells} == {20, 200}
    assert cells[-1].label == "local, laplace, epsilon 2, 200 clients"
    assert cells[-1].seeded(9).seed == 9


@pytest.mark.exhaustive
def test_the_numbers_do_not_depend_on_the_number_of_workers(make_statistics, tmp_path: Path) -> None:
    scenario = make_statistics(f"compare.repeats={BATCH + 2}", "compare.epsilons=[1.0]", text=SMALL)
    one, two = (compare(scenario, tmp_path / str(n), workers=n) for n in (1, 2))
    assert timeless(one) == timeless(two)


def test_each_repeat_is_a_run_of_its_own_seed(make_statistics, tmp_path: Path) -> None:
    scenario = make_statistics("compare.trusts=['local']", "compare.epsilons=[2.0]", text=SMALL)
    document = compare(scenario, tmp_path, workers=1)
    cell = scenario.cell("local", 2.0, 5, 200)
    runs = []
    for seed in (5, 6, 7):
        own = cell.model_copy(update={"seed": seed})
        runs.append(release(own, StatisticsClients.of(own)).queries)
    for number, query in enumerate(document["cells"][1]["queries"]):
        assert query["error"]["mean"] == pytest.approx(sum(run[number]["error"] for run in runs) / 3)
        assert query["answer"]["estimate"] == runs[0][number]["estimate"]
    assert len({run[0]["estimate"] for run in runs}) > 1


def test_the_document_of_a_comparison(make_statistics, tmp_path: Path) -> None:
    said = []
    document = compare(
        make_statistics(text=SMALL), tmp_path, workers=1, command="it", on_run=lambda *one: said.append(one)
    )
    assert document == written(tmp_path)
    assert (document["kind"], document["status"], document["command"]) == (
        "compare-statistics",
        "finished",
        "it",
    )
    assert len(document["cells"]) == 10
    assert [cell["repeats"] for cell in document["cells"]] == [1, 1, *[3] * 8]
    assert said[-1][1:] == (26, 26)
    assert document["slope"] is None  # of a share and of counts there is no one slope
    assert {one["trust"] for one in document["slopes"]} == {"local", "central"}
    assert document["finding"].startswith("At epsilon 2 and 200 clients")
    assert ONE_RUN_ALONE in document["notes"]
    for cell in document["cells"]:
        stated = {one["observer"]: one["epsilon"] for one in cell["guarantees"]}
        protected = {"none": [], "central": ["participant", "outsider"], "local": list(stated)}[cell["trust"]]
        for observer, spent in stated.items():
            expected = cell["epsilon"] if observer in protected else None
            assert spent == (None if expected is None else pytest.approx(expected, rel=1e-9))


@pytest.mark.exhaustive
def test_errors_fall_with_clients_as_the_lectures_say(make_statistics, tmp_path: Path) -> None:
    """Of a share: n^-1/2 under local trust, n^-1 under central trust; the intervals of the slopes hold it.

    False-alarm rate about 5 % each, with a fixed seed.
    """
    scenario = make_statistics(
        "compare={trusts=['local','central'], epsilons=[1.0], clients=[100, 3000, 100000], repeats=20}",
        "queries={seen={kind='mean-of-bits', central='laplace'}}", text=SMALL,
    )  # fmt: skip
    found = {one["trust"]: one for one in compare(scenario, tmp_path, workers=1)["slopes"]}
    assert found["local"]["low"] <= -0.5 <= found["local"]["high"]
    assert found["central"]["low"] <= -1.0 <= found["central"]["high"]


class Stopped(BaseException):
    """Nothing in the code catches it."""


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize(
    ("stop", "status"),
    [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "failed"), (Stopped, "failed")],
)
@pytest.mark.parametrize("after", [1, 11, 20])
def test_a_comparison_that_breaks_off_leaves_what_has_finished(
    make_statistics, tmp_path: Path, stop: type[BaseException], status: str, after: int
) -> None:
    def on_run(label: str, done: int, total: int) -> None:
        if done >= after:
            raise stop("it broke")

    with pytest.raises(stop):
        compare(make_statistics(text=SMALL), tmp_path, workers=1, on_run=on_run)
    document = written(tmp_path)
    assert document["status"] == status
    assert document["error"] or stop is Stopped
    assert sum(cell["repeats"] for cell in document["cells"]) >= after
    assert document["finding"]


def test_a_comparison_is_stopped_with_its_processes(make_statistics, tmp_path: Path) -> None:
    def on_run(label: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(make_statistics(text=SMALL), tmp_path, workers=2, on_run=on_run)
    assert written(tmp_path)["status"] == "interrupted"


def test_what_cannot_be_played_is_said_before_anything_is_written(make_statistics, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a comparison takes delta from the scenario itself"):
        compare(make_statistics("privacy.trust=none", text=SMALL), tmp_path, workers=1)
    tiny = make_statistics("compare.epsilons=[1e-7]", text=SMALL)
    with pytest.raises(InputError, match="epsilon = 5e-08"):
        compare(tiny, tmp_path, workers=1)
    assert list(tmp_path.iterdir()) == []
    alone = make_statistics("privacy.trust=none", "compare.trusts=['none']", text=SMALL)
    assert compare(alone, tmp_path, workers=1)["finding"].startswith("Only exact answers")


def test_where_sizes_are_private_a_comparison_says_that_it_shows_them(
    make_statistics, tmp_path: Path
) -> None:
    document = compare(make_statistics("privacy.adjacency=add-remove", text=SMALL), tmp_path, workers=1)
    marked = {*document["simulation_only"], *document["operator_only"]}
    for place in ("scenario.data.clients", "scenario.compare.clients", "cells[].clients",
                  "cells[].ledger.population", "performance.peak_memory_mb", "finding", "slopes", "slope"):  # fmt: skip
        assert place in marked
    assert any("the number of clients is itself private" in note for note in document["notes"])
    for cell in document["cells"]:
        assert all("number of clients" not in one["words"] for one in cell["guarantees"])
