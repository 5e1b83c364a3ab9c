"""Which node serves which logical host, where nodes err and lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from clients.app import make_app
from clients.erm import Silos
from clients.fleet import Fleet
from clients.statistics import StatisticsClients
from fedprivacy.documents.redaction import redact
from fedprivacy.errors import RunError
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.records.run_record import RunRecord
from fedprivacy.report import render
from fedprivacy.statistics.record import StatisticsRecord
from fedprivacy.verification.verify import checked_document
from scenarios.engines.embedded import EmbeddedGrid
from server.app import serve
from server.deployment_grid import PollingGrid
from server.erm import serve as serve_estimates
from server.hosts import Dealing, deal_hosts
from server.statistics import serve as serve_statistics
from tests.clients.test_erm import made as study_of_silos

NODES = [{"partition-id": at, "num-partitions": 3} for at in range(3)]
Mod = Callable[..., Message]


def grid_that_says(*answers: object) -> EmbeddedGrid:
    app = ClientApp()

    @app.query()
    def query(message: Message, context: Any) -> Message:
        said = answers[context.node_id - 1]
        if isinstance(said, Error):
            return Message(said, reply_to=message)
        content = {} if said is None else {"hosts": ConfigRecord({"hosts": said})}
        return Message(RecordDict(content), reply_to=message)

    return EmbeddedGrid(app, [{}] * len(answers))


@pytest.fixture(params=[lambda grid: grid, PollingGrid], ids=["embedded", "polling"])
def wrap(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_each_host_goes_to_the_node_that_claims_it(wrap: Any) -> None:
    assert deal_hosts(wrap(grid_that_says([0, 2], [1])), 3) == Dealing(3, {0: 1, 1: 2, 2: 1})


@pytest.mark.parametrize("greedy", [0, 1, 2], ids="node {}".format)
def test_one_node_that_claims_every_host_stops_nobody(wrap: Any, greedy: int) -> None:
    claims = [[1], [2]]
    claims.insert(greedy, [0, 1, 2])
    honest = [node for node in (1, 2, 3) if node != greedy + 1]
    dealing = deal_hosts(wrap(grid_that_says(*claims)), 3)
    assert dealing.nodes == dict(zip((1, 2), honest, strict=True))
    assert (dealing.contested, dealing.left_out) == ({}, {greedy + 1: (0, 1, 2)})
    assert dealing.to_json()["left_out"] == {str(greedy + 1): [0, 1, 2]}
    assert dealing.fault(1) is None
    kind, why = dealing.fault(0) or ("", "")
    assert kind == "no_node"
    assert f"Node {greedy + 1} was left out: it claims the logical hosts [0, 1, 2]" in why


def test_a_host_that_nobody_can_place_goes_to_none(wrap: Any) -> None:
    """Of two claimants of one host either may lie; and with two that lie no single one is to blame."""
    two = deal_hosts(wrap(grid_that_says([0, 1], [1, 2])), 3)
    assert (two.nodes, two.contested, two.left_out) == ({0: 1, 2: 2}, {1: (1, 2)}, {})
    assert two.fault(1) == (
        "contested",
        "logical host 1 is claimed by the nodes [1, 2], so that none of them serves it",
    )
    liars = deal_hosts(wrap(grid_that_says([0, 1], [2], [0, 2], [1, 3])), 4)
    assert (liars.nodes, set(liars.contested)) == ({3: 4}, {0, 1, 2})


def test_two_nodes_that_collude_take_the_place_of_a_third(wrap: Any) -> None:
    """The limit that docs/security.md names."""
    dealing = deal_hosts(wrap(grid_that_says([0, 1], [0], [1])), 2)
    assert (dealing.nodes, dealing.left_out) == ({0: 2, 1: 3}, {1: (0, 1)})


@pytest.mark.parametrize(
    "said",
    [
        Error(2, "no data\x1b[2J\nall is well"),
        [2],
        [-1],
        [0.0],
        ["0"],
        [0, 0],
        0,
        None,
        [True],
        list(range(100_000)),
    ],
    ids=str,
)
def test_a_node_that_errs_costs_itself_alone(wrap: Any, said: object) -> None:
    dealing = deal_hosts(wrap(grid_that_says(said, [0], [1])), 2)
    assert (dealing.nodes, dealing.missing) == ({0: 2, 1: 3}, [])
    assert list(dealing.errors) == [1]
    assert len(dealing.errors[1]) < 300
    assert not {"\x1b", "\n"} & set(dealing.errors[1])
    short = deal_hosts(wrap(grid_that_says(said, [0])), 2)  # nobody else serves its host
    assert (short.nodes, short.missing) == ({0: 2}, [1])
    kind, why = short.fault(1)
    assert kind == "no_node"
    assert f"Node 1 answered: {short.errors[1]}" in why


def test_where_no_host_has_a_node_the_run_ends(wrap: Any) -> None:
    with pytest.raises(RunError, match=r"logical hosts \[0, 1\] .* Node 1 answered: no data."):
        deal_hosts(wrap(grid_that_says(Error(2, "no data"))), 2)
    with pytest.raises(
        RunError,
        match=r"logical host 0 is claimed by the nodes \[1, 2\]; logical host 1 is claimed by the nodes \[1, 2\] "
        r"after \d s; 2 nodes are online, 2 answered\. Stop the nodes that were started twice",
    ):
        deal_hosts(wrap(grid_that_says([0, 1], [0, 1])), 2)
    with pytest.raises(RunError, match=r"and 5 more after . s; .* Start their nodes") as caught:
        deal_hosts(wrap(grid_that_says([15])), 16)
    assert len(str(caught.value)) < 300


def test_a_node_that_is_away_is_asked_again_and_waited_for(wrap: Any) -> None:
    assert deal_hosts(wrap(grid_that_says([0, 1], Error(5, "away"))), 2).nodes == {0: 1, 1: 1}
    with pytest.raises(
        RunError, match=r"no node serves the logical hosts \[1\] after 1 s; 2 nodes are online, 1 answered"
    ):
        deal_hosts(wrap(grid_that_says([0], Error(5, "away"))), 2, timeout=1.0)


class Filling(PollingGrid):
    """A deployment in which the second node registers late."""

    all_here = False
    looks = 0

    def get_node_ids(self) -> list[int]:
        self.looks += 1
        return [1] if self.looks == 1 else [1, 2]


@pytest.mark.parametrize(("first", "hosts"), [(Error(2, "no data"), 1), ([1], 2)], ids=["errs", "claims"])
def test_what_one_node_answers_shortens_the_wait_for_no_other(first: object, hosts: int) -> None:
    assert deal_hosts(Filling(grid_that_says(first, [0])), hosts).nodes[0] == 2


def test_the_time_that_was_waited_is_reported() -> None:
    grid = Filling(grid_that_says([0], [0]))
    grid.looks = 1
    with pytest.raises(RunError, match=r"claimed by the nodes \[1, 2\] after 1 s"):
        deal_hosts(grid, 1, timeout=0.6)


def test_a_node_that_has_answered_is_not_asked_again() -> None:
    """In a deployment each answer starts a process; and one host may come up later than another."""
    asked: list[int] = []
    app = ClientApp()

    @app.query()
    def query(message: Message, context: Any) -> Message:
        asked.append(context.node_id)
        if context.node_id == 2 and asked.count(2) < 3:
            return Message(Error(5, "away"), reply_to=message)
        return Message(
            RecordDict({"hosts": ConfigRecord({"hosts": [context.node_id - 1]})}), reply_to=message
        )

    assert deal_hosts(PollingGrid(EmbeddedGrid(app, [{}, {}])), 2).nodes == {0: 1, 1: 2}
    assert (asked.count(1), asked.count(2)) == (1, 3)


# ------------------------------------------------------------------ and what becomes of the run


def greedy(message: Message, context: Any, call_next: Any) -> Message:
    """Node 1 claims hosts 0 and 1; the second is node 2's."""
    reply = call_next(message, context)
    if message.metadata.message_type == "query" and context.node_id == 1:
        reply.content["hosts"] = ConfigRecord({"hosts": [0, 1]})
    return reply


def broken(message: Message, context: Any, call_next: Any) -> Message:
    """Node 2 cannot say what it serves."""
    if message.metadata.message_type == "query" and context.node_id == 2:
        return Message(Error(2, "label 3 of client 17"), reply_to=message)
    return call_next(message, context)


MODS = pytest.mark.parametrize(("mod", "kind"), [(greedy, "contested"), (broken, "no_node")])


def checked(document: dict[str, Any], kind: str) -> None:
    """How hosts were dealt is in the record, for the operator alone."""
    dealing = document["dealing"]
    assert dealing["nodes"] == {"1": [0], "3": [2]}
    assert dealing["contested"] == ({"1": ["1", "2"]} if kind == "contested" else {})
    assert dealing["missing"] == ([1] if kind == "no_node" else [])
    assert "dealing" not in redact(document, document["operator_only"])
    assert "Which node served which logical hosts" in render(document, operator=True)
    assert "Which node served which logical hosts" not in render(document)


@pytest.mark.exhaustive(beyond=2)
@MODS
@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_run_goes_on_without_the_clients_of_that_host(
    make_scenario, tmp_path: Path, wrap: Any, mod: Mod, kind: str, trust: str
) -> None:
    asked = make_scenario(f"privacy.trust={trust}", "federation.hosts=3", "server.rounds=2")
    people = population(asked.data)
    fleet = Fleet.of(asked, people)
    directory = RunDirectory.create(tmp_path, asked.name, asked.to_toml())
    grid = wrap(EmbeddedGrid(make_app(fleet, mods=[mod]), NODES))
    record = RunRecord(asked, fleet.plan, directory)
    serve(grid, record, people, fleet.model)
    document = directory.document()
    assert document["status"] == "finished"
    assert [event["faults"] for event in document["rounds"]] == [{kind: 4}] * 2  # of 12 clients
    assert ("logical host 1" in document["rounds"][0]["first_failure"]) is True
    checked_document(directory.path)
    checked(document, kind)
    if trust == "local":  # nothing is claimed of noise that was not there, and all who were asked are charged
        assert document["ledger"]["least_shares"] == 0
        assert document["ledger"]["participations"] == {"2": 12}


@MODS
def test_statistics_go_on_without_the_clients_of_that_host(
    make_statistics, tmp_path: Path, wrap: Any, mod: Mod, kind: str
) -> None:
    asked = make_statistics("federation.hosts=3", "privacy.trust=local")
    respondents = StatisticsClients.of(asked)
    directory = RunDirectory.create(tmp_path, asked.name, asked.to_toml())
    record = StatisticsRecord(asked, respondents.plan, directory)
    grid = wrap(EmbeddedGrid(make_app(respondents, mods=[mod]), NODES))
    serve_statistics(grid, record, respondents.people)
    document = directory.document()
    [query] = document["queries"]
    assert (query["failures"], query["answered"]) == (33, 67)
    assert "logical host 1" in query["first_failure"]
    checked(document, kind)


@MODS
def test_a_study_goes_on_without_the_silos_of_that_host(tmp_path: Path, mod: Mod, kind: str) -> None:
    scenario = study_of_silos("federation.hosts=3")
    silos = Silos.of(scenario)
    directory = RunDirectory.create(tmp_path, "silos", scenario.to_toml())
    grid = EmbeddedGrid(make_app(silos, mods=[mod]), NODES)
    serve_estimates(grid, scenario, silos.study.people, directory, silos.study.streams)
    document = directory.document()
    assert document["status"] == "finished"
    assert any("logical host 1" in json.dumps(cell.get("first_absence")) for cell in document["cells"])
    checked(document, kind)


def test_honest_nodes_change_no_number(make_scenario, trial) -> None:
    """A node that errs, and serves nothing that another does not, leaves the run as it is."""
    asked = make_scenario("federation.hosts=2")
    people = population(asked.data)
    fleet = Fleet.of(asked, people)

    def first(message: Message, context: Any, call_next: Any) -> Message:
        if message.metadata.message_type == "query" and context.node_id == 1:
            return Message(Error(2, "no data"), reply_to=message)
        return call_next(message, context)

    nodes = [{"partition-id": 0, "num-partitions": 1}] * 2
    grid = EmbeddedGrid(make_app(fleet, mods=[first]), nodes)
    spoilt = trial(asked, wrap=lambda _: grid)
    assert np.array_equal(spoilt.play(), trial(asked).play())
