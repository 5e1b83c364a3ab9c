"""A whole run over pinned nodes with one client each: the server's code gets sums under masks alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Message

from fedprivacy import report
from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.secure_sum.transcript import Phase
from scenarios.cli.display import show_run
from server.masked_grid import MaskedSum, Masks
from server.messages import request_to
from tests.server.masked import CLIENTS, TEXT, MaskedNodes, Wire, served, with_values


@pytest.fixture
def nodes(tmp_path: Path) -> MaskedNodes:
    return MaskedNodes(tmp_path, TEXT, "federation.timeout=3")


def test_a_run_moves_the_model_by_sums_under_masks_and_says_so(nodes: MaskedNodes) -> None:
    wire = Wire(nodes)
    document = served(nodes, wire)
    assert document["status"] == "finished"
    assert [event["contributed"] for event in document["rounds"]] == [None] * 3
    assert {message.metadata.message_type for _, _, message in wire.requests} == {"train.secure_sum"}
    for guarantee in document["privacy"]["guarantees"]:
        assert guarantee["epsilon"] is not None
        assert TrainingAssumption.MASKED_SUM in guarantee["assumptions"]
        assert TrainingAssumption.SHARES_PINNED in guarantee["assumptions"]
        assert TrainingAssumption.IDEAL_SUM not in guarantee["assumptions"]
    assert (
        "masks, honest-but-curious server, at least n_min survivors of whom at most t collude; computational"
        in (TrainingAssumption.MASKED_SUM)
    )


@pytest.mark.exhaustive
def test_a_round_with_too_few_survivors_moves_nothing_and_the_run_goes_on(nodes: MaskedNodes) -> None:
    def lose(phase: Phase, client: int, message: Message) -> Message | None:
        number = message.content.config_records["values"]["round"]
        return None if number == 1 and client < 2 and phase is Phase.INPUTS else message

    document = served(nodes, Wire(nodes, request=lose))
    assert [event.get("void", False) for event in document["rounds"]] == [False, True, False]
    assert document["rounds"][1]["faults"] == {"no_answer": 2}
    reasons = [event.get("void_reason") for event in document["rounds"]]
    assert reasons == [None, "3 clients in the phase of inputs, fewer than 4", None]
    whole = MaskedNodes(_folder(nodes, "whole"), TEXT, "federation.timeout=3")
    assert document["privacy"]["guarantees"] == served(whole, Wire(whole))["privacy"]["guarantees"]


@pytest.mark.exhaustive
def test_the_reason_of_a_void_round_is_the_operators(nodes: MaskedNodes, capsys) -> None:
    """All inputs came, and too few nodes opened them: the counts of clients do not explain that."""

    def lose(phase: Phase, client: int, message: Message) -> Message | None:
        return with_values(message, message=b"") if client < 3 and phase is Phase.OPENING else message

    document = served(nodes, Wire(nodes, reply=lose))
    assert [event["failures"] for event in document["rounds"]] == [0] * 3
    reason = "2 clients in the phase of opening, fewer than 3"
    assert [event["void_reason"] for event in document["rounds"]] == [reason] * 3
    page = report.render(document)
    assert "3 of 3 rounds were void, with too few clients" in page
    assert reason not in page
    assert reason in report.render(document, operator=True)
    capsys.readouterr()
    show_run(document)
    assert f"operator-only: 3 of 3 rounds void, most often: {reason}" in capsys.readouterr().out
    show_run({**public(document), "path": "elsewhere"})
    assert "operator-only" not in capsys.readouterr().out


def _folder(nodes: MaskedNodes, name: str) -> Path:
    folder = nodes.folder / name
    folder.mkdir()
    return folder


@pytest.mark.exhaustive
def test_a_second_run_of_a_plan_is_refused_by_every_node(nodes: MaskedNodes) -> None:
    served(nodes, Wire(nodes))
    again = nodes.folder / "again"
    with pytest.raises(RunError, match="no client's data are in the model: of 15 requests"):
        served(nodes, Wire(nodes), out=str(again))
    [path] = again.glob("*/run.json")
    document = json.loads(path.read_text())
    assert [event["refusals"] for event in document["rounds"]] == [CLIENTS] * 3


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"pinned": False}, "nodes with records of their own sum under masks"),
        ({"roster": ""}, "for which the server needs their public keys"),
        ({"roster": "no roster"}, "run config: roster, line 1"),
    ],
)
def test_a_run_without_what_masks_need_is_refused_before_any_message(
    nodes: MaskedNodes, config: dict, problem: str
) -> None:
    wire = Wire(nodes)
    with pytest.raises(InputError, match=problem):
        served(nodes, wire, **config)
    assert not wire.requests
    assert not (nodes.folder / "runs").exists()


def test_masks_need_a_key_and_a_host_for_each_client_and_enough_survivors(nodes: MaskedNodes) -> None:
    roster, shares = nodes.roster, nodes.shares
    assert Masks.of(roster, shares, CLIENTS, CLIENTS, 1).parameters == nodes.parameters
    with pytest.raises(InputError, match=r"federation\.hosts = 2: a secure sum by masks counts nodes"):
        Masks.of(roster, shares, CLIENTS, 2, 1)
    with pytest.raises(InputError, match="lacks the keys of clients 5"):
        Masks.of(roster, shares, CLIENTS + 1, CLIENTS + 1, 1)
    with pytest.raises(InputError, match=r"min_survivors = 2: too few for masks.*Use at least 3"):
        Masks.of(roster, replace(shares, min_survivors=2), CLIENTS, CLIENTS, 1)


def test_requests_with_two_models_have_no_sum(nodes: MaskedNodes) -> None:
    wire = Wire(nodes)
    grid = MaskedSum(wire, Masks.of(nodes.roster, nodes.shares, CLIENTS, CLIENTS, nodes.scenario.seed))
    requests = [
        request_to(
            client + 1,
            "train",
            f"0/{client}",
            *replace(nodes.training(weight=float(client)), host=client, clients=nodes.ids(client)).parts(),
        )
        for client in range(CLIENTS)
    ]
    with pytest.raises(RunError, match="different models"):
        list(grid.send_and_receive(requests))
    assert not wire.requests


def test_a_scenario_without_records_on_nodes_sums_under_masks_on_pinned_nodes_too(tmp_path: Path) -> None:
    text = TEXT.replace(
        'name = "on-nodes"\nfeatures = 4\nclasses = 2',
        'name = "synthetic"\nrecords = 60\ntest_records = 20\nfeatures = 4\npartition = "iid"',
    )
    nodes = MaskedNodes(tmp_path, text, "server.rounds=1")
    document = served(nodes, Wire(nodes, data=None))
    assert document["status"] == "finished"
    assert TrainingAssumption.MASKED_SUM in document["privacy"]["guarantees"][-1]["assumptions"]
