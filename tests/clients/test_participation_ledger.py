"""A node's account on disk: what it survives, and what it does not let pass."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from clients.app import app
from clients.participation_ledger import Account, StoredBudgets, agreed
from clients.statistics import StatisticsClients
from fedprivacy.errors import Refusal
from fedprivacy.io.processes import pool
from fedprivacy.messages.protocol import QueryReply, QueryRequest, parts_of
from scenarios.engines.embedded import EmbeddedGrid
from server.messages import request_to


@pytest.fixture
def own(make_scenario, on_nodes_text):
    return make_scenario(text=on_nodes_text)


def budgets(account: Account, cap: int = 3) -> StoredBudgets:
    return StoredBudgets(account, population=3, cap=cap)


def test_what_was_spent_is_on_disk_before_anybody_answers(tmp_path: Path, own) -> None:
    ids = np.array([0, 2])
    assert budgets(Account.open(tmp_path, own)).spend(ids, 1).tolist() == [0, 2]
    again = budgets(Account.open(tmp_path, own))
    assert again.spend(ids, 1).tolist() == []  # the same round
    assert again.spend(ids, 0).tolist() == []  # an earlier one
    assert again.spend(np.array([0, 1, 2]), 2).tolist() == [0, 1, 2]
    assert json.loads((tmp_path / "answers.json").read_text())["answers"] == {
        "0": [2, 2],
        "1": [1, 2],
        "2": [2, 2],
    }


def test_refusals_write_nothing(tmp_path: Path, own) -> None:
    account = Account.open(tmp_path, own)
    budgets(account).spend(np.array([0]), 1)
    before = os.stat(account.file).st_ino  # a file that is replaced is another
    assert not len(budgets(account).spend(np.array([0]), 1))
    assert os.stat(account.file).st_ino == before


def _spend(account: Account, round: int) -> int:
    return len(budgets(account, cap=5).spend(np.array([0]), round))


def test_processes_side_by_side_spend_no_answer_twice(tmp_path: Path, own) -> None:
    """Flower runs each message in a process of its own."""
    account = Account.open(tmp_path, own)
    with pool(4) as processes:
        same = sum(processes.map(_spend, [account] * 20, [0] * 20))
        others = sum(processes.map(_spend, [account] * 20, range(1, 21)))
    assert same == 1
    assert same + others == account.read()["0"][0] <= 5


DAMAGES = {
    "cut short": lambda text: text[:-20],
    "empty": lambda text: "",
    "a count changed": lambda text: text.replace("[1, 1]", "[0, 1]"),
    "a client gone": lambda text: text.replace('"0": [1, 1], ', ""),
    "not an object": lambda text: "[]",
    "no answers": lambda text: json.dumps({"digest": json.loads(text)["digest"]}),
    "answers of another kind": lambda text: text.replace("[1, 1]", '"1"'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_account_is_not_begun_anew(tmp_path: Path, own, damage: str) -> None:
    account = Account.open(tmp_path, own)
    budgets(account).spend(np.array([0, 1]), 1)
    damaged = DAMAGES[damage](account.file.read_text())
    account.file.write_text(damaged)
    with pytest.raises(Refusal, match=r"damaged.*choose another folder as home") as refused:
        Account.open(tmp_path, own)
    assert refused.value.kind == "home"
    with pytest.raises(Refusal, match="damaged"):
        budgets(account).spend(np.array([2]), 2)
    assert account.file.read_text() == damaged


def test_a_write_that_broke_off_leaves_the_account_as_it_was(tmp_path: Path, own) -> None:
    account = Account.open(tmp_path, own)
    budgets(account).spend(np.array([0]), 0)
    account.file.with_name("answers.json.part").write_bytes(b'{"half')
    assert Account.open(tmp_path, own).read() == {"0": [1, 0]}


def test_an_account_is_of_one_scenario(tmp_path: Path, make_scenario, on_nodes_text, own) -> None:
    """Less noise, more rounds: what was spent under the old plan does not vanish."""
    budgets(Account.open(tmp_path, own)).spend(np.array([0]), 0)
    for other in ("privacy.noise_multiplier=0.5", "server.rounds=30", "training.epochs=2", "data.clients=4"):
        with pytest.raises(Refusal, match=r"under another scenario \(on-nodes\)\. Pin that one again"):
            Account.open(tmp_path, make_scenario(other, text=on_nodes_text))
    for same in (
        "name=renamed",
        "seed=7",
        "evaluation.every=2",
        "data.test=elsewhere.npz",
        "server.rounds=3",
    ):
        assert agreed(make_scenario(same, text=on_nodes_text)) == agreed(own)
        assert Account.open(tmp_path, make_scenario(same, text=on_nodes_text)).read() == {"0": [1, 0]}


def test_dropouts_that_set_the_shares_of_noise_make_another_account(make_scenario) -> None:
    shared = make_scenario("privacy.trust=distributed")
    assert agreed(make_scenario("privacy.trust=distributed", "federation.dropout=0.4")) != agreed(shared)
    assert agreed(make_scenario("privacy.trust=distributed", "federation.hosts=2")) == agreed(shared)


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path, own) -> None:
    """A disk that is not mounted would else be an account at zero."""
    with pytest.raises(Refusal, match="no such folder"):
        Account.open(tmp_path / "home", own)
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="not a folder"):
        Account.open(tmp_path / "file", own)
    assert not (tmp_path / "home").exists()


def test_a_query_is_answered_once_whatever_run_asks(tmp_path: Path, make_statistics, statistics_text) -> None:
    own = make_statistics("privacy.trust=local", "data.clients=4", "federation.hosts=2", text=statistics_text)
    who = StatisticsClients.of(own)
    config = {"partition-id": 0, "num-partitions": 2, "scenario": own.to_toml(), "home": str(tmp_path)}

    def asked(clients: list[int], query: int = 0, **changes: object) -> tuple[int, int] | str:
        plan = who.plan.to_json() | changes
        parts = QueryRequest(query, 0, np.array(clients, np.int64), plan).parts()
        grid = EmbeddedGrid(app, [config])  # a new Flower run
        [reply] = grid.send_and_receive([request_to(1, "query.statistic", "0/0", *parts)])
        if reply.has_error():
            return reply.error.reason.split("\n")[0].removeprefix("fedprivacy.errors.Refusal: ")
        told = QueryReply.of(*parts_of(reply), cells=1, clients=len(clients))
        return told.answered, told.refused

    assert asked([0, 2], trust="none").startswith("plan:")
    assert asked([0, 2], query=1).startswith("round:")
    assert asked([1]).startswith("clients:")
    assert not (tmp_path / "answers.json").exists()
    assert [asked([0]), asked([0, 2]), asked([0, 2])] == [(1, 0), (1, 1), (0, 2)]
    assert json.loads((tmp_path / "answers.json").read_text())["answers"] == {"0": [0], "2": [0]}
    (tmp_path / "answers.json").write_text("{}")
    assert asked([0]).startswith("home:")
