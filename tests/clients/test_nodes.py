"""Nodes of owners who hold their own plan, before a server that asks for something else."""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from benchmarks.faulty import TRIGGER
from clients import budget_account
from clients.app import _app, app, faults_of
from clients.error_filter import KINDS
from clients.node import clients_of_node
from clients.owner import Owner
from fedprivacy.account.account import Account
from fedprivacy.account.entering import create, enter
from fedprivacy.account.policy import Policy
from fedprivacy.errors import Refusal
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.privunit import PrivUnitG
from fedprivacy.messages.protocol import TrainReply, TrainRequest, parts_of
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.batches import PoissonBatches
from fedprivacy.sampling.cohorts import FixedSampling
from fedprivacy.scenario import Scenario
from fedprivacy.training.model_spec import model_spec
from scenarios.engines.embedded import EmbeddedGrid
from server.messages import request_to

PARAMETERS = 10  # logistic, 4 features, 2 classes
EXAMPLES = (
    "privacy.unit=example",
    "privacy.delta=1e-4",
    "data.records_per_client=20",
    "training={batches='poisson', rate=0.2, steps=3, learning_rate=0.5}",
)


@pytest.fixture
def plan(make_scenario, on_nodes_text) -> Plan:
    return plan_of(make_scenario(text=on_nodes_text))


def grid(*configs: dict[str, Any], **run_config: Any) -> EmbeddedGrid:
    """A Flower run over nodes; another one knows nothing of it, as after a restart of everything."""
    return EmbeddedGrid(app, configs, run_config)


def plan_by_code(scenario: Scenario) -> Plan:
    """The plan of a scenario whose model is code, which the test trusts."""
    return plan_of(scenario, model_spec(scenario.model, (4,), 2, allow_code=True))


def request(plan: Plan, clients: Any = (0,), **changes: Any) -> TrainRequest:
    host = int(np.ravel(clients)[0]) % 3 if len(np.ravel(clients)) else 0
    asked = TrainRequest(
        0, host, 0, np.array(clients, np.int64), np.zeros(PARAMETERS, np.float32), plan, "each"
    )
    return replace(asked, **changes)


def sent(nodes: EmbeddedGrid, asked: TrainRequest, node: int = 1) -> Message:
    [reply] = nodes.send_and_receive([request_to(node, "train", "0/0", *asked.parts())])
    return reply


def hosts_of(nodes: EmbeddedGrid) -> Message:
    """What a node says when it is asked who lives there, as at the beginning of each run."""
    [reply] = nodes.send_and_receive([Message(RecordDict({}), dst_node_id=1, message_type="query")])
    return reply


def answered(nodes: EmbeddedGrid, asked: TrainRequest, node: int = 1) -> TrainReply:
    reply = sent(nodes, asked, node)
    assert not reply.has_error(), reply.error.reason
    return TrainReply.of(*parts_of(reply), parameters=PARAMETERS, observe=asked.observe)


def refused(reply: Message, kind: str) -> None:
    """Nothing but the kind of the refusal is told, whatever the node's log has."""
    assert reply.has_error()
    told = reply.error.reason.split("\n")[0]
    assert told == f"fedprivacy.errors.Refusal: {kind}: {KINDS[kind]}"
    assert "direct cause" not in reply.error.reason
    assert "another exception occurred" not in reply.error.reason


# ------------------------------------------------------------------ a malicious server


WORSE = {
    "a larger norm": lambda plan: replace(plan, mechanism=Gaussian(10.0, 2.0)),
    "less noise": lambda plan: replace(plan, mechanism=Gaussian(1.0, 0.1)),
    "no noise": lambda plan: replace(plan, mechanism=Gaussian(1.0, 0.0)),
    "no trust model": lambda plan: replace(
        plan, trust="none", mechanism=None, max_participations=None, noise_draw=None
    ),
    "central noise": lambda plan: replace(plan, trust="central", max_participations=None, noise_draw=None),
    "more rounds": lambda plan: replace(plan, rounds=30),
    "more answers": lambda plan: replace(plan, max_participations=30),
    "another sampler": lambda plan: replace(plan, sampler=FixedSampling(3)),
    "another adjacency": lambda plan: replace(plan, adjacency="zero-out"),
    "another unit": lambda plan: replace(plan, unit="example", batches=PoissonBatches(1, 1.0, None)),
    "another mechanism": lambda plan: replace(plan, mechanism=PrivUnitG(1.0, 100.0)),
    "a larger delta": lambda plan: replace(plan, delta=0.3),
    "another population": lambda plan: replace(plan, population=4),
}


@pytest.mark.parametrize("asked", WORSE)
def test_a_server_that_asks_for_another_plan_is_refused_and_nothing_is_spent(
    owners, plan: Plan, asked: str, capsys
) -> None:
    nodes = grid(owners.config())
    refused(sent(nodes, request(WORSE[asked](plan))), "plan")
    assert "the request has another plan" in capsys.readouterr().err
    assert not owners.account().exists()
    assert len(answered(nodes, request(plan)).clients) == 1


OTHERWISE = {
    "another client of another host": ({"clients": np.array([1])}, "clients"),
    "another host": ({"host": 1}, "clients"),
    "a client that there is not": ({"clients": np.array([3])}, "clients"),
    "a client twice": ({"clients": np.array([0, 0])}, "clients"),
    "a negative client": ({"clients": np.array([-3])}, "clients"),
    "weights that are not finite": ({"weights": np.full(PARAMETERS, np.nan, np.float32)}, "model"),
    "an infinite weight": ({"weights": np.full(PARAMETERS, np.inf, np.float32)}, "model"),
    "too many weights": ({"weights": np.zeros(PARAMETERS + 1, np.float32)}, "model"),
    "no weights": ({"weights": np.zeros(0, np.float32)}, "model"),
    "a round beyond the plan": ({"round": 3}, "round"),
    "a round before the plan": ({"round": -1}, "request"),
    "a round that no number holds": ({"round": 2**60}, "request"),
    "weights of another type": ({"weights": np.zeros(PARAMETERS)}, "request"),
    "a square of weights": ({"weights": np.zeros((5, 2), np.float32)}, "request"),
    "something else to see": ({"observe": "gradients"}, "request"),
}


@pytest.mark.parametrize("asked", OTHERWISE)
def test_what_the_plan_does_not_cover_is_refused_and_nothing_is_spent(owners, plan: Plan, asked: str) -> None:
    changes, kind = OTHERWISE[asked]
    refused(sent(grid(owners.config()), request(plan, **changes)), kind)
    assert not owners.account().exists()


@pytest.mark.parametrize("draw", ["client", "sum"])
def test_single_messages_are_refused_where_sums_were_agreed(
    owners, make_scenario, on_nodes_text, draw
) -> None:
    own = (f"privacy.noise_draw={draw}", "federation.observe=sum")
    plan = plan_of(make_scenario(*own, text=on_nodes_text))
    nodes = grid(owners.config(0, *own))
    refused(sent(nodes, request(plan)), "messages")
    assert not owners.account().exists()
    assert len(answered(nodes, request(plan, observe="sum")).clients) == 1


def test_what_is_no_request_is_refused(owners, plan: Plan) -> None:
    nodes, (arrays, values) = grid(owners.config()), request(plan).parts()
    broken = [
        ({}, values),
        (arrays, {}),
        (arrays, {**values, "plan": "{}"}),
        (arrays, {**values, "plan": "["}),
        (arrays, {**values, "round": "soon"}),
    ]
    for some, other in broken:
        [reply] = nodes.send_and_receive([request_to(1, "train", "0/0", some, other)])
        refused(reply, "request")
    content = RecordDict({"x": ArrayRecord({"x": Array(np.zeros(1))}), "y": ConfigRecord({})})
    [reply] = nodes.send_and_receive([Message(content, dst_node_id=1, message_type="train")])
    refused(reply, "request")
    assert not owners.account().exists()


def test_any_model_of_the_right_size_is_trained_and_what_leaves_is_noised(owners, plan: Plan) -> None:
    """The server may send what it likes: huge weights make gradients that are not numbers, and noise alone."""
    told = answered(grid(owners.config()), request(plan, weights=np.full(PARAMETERS, 3e38, np.float32)))
    assert np.isfinite(told.updates).all()
    assert told.faults.zeroed == told.faults.failed == 0  # that is not told


def test_neither_another_scenario_nor_code_can_be_brought_by_a_run(
    owners, plan: Plan, make_scenario, base_text
) -> None:
    other = make_scenario("privacy={trust='none'}", text=base_text)
    run_config = {"scenario": other.to_toml(), "noise": "seeded", "allow-code": True}
    nodes = grid(owners.config(), **run_config)
    refused(sent(nodes, request(plan_of(other))), "plan")
    assert len(answered(nodes, request(plan)).clients) == 1


def test_a_run_cannot_allow_the_code_of_a_nodes_own_scenario(
    owners, plan: Plan, make_scenario, on_nodes_text, tmp_path, monkeypatch
) -> None:
    """Only its owner can."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ownmodel.py").write_text(
        "import pathlib, torch\npathlib.Path('was-run').touch()\n"
        "def make(features, classes):\n    return torch.nn.Linear(features[0], classes)\n"
    )
    code = "model={name='code', factory='ownmodel:make'}"
    refused(hosts_of(grid(owners.config(0, code), **{"allow-code": True})), "scenario")
    assert not (tmp_path / "was-run").exists()
    nodes = grid(owners.config(0, code, allow_code=True))
    refused(sent(nodes, request(plan)), "plan")  # of a model by name, whose weights are all drawn
    assert len(answered(nodes, request(plan_by_code(make_scenario(code, text=on_nodes_text)))).clients) == 1


@pytest.mark.parametrize("trust", ["local", "central"])
def test_batches_and_steps_of_records_are_the_nodes_own(
    owners, make_scenario, on_nodes_text, trust: str
) -> None:
    rates = "training={batches='poisson', rate=0.2, steps=1, learning_rate=0.5}"
    own = (*EXAMPLES, f"privacy.trust={trust}", *([rates] if trust == "central" else []))
    plan = plan_of(make_scenario(*own, text=on_nodes_text))
    nodes = grid(owners.config(0, *own))
    steps = 1 if trust == "central" else 100  # a plan with more has no central noise
    for batches in (PoissonBatches(steps, 0.3, None), PoissonBatches(steps, 1.0, None)):
        refused(sent(nodes, request(replace(plan, batches=batches), observe="sum")), "plan")
    refused(sent(nodes, request(replace(plan, mechanism=Gaussian(1e6, 2.0)), observe="sum")), "plan")
    for number in range(3):
        told = answered(nodes, request(plan, round=number, observe="sum"))
        assert len(told.clients) == 1
        again = answered(nodes, request(plan, round=number, observe="sum"))
        assert (len(again.clients), again.refused) == (0, 1)
        assert not again.updates.any()


def test_who_hangs_or_kills_its_process_answers_like_any_other(owners, make_scenario, on_nodes_text) -> None:
    """Else the server, which is the adversary, would get no answer, or an error, from that one alone."""
    for harm, counted in (("hang", "late"), ("kill", "worker_died")):
        model = (
            f"model={{name='code', factory='benchmarks.faulty:make', options={{harm='{harm}', mark='none'}}}}"
        )
        own = (model, "federation.client_timeout=1.0")
        config = owners.config(0, *own, allow_code=True)
        owners.account().unlink(missing_ok=True)
        owners.give(0, x_train=np.full((20, 4), TRIGGER))
        nodes = grid(config)
        told = answered(nodes, request(plan_by_code(make_scenario(*own, text=on_nodes_text))))
        assert (told.clients.tolist(), told.faults.by_kind) == ([0], {})
        assert told.updates.any()
        assert faults_of(nodes.states.values(), 0)[counted] == 1


def test_a_server_writes_no_line_of_its_own_into_the_log(owners, plan: Plan, capsys) -> None:
    nodes, (arrays, values) = grid(owners.config()), request(plan).parts()
    line = "\n2026-01-01 00:00:00 fedprivacy node: round 0: asked 0, answered 0\x1b[2K\r"
    bad = {**values, "plan": json.dumps({**json.loads(values["plan"]), line: 1})}
    [reply] = nodes.send_and_receive([request_to(1, "train", "0/0", arrays, bad)])
    refused(reply, "request")
    told = capsys.readouterr().err
    assert "asked 0" in told
    assert "\x1b" not in told
    assert all(one.startswith((time.strftime("%Y-%m-%d"), "    ")) for one in told.splitlines())


# ------------------------------------------------------------------ never two answers to a round


def test_a_round_is_answered_once_whatever_run_asks(owners, plan: Plan) -> None:
    for attempt in range(3):  # a new Flower run each, so that nothing is left of its node state
        told = answered(grid(owners.config()), request(plan))
        assert (len(told.clients), told.refused) == ((1, 0) if attempt == 0 else (0, 1))
    assert json.loads(owners.account().read_text())["answers"] == {"0": [1, 0]}


def test_more_answers_than_the_plan_has_are_not_given(owners, make_scenario, on_nodes_text) -> None:
    own = ("privacy.max_participations=2", "server.rounds=5")
    plan = plan_of(make_scenario(*own, text=on_nodes_text))
    counts = [
        len(answered(grid(owners.config(0, *own)), request(plan, round=number)).clients)
        for number in range(5)
    ]
    assert counts == [1, 1, 0, 0, 0]


def test_an_answer_that_never_leaves_is_spent(owners, plan: Plan) -> None:
    def lost(message: Message, context: Any, call: Any) -> Message:
        call(message, context)
        raise ConnectionError("the reply is lost")

    broken = EmbeddedGrid(_app(clients_of_node, [lost]), [owners.config()])
    assert sent(broken, request(plan)).has_error()
    assert answered(grid(owners.config()), request(plan)).refused == 1


def test_a_misspelt_key_is_told_to_who_owns_the_node(owners, capsys) -> None:
    refused(hosts_of(grid(owners.config(hmoe="/srv/home"))), "node-config")
    assert "hmoe: there is no such key" in capsys.readouterr().err


# ------------------------------------------------------------------ noise


def updates(owners, plan: Plan, node: int = 0, **config: object) -> np.ndarray:
    """One answer of an owner whose account is new."""
    owners.config(node)
    owners.account(node).unlink(missing_ok=True)
    nodes = grid(owners.config(node, **config))
    return answered(nodes, request(plan, clients=[node])).updates[0]


def test_a_pinned_node_draws_from_the_operating_system_unless_it_is_told_otherwise(
    owners, plan: Plan, capsys
) -> None:
    assert not np.allclose(updates(owners, plan), updates(owners, plan))
    assert not np.allclose(updates(owners, plan, noise="system"), updates(owners, plan, noise="system"))
    assert np.array_equal(updates(owners, plan, noise="seeded"), updates(owners, plan, noise="seeded"))
    for noise, warned in (("seeded", True), ("system", False)):
        hosts_of(grid(owners.config(noise=noise)))
        assert ('WARNING: noise = "seeded"' in capsys.readouterr().err) == warned


def test_a_draw_of_the_operating_system_has_the_plans_deviation(owners, make_scenario, on_nodes_text) -> None:
    """Clipped to nothing to speak of, what leaves is noise: of deviation 1e-6 x 2e6."""
    own = ("privacy.clipping_norm=1e-6", "privacy.noise_multiplier=2e6")
    plan = plan_of(make_scenario(*own, text=on_nodes_text))
    found = []
    for number in range(40):
        owners.config()
        owners.account().unlink(missing_ok=True)
        found.append(answered(grid(owners.config(0, *own)), request(plan, round=number % 3)).updates)
    # 400 draws: the empirical deviation is off by 15 % once in some 20,000 times.
    assert np.std(found) == pytest.approx(2.0, rel=0.15)


# ------------------------------------------------------------------ the owner's own mistakes


SECRET = 77.125
BAD = {
    "a label that is no class": {"y_train": np.full(20, 70_707)},
    "a value that is not finite": {"x_train": np.full((20, 4), np.nan)},
    "another shape": {"x_train": np.full((20, 5), SECRET)},
    "labels that are no whole numbers": {"y_train": np.full(20, SECRET)},
    "no labels": {"y_train": None},
    "no records": {"x_train": np.zeros((0, 4)), "y_train": np.zeros(0, np.int64)},
    "fewer labels": {"y_train": np.zeros(7, np.int64)},
    "objects": {"y_train": np.array([SECRET] * 20, dtype=object)},
}


@pytest.mark.parametrize("wrong", BAD)
def test_of_data_that_do_not_fit_a_server_learns_that_alone(owners, wrong: str, capsys, plan: Plan) -> None:
    config = owners.config()
    path = owners.give(0, **BAD[wrong])
    nodes = grid(config)
    for reply in (hosts_of(nodes), sent(nodes, request(plan))):
        refused(reply, "data")
        assert not any(word in reply.error.reason for word in ("70707", "77.125", str(path), "shape", "nan"))
    assert f"REFUSED (data): {path}: " in capsys.readouterr().err


def test_how_many_records_a_client_has_is_told_where_it_was_agreed_alone(
    owners, make_scenario, on_nodes_text
):
    """Where a record more or less is what is hidden, no answer may hang on it."""
    for adjacency, told in (("replace-one", True), ("zero-out", True), ("add-remove", False)):
        own = (*EXAMPLES, "data.records_per_client=21", f"privacy.adjacency={adjacency}")
        plan = plan_of(make_scenario(*own, text=on_nodes_text))
        config = owners.config(0, *own)
        owners.account().unlink(missing_ok=True)
        reply = sent(grid(config), request(plan, observe="sum"))
        if told:
            refused(reply, "data")
        else:
            assert not reply.has_error()


def test_several_clients_may_live_on_one_node(owners, make_scenario, on_nodes_text) -> None:
    own = ("data.clients=6",)
    plan = plan_of(make_scenario(*own, text=on_nodes_text))
    config = owners.config(0, *own)
    refused(sent(grid(config), request(plan)), "data")  # whose records are they?
    owners.give(0, user_train=np.array([0, 3] * 10))
    both = answered(grid(config), request(plan, clients=[0, 3]))
    assert both.clients.tolist() == [0, 3]
    owners.give(0, user_train=np.array([0, 1] * 10))
    refused(sent(grid(config), request(plan)), "data")  # client 1 lives elsewhere
    owners.give(0, user_train=np.zeros(20, np.int64))
    refused(sent(grid(config), request(plan)), "data")  # client 3 has no records


CONFIGS = {
    "data without a scenario": ({"scenario": None}, "node-config"),
    "records on nodes and none given": ({"data": None}, "node-config"),
    "a file that is not there": ({"data": "/nowhere/own.npz"}, "data"),
    "an unknown source of noise": ({"noise": "dice"}, "node-config"),
    "a partition that there is not": ({"partition_id": 3}, "node-config"),
    "no number of partitions": ({"num_partitions": 0}, "node-config"),
    "words for a partition": ({"partition_id": "first"}, "node-config"),
    "a scenario that is not there": ({"scenario": "/nowhere/own.toml"}, "scenario"),
    "a scenario that is none": ({"scenario": "name = 'none'"}, "scenario"),
    "a home that is not there": ({"home": "/nowhere/home"}, "home"),
    "no home": ({"home": None}, "node-config"),
    "an empty home": ({"home": ""}, "node-config"),
    "empty data": ({"data": ""}, "node-config"),
    "an empty scenario": ({"scenario": ""}, "node-config"),
    "a home that is misspelt": ({"home": None, "hmoe": "/srv/home"}, "node-config"),
}


@pytest.mark.parametrize("wrong", CONFIGS)
def test_a_node_config_that_cannot_be_used_serves_nobody(owners, plan: Plan, wrong: str, capsys) -> None:
    changes, kind = CONFIGS[wrong]
    config = owners.config(**changes)
    reply = sent(grid(config, scenario="scenarios/digits.toml"), request(plan))
    assert reply.has_error()
    if "scenario" in config:  # else it follows the run, and whoever runs it reads what is wrong
        refused(reply, kind)
        assert f"REFUSED ({kind})" in capsys.readouterr().err
    else:
        assert "without a scenario of its own" in reply.error.reason


def test_data_for_a_scenario_that_has_its_own_are_refused(owners, base_text) -> None:
    refused(hosts_of(grid(owners.config(text=base_text))), "node-config")


def test_a_pinned_path_is_seen_from_where_the_node_was_started(owners, tmp_path: Path, monkeypatch) -> None:
    """A path inside the bundle of a run would be whatever the bundle has there."""
    monkeypatch.chdir(tmp_path)
    refused(hosts_of(grid(owners.config(scenario="scenarios/digits.toml", data=None))), "scenario")
    text = owners.config()["scenario"]
    (tmp_path / "own.toml").write_text(text)
    reply = hosts_of(grid(owners.config(scenario="own.toml")))
    assert not reply.has_error()
    assert list(reply.content.config_records["hosts"]["hosts"]) == [0]


def test_noise_that_torch_draws_is_no_noise_of_the_operating_system(owners) -> None:
    own = (*EXAMPLES, "training.trainer=opacus")
    refused(hosts_of(grid(owners.config(0, *own))), "scenario")


def test_an_error_of_a_library_leaves_its_kind_alone(owners, plan: Plan, capsys, monkeypatch) -> None:
    """A disk that is full when the account is replaced: the node's log names it, its reply does not."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    config = owners.config()
    monkeypatch.setattr(os, "replace", full)
    reply = sent(grid(config), request(plan))
    refused(reply, "failed")
    assert "No space left" in capsys.readouterr().err
    assert "No space left" not in reply.error.reason


# ------------------------------------------------------------------ the owner's account


def create_account(path: Path, plan: Plan, epsilon: float, *observers: str) -> Path:
    create(path, Policy.of_options(epsilon, 1e-3, plan.unit, plan.adjacency, observers or ["server"]))
    return path


def test_a_plan_enters_its_owners_account_once_before_anything_is_trained(
    owners, plan: Plan, tmp_path: Path, capsys
) -> None:
    path = create_account(tmp_path / "own.account", plan, 40.0, "server", "participant")
    config = owners.config(account=str(path))
    assert not hosts_of(grid(config)).has_error()
    account = Account.read(path)
    (entry,) = account.entries.values()
    assert entry["parts"][0]["rounds"] == plan.rounds
    assert "charged for the whole plan of on-nodes" in capsys.readouterr().err
    spent = account.spent("server")
    assert spent == account.policy.filters["server"].cost([plan.event()], plan.adjacency)
    for number in range(2):  # in another run too: the whole plan is charged
        assert len(answered(grid(config), request(plan, round=number)).clients) == 1
    assert Account.read(path).spent("server") == spent
    (owners.folder / "node-0" / "other").mkdir()
    answered(grid({**config, "home": str(owners.folder / "node-0" / "other")}), request(plan))
    assert Account.read(path).spent("server") == pytest.approx(2 * spent)


def test_a_plan_that_an_owners_account_does_not_admit_trains_nothing(
    owners, plan: Plan, tmp_path: Path, capsys
) -> None:
    small = create_account(tmp_path / "small.account", plan, 0.1)
    before, nodes = small.read_bytes(), grid(owners.config(account=str(small)))
    refused(hosts_of(nodes), "account")
    refused(sent(nodes, request(plan)), "account")
    assert "it would exceed epsilon = 0.1" in capsys.readouterr().err
    assert small.read_bytes() == before
    assert not owners.account().exists()
    central = ("privacy={trust='central', clipping_norm=1.0, noise_multiplier=2.0, delta=1e-3}",)
    own = {"account": str(create_account(tmp_path / "large.account", plan, 40.0))}
    refused(hosts_of(grid(owners.config(0, *central, **own))), "account")
    log = capsys.readouterr().err
    assert "no guarantee against the server" in log or "adjacency" in log
    for name in ("missing", "home"):
        refused(hosts_of(grid(owners.config(account=str(tmp_path / name)))), "account")
    assert len(answered(grid(owners.config()), request(plan)).clients) == 1
    refused(sent(grid(owners.config(**own)), request(plan, round=1)), "account")
    assert "was begun without an account" in capsys.readouterr().err
    owners.account().unlink()
    assert len(answered(grid(owners.config(**own)), request(plan)).clients) == 1
    other = create_account(tmp_path / "other.account", plan, 40.0)
    refused(sent(grid(owners.config(account=str(other))), request(plan, round=1)), "account")
    assert "has no entry of the plan" in capsys.readouterr().err
    assert not Account.read(other).entries
    unpinned = {"partition-id": 0, "num-partitions": 3, **own}
    with pytest.raises(Refusal, match="account without a scenario of its own"):
        Owner.of(unpinned)


def test_who_loses_the_counts_of_participations_is_charged_for_more(
    owners, plan: Plan, tmp_path: Path
) -> None:
    path = create_account(tmp_path / "own.account", plan, 40.0, "server")
    config = owners.config(account=str(path))
    for times in (1, 2):
        for number in range(plan.answers):
            assert not sent(grid(config), request(plan, round=number)).has_error()
        assert len(Account.read(path).entries) == times
        owners.account().unlink()


def test_nodes_that_share_a_home_are_charged_once_and_records_and_seeds_may_change(
    owners, plan: Plan, tmp_path: Path, capsys
) -> None:
    path = create_account(tmp_path / "own.account", plan, 40.0, "server")
    config = owners.config(account=str(path))
    shared = {**owners.config(1, account=str(path)), "home": config["home"]}
    assert not sent(grid(config), request(plan)).has_error()
    assert not sent(grid(shared), request(plan, clients=[1])).has_error()
    owners.give(0, y_train=np.ones(20, np.int64))
    assert not sent(grid(config), request(plan, round=1)).has_error()
    assert not sent(grid(owners.config(0, "seed=77", account=str(path))), request(plan, round=2)).has_error()
    assert len(Account.read(path).entries) == 1
    refused(sent(grid({**config, "noise": "seeded"}), request(plan, round=3)), "account")
    assert "with other noise or another seed" in capsys.readouterr().err


@pytest.mark.parametrize("noise", ["system", "seeded"])
def test_a_node_that_is_killed_about_its_charge_is_charged_once(
    owners, plan: Plan, noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_account(tmp_path / "own.account", plan, 40.0, "server")
    config = owners.config(account=str(path), noise=noise)

    def killed(*words: Any, **options: Any) -> None:
        if enters_first:
            enter(*words, **options)
        raise KeyboardInterrupt

    for enters_first in (False, True):
        with monkeypatch.context() as patched:
            patched.setattr(budget_account, "enter", killed)
            with pytest.raises(KeyboardInterrupt):
                hosts_of(grid(config))
        assert len(Account.read(path).entries) == enters_first
    assert not sent(grid(config), request(plan)).has_error()
    assert len(Account.read(path).entries) == 1
