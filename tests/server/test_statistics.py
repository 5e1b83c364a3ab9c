"""A statistics run over the real apps: who is asked, what is added up, charged, written and said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Error, Message, RecordDict

from clients.app import app as client_app
from clients.app import make_app
from clients.statistics import StatisticsClients
from fedprivacy.documents.redaction import operator_only, redact
from fedprivacy.errors import InputError, RunError
from fedprivacy.messages.protocol import QueryReply, parts_of
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import render
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.record import StatisticsRecord
from fedprivacy.verification.verify import checked_document
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.experiments.statistics_run import ask, release
from server.app import app as server_app
from server.statistics import serve

ALL = """
name = "all"
seed = 3
[data]
name = "numbers"
clients = 90
median = 4.0
spread = 0.5
[queries.share]
kind = "mean-of-bits"
above = 4.0
[queries.mean]
kind = "mean"
low = 0.0
high = 9.0
[queries.count]
kind = "count"
above = 5.0
[queries.where]
kind = "histogram"
edges = [2.0, 4.0, 6.0]
[queries.usual]
kind = "most-common"
first = 0
last = 9
[queries.middle]
kind = "quantile"
low = 0.0
high = 10.0
steps = 20
quantiles = [0.25, 0.5]
[queries.price]
kind = "best-price"
prices = [1.0, 2.0, 4.0, 8.0]
[queries.by-half]
kind = "share-by-group"
by = "answer"
above = 3.0
edges = [4.0]
[privacy]
trust = "central"
epsilon = 8.0
[federation]
chunk_size = 20
hosts = 3
"""
OBSERVERS = ("server", "participant", "outsider")


def nodes(count: int) -> list[dict[str, int]]:
    return [{"partition-id": at, "num-partitions": count} for at in range(count)]


def served(
    scenario: Statistics,
    out: Path | None = None,
    *,
    count: int = 1,
    wrap: Callable[[EmbeddedGrid], Any] = lambda grid: grid,
    on_query: Callable[[dict[str, Any]], None] | None = None,
    command: str = "",
) -> StatisticsRecord:
    """A run over `count` nodes, and a grid that a test may break."""
    respondents = StatisticsClients.of(scenario)
    directory = RunDirectory.create(out, scenario.name, scenario.to_toml()) if out else None
    record = StatisticsRecord(scenario, respondents.plan, directory, command=command, on_query=on_query)
    serve(wrap(EmbeddedGrid(make_app(respondents), nodes(count))), record, respondents.people)
    return record


def numbers(record: StatisticsRecord) -> list[dict[str, Any]]:
    """What a run answered, without the time that it took."""
    return [{key: value for key, value in one.items() if key != "seconds"} for one in record.queries]


class Grid:
    """A grid in front of another, to be broken by its subclasses."""

    def __init__(self, grid: EmbeddedGrid) -> None:
        self.grid = grid

    def get_node_ids(self) -> Iterable[int]:
        return self.grid.get_node_ids()

    def send_and_receive(self, messages: Iterable[Message], **options: Any) -> Iterator[Message]:
        for message in messages:
            if message.metadata.message_type != "query.statistic":
                yield from self.grid.send_and_receive([message], **options)
                continue
            yield from self.asked(message)

    def asked(self, message: Message) -> Iterator[Message]:
        yield from self.grid.send_and_receive([message])


# ------------------------------------------------------------------ the same bits


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("trust", ["none", "local", "central"])
def test_nodes_and_the_order_of_replies_change_nothing(make_statistics, trust: str) -> None:
    class Backwards(Grid):
        def send_and_receive(self, messages: Iterable[Message], **options: Any) -> Iterator[Message]:
            yield from reversed(list(self.grid.send_and_receive(messages, **options)))

    scenario = make_statistics(f"privacy.trust={trust}", text=ALL)
    first = numbers(served(scenario))
    assert numbers(served(scenario, count=3)) == first
    assert numbers(served(scenario, count=2, wrap=Backwards)) == first
    assert numbers(release(scenario, StatisticsClients.of(scenario))) == first


def test_hosts_and_chunks_change_no_exact_total(make_statistics) -> None:
    def of(*overrides: str) -> list[Any]:
        return [
            one["estimate"]
            for one in served(make_statistics("privacy.trust=none", *overrides, text=ALL)).queries
        ]

    cut, whole = of("federation.chunk_size=7"), of("federation.hosts=1", "federation.chunk_size=1000")
    for one, other in zip(cut, whole, strict=True):
        assert one == (pytest.approx(other) if not isinstance(one, str) else other)


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("change", ["seed=4", "privacy.epsilon=8.5", "data.seed=1"])
def test_another_run_has_other_noise(make_statistics, trust: str, change: str) -> None:
    first, other = (
        served(make_statistics(f"privacy.trust={trust}", *more, text=ALL)) for more in ((), (change,))
    )
    for one, two in zip(first.queries[:2], other.queries[:2], strict=True):
        assert one["estimate"] - one["true"] != two["estimate"] - two["true"]


def test_no_noise_is_the_truth(make_statistics) -> None:
    for one in served(make_statistics("privacy.trust=none", text=ALL)).queries:
        assert one["estimate"] == (pytest.approx(one["true"]) if one["kind"] == "mean" else one["true"])
        assert one["error"] == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------ what fails


class OneNodeFails(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        if message.metadata.dst_node_id == 2:
            yield Message(Error(code=0, reason="the node is on fire"), reply_to=message)
        else:
            yield from self.grid.send_and_receive([message])


class OneNodeIsSilent(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        if message.metadata.dst_node_id != 2:
            yield from self.grid.send_and_receive([message])


class OneNodeTellsNonsense(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        for reply in self.grid.send_and_receive([message]):
            if message.metadata.dst_node_id == 2:
                arrays = QueryReply(np.full(77, np.nan), 20, 0).parts()[0]
                reply.content["arrays"] = ArrayRecord(list(arrays.values()))
            yield reply


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (OneNodeFails, "on fire"),
        (OneNodeIsSilent, "did not answer"),
        (OneNodeTellsNonsense, "not an answer"),
    ],
)
@pytest.mark.parametrize("trust", ["local", "central"])
def test_who_does_not_answer_is_counted_and_missing(make_statistics, trust, broken, words: str) -> None:
    scenario = make_statistics(f"privacy.trust={trust}", text=ALL)
    for one in served(scenario, count=3, wrap=broken).queries:
        assert (one["answered"], one["failures"], one["refusals"]) == (60, 30, 0)
        assert words in one["first_failure"]


SHUFFLED = ("privacy.trust=shuffled", "privacy.delta=1e-6", "privacy.epsilon=1.5", "data.clients=900")


def test_a_shuffler_forwards_the_messages_of_all_or_none(make_statistics, tmp_path: Path) -> None:
    scenario = make_statistics(*SHUFFLED, "federation.hosts=3", "federation.chunk_size=100")
    whole = served(scenario, tmp_path / "whole", count=3).queries
    assert [one["answered"] for one in whole] == [900]
    document = checked_document(*(tmp_path / "whole").iterdir())
    assert [one["observer"] for one in document["privacy"]["guarantees"]] == [
        "server", "analyst", "participant", "outsider",
    ]  # fmt: skip
    assert numbers(served(scenario, count=2)) == numbers(served(scenario, count=3))
    with pytest.raises(RunError, match=r"forwards the messages of all or none"):
        served(scenario, tmp_path / "broken", count=3, wrap=OneNodeFails)
    broken = written(tmp_path / "broken")
    assert (broken["status"], broken["queries"]) == ("failed", [])  # of too few messages nothing is shown
    checked_document(*(tmp_path / "broken").iterdir())


def test_nobody_answers(make_statistics, tmp_path: Path) -> None:
    class Nobody(Grid):
        def asked(self, message: Message) -> Iterator[Message]:
            yield Message(Error(code=0, reason="gone\n\x1bForged: all is well"), reply_to=message)

    with pytest.raises(RunError, match=r"query share: nobody answered. First: gone$"):
        served(make_statistics(text=ALL), tmp_path, wrap=Nobody)
    document = written(tmp_path)
    assert (document["status"], document["queries"]) == ("failed", [])
    assert document["ledger"]["rounds"] == 8  # that nobody answered may depend on the data
    assert document["ledger"]["completed"]["rounds"] == 1  # what was asked for counts, answered or not
    checked_document(*tmp_path.iterdir())


def test_the_timeout_of_a_scenario_ends_the_wait(make_statistics) -> None:
    scenario = make_statistics("federation.timeout=1e-9", text=ALL)
    with pytest.raises(RunError, match=r"nobody answered. First: the node did not answer"):
        served(scenario)


def test_a_server_that_asks_twice_gets_refusals(make_statistics) -> None:
    scenario = make_statistics("privacy.trust=local", text=ALL)
    respondents = StatisticsClients.of(scenario)
    grid = EmbeddedGrid(make_app(respondents), nodes(1))
    first, second = (StatisticsRecord(scenario, respondents.plan, None) for _ in range(2))
    serve(grid, first, respondents.people)
    with pytest.raises(
        RunError,
        match=r"query share: nobody answered. \d+ of \d+ clients refused. A client refuses a request",
    ):
        serve(grid, second, respondents.people)


class Backwards(EmbeddedGrid):
    """Brings replies in the opposite order."""

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        yield from reversed([*super().send_and_receive(messages, timeout=timeout)])


def test_replies_are_added_in_the_order_of_their_chunks(make_statistics) -> None:
    """Of the three chunks the first has a client more: taken for another's, its reply would count as wrong."""
    scenario = make_statistics("data.clients=91", "federation.chunk_size=40", text=ALL)
    respondents = StatisticsClients.of(scenario)
    found = []
    for grid in (EmbeddedGrid, Backwards):
        record = StatisticsRecord(scenario, respondents.plan, None)
        serve(grid(make_app(respondents), nodes(3)), record, respondents.people)
        found.append([{**query, "seconds": 0} for query in record.queries])
    assert found[0] == found[1]


class Liar(EmbeddedGrid):
    """One node of three replies with totals that no honest one has."""

    def __init__(self, respondents: StatisticsClients, totals: list[float]) -> None:
        super().__init__(make_app(respondents), nodes(3))
        self.totals = totals

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        for reply in super().send_and_receive(messages, timeout=timeout):
            if reply.metadata.src_node_id == 1 and "arrays" in reply.content:
                lie = np.resize(np.array(self.totals), parts_of(reply)[0]["totals"].shape)
                reply.content["arrays"] = ArrayRecord({"totals": Array(lie)})
            yield reply


@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("totals", [[-1.0], [1e30], [500.0], [0.5]])
def test_a_node_that_lies_is_one_that_failed(make_statistics, trust: str, totals: list[float]) -> None:
    scenario = make_statistics(f"privacy.trust={trust}", text=ALL)
    respondents = StatisticsClients.of(scenario)
    record = StatisticsRecord(scenario, respondents.plan, None)
    serve(Liar(respondents, totals), record, respondents.people)
    for query in record.queries:
        noisy = trust == "local" and query["mechanism"] == "laplace"
        fits = noisy or (totals == [0.5] and trust == "central")
        assert (query["failures"], query["answered"]) == ((0, 90) if fits else (30, 60)), query["name"]


def test_exact_totals_are_divided_by_the_number_of_clients_whoever_answers(make_statistics) -> None:
    """Divided by those who answered, a published mean would tell how many they were."""
    scenario = make_statistics("privacy.trust=central", "privacy.epsilon=10000", text=ALL)
    respondents = StatisticsClients.of(scenario)
    record = StatisticsRecord(scenario, respondents.plan, None)
    serve(Liar(respondents, [-1.0]), record, respondents.people)
    share = record.queries[0]["estimate"]
    assert record.queries[0]["answered"] == 60
    assert share * 90 == pytest.approx(round(share * 90), abs=1e-6)


# ------------------------------------------------------------------ the record


def written(out: Path) -> dict[str, Any]:
    [path] = out.iterdir()
    return json.loads((path / "run.json").read_text())


class Killed(BaseException):
    """Nothing in the code catches it: what is on disk is what a killed process leaves."""


@pytest.mark.parametrize(
    ("stop", "status", "released"),
    [(Killed, "running", None), (KeyboardInterrupt, "interrupted", 3), (ZeroDivisionError, "failed", 3)],
)
def test_a_run_that_breaks_off_is_charged_for_its_whole_plan(
    make_statistics, tmp_path, stop, status: str, released: int | None
) -> None:
    def on_query(result: dict[str, Any]) -> None:
        if result["name"] == "mean":
            raise stop

    with pytest.raises(stop):
        served(make_statistics(text=ALL), tmp_path, on_query=on_query)
    document = written(tmp_path)
    assert (document["status"], document["ledger"]["rounds"]) == (status, 8)
    checked_document(*tmp_path.iterdir())
    assert against_outsiders(document["privacy"]) == pytest.approx(8.0)
    second = document["privacy"].get("completed")
    assert (second and second["rounds"]) == released
    assert ("Whole plan: the claim" in render(document)) == (second is not None)
    if second:
        assert against_outsiders(second) == pytest.approx(released * 1.0)


def against_outsiders(stated: dict[str, Any]) -> float:
    [outsider] = [one for one in stated["guarantees"] if one["observer"] == "outsider"]
    return outsider["epsilon"]


def test_before_a_query_is_asked_the_whole_plan_is_charged(make_statistics, tmp_path: Path) -> None:
    seen = []

    def on_query(result: dict[str, Any]) -> None:
        seen.append(written(tmp_path))

    served(make_statistics(text=ALL), tmp_path, on_query=on_query)
    assert {one["ledger"]["rounds"] for one in seen} == {8}
    assert {one["status"] for one in seen} == {"running"}


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
@pytest.mark.parametrize("trust", ["none", "local", "central"])
def test_each_observer_is_told_what_holds(make_statistics, tmp_path, trust: str, adjacency: str) -> None:
    if trust == "local" and adjacency != "replace-one":
        pytest.skip("refused: the server sees who answers")
    scenario = make_statistics(f"privacy.trust={trust}", f"privacy.adjacency={adjacency}", text=ALL)
    served(scenario, tmp_path)
    document = written(tmp_path)
    assert (document["kind"], document["status"]) == ("statistics", "finished")
    protected = {"none": (), "local": OBSERVERS, "central": OBSERVERS[1:]}[trust]
    for one in document["privacy"]["guarantees"]:
        words = one["words"]
        assert one["of"] == "statistics"
        if one["observer"] not in protected:
            assert one["epsilon"] is None
            assert words.startswith("No guarantee against")
            continue
        assert one["epsilon"] == pytest.approx(8.0, rel=1e-9)
        for said in (
            "epsilon = 8 at delta = 0",
            "8 queries",
            f"trust {trust}",
            f"(unit client, {adjacency})",
        ):
            assert said in words
        assert ("number of clients" in words) == (adjacency == "replace-one")
        assert ("how many clients there are" in words) == (adjacency != "replace-one")
        assert ("each client randomises its own answers" in words) == (trust == "local")
        assert ("the server is honest" in words) == (trust == "central")
        assert "the true values" in words
    checked_document(*tmp_path.iterdir())


def test_clients_that_were_handed_their_plan_say_so(make_statistics) -> None:
    from fedprivacy.statistics.ledger import ledger

    plan = StatisticsClients.of(make_statistics("privacy.trust=local", text=ALL)).plan
    for held, words in (
        (True, "whatever the server requests"),
        (False, "the submitter of the run is honest"),
    ):
        [claim] = [one for one in ledger(plan, 8, held=held)["claims"] if one["observer"] == "server"]
        assert words in claim["assumptions"][0]


def test_a_changed_record_is_found_out(make_statistics, tmp_path: Path) -> None:
    served(make_statistics(text=ALL), tmp_path)
    document = written(tmp_path)
    document["privacy"]["guarantees"][1]["epsilon"] = 0.5
    [path] = tmp_path.iterdir()
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(
        InputError, match=r"privacy.guarantees\[1\].epsilon: says 0.5, its scenario implies 8"
    ):
        checked_document(path)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from leaves(item, f"{path}[{at}]")
    else:
        yield path, value


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_where_a_client_may_be_missing_nothing_published_tells_how_many_there_are(
    make_statistics, tmp_path: Path, adjacency: str
) -> None:
    """The same run of 90 and of 91 clients, redacted: what differs are noisy answers, time and folder."""
    told = []
    for clients in (90, 91):
        scenario = make_statistics(
            f"privacy.adjacency={adjacency}", f"data.clients={clients}", "compare={clients=[90,91]}", text=ALL
        )
        served(scenario, tmp_path / str(clients), command=f"fedprivacy run --set data.clients={clients}")
        document = written(tmp_path / str(clients))
        published = redact(document, [*operator_only(document), *document["simulation_only"]])
        told.append(dict(leaves(published)))
    noisy = (".estimate", ".low", ".high", ".started", ".path")
    differing = {path for path in told[0].keys() | told[1].keys() if told[0].get(path) != told[1].get(path)}
    left = {path for path in differing if not any(part in path for part in noisy)}
    assert left == set()
    for path, value in told[0].items():
        assert value != 90 or any(part in path for part in noisy), path


def test_operator_only_fields_are_there_to_be_kept_back(make_statistics, tmp_path: Path) -> None:
    served(make_statistics("privacy.adjacency=add-remove", text=ALL), tmp_path)
    document = written(tmp_path)
    for path in document["operator_only"]:
        if path.startswith("scenario.compare") or path == "scenario_digest":
            continue
        value: Any = document
        for part in path.replace("[]", ".0").split("."):
            value = value[int(part)] if part.isdigit() else value[part]


def test_events_hold_each_query_as_it_was_answered(make_statistics, tmp_path: Path) -> None:
    document = ask(make_statistics(text=ALL), tmp_path)
    assert document == written(tmp_path)
    lines = (Path(document["path"]) / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == document["queries"]
    assert [one["round"] for one in document["queries"]] == list(range(8))
    assert (Path(document["path"]) / "report.html").exists()


# ------------------------------------------------------------------ as `flwr run` plays it


@pytest.mark.parametrize("trust", ["local", "central"])
def test_the_apps_of_flwr_run_give_the_same_answers(make_statistics, tmp_path, capsys, trust: str) -> None:
    """The run config alone tells both apps what to do: a scenario, as one string, and a folder."""
    scenario = make_statistics(f"privacy.trust={trust}", text=ALL)
    config = {"scenario": scenario.to_toml(compare=False), "out": str(tmp_path), "allow-code": False}
    grid = EmbeddedGrid(client_app, nodes(2), config)
    server_app(grid, Context(grid.run.run_id, 0, {}, RecordDict(), dict(config)))
    document = written(tmp_path)
    assert "run.json" in capsys.readouterr().out
    embedded = release(scenario, StatisticsClients.of(scenario))
    for one, other in zip(document["queries"], embedded.queries, strict=True):
        assert one["estimate"] == other["estimate"]
    assert document["command"] == "flwr run ."
    held = {"local": "the submitter of the run is honest", "central": "the server is honest"}[trust]
    assert any(held in one["words"] for one in document["privacy"]["guarantees"])


def test_replies_hold_finite_totals_of_one_shape(make_statistics) -> None:
    """What travels is float64 of shape (cells,), and both counts; nothing else."""
    seen = []

    class Watched(Grid):
        def asked(self, message: Message) -> Iterator[Message]:
            for reply in self.grid.send_and_receive([message]):
                arrays, values = parts_of(reply)
                seen.append((sorted(arrays), sorted(values), arrays["totals"].dtype.str))
                assert all(math.isfinite(total) for total in arrays["totals"])
                yield reply

    served(make_statistics("privacy.trust=local", text=ALL), wrap=Watched)
    assert set(map(str, seen)) == {str((["totals"], ["answered", "refused"], "<f8"))}
