"""What a client's side tells and refuses, whatever the server asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from scipy.stats import binomtest

from clients.app import app, make_app
from clients.statistics import StatisticsClients
from fedprivacy.errors import InputError, Refusal
from fedprivacy.messages.protocol import QueryReply, QueryRequest, parts_of
from scenarios.engines.embedded import EmbeddedGrid
from server.messages import request_to

LOCAL = """
name = "asked"
[data]
name = "numbers"
clients = 40
median = 4.0
spread = 0.5
[queries.share]
kind = "mean-of-bits"
above = 4.0
[queries.mean]
kind = "mean"
low = 0.0
high = 9.0
local = "laplace"
[queries.where]
kind = "histogram"
edges = [2.0, 4.0, 6.0]
[privacy]
trust = "local"
epsilon = 3.0
[federation]
hosts = 2
"""
EVEN, ODD = np.arange(0, 40, 2), np.arange(1, 40, 2)


@pytest.fixture
def respondents(make_statistics) -> StatisticsClients:
    return StatisticsClients.of(make_statistics(text=LOCAL))


def request(who: StatisticsClients, clients, query: int = 0, host: int = 0, plan=None) -> QueryRequest:
    return QueryRequest(query, host, np.asarray(clients, dtype=np.int64), plan or who.plan.to_json())


# ------------------------------------------------------------------ once each


def test_a_client_answers_each_query_once(respondents: StatisticsClients) -> None:
    answered = respondents.fresh()
    for query in range(3):
        first = respondents.answer(request(respondents, EVEN, query), answered, [0])
        again = respondents.answer(request(respondents, EVEN, query), answered, [0])
        assert (first.answered, first.refused) == (20, 0)
        assert (again.answered, again.refused) == (0, 20)
        assert (again.totals == 0).all()
    assert answered.sum() == 60


def test_another_cut_into_chunks_gets_no_second_answer(respondents: StatisticsClients) -> None:
    answered = respondents.fresh()
    respondents.answer(request(respondents, EVEN[:5]), answered, [0])
    rest = respondents.answer(request(respondents, EVEN), answered, [0])
    assert (rest.answered, rest.refused) == (15, 5)
    alone = respondents.answer(request(respondents, EVEN[7:8]), answered, [0])
    assert (alone.answered, alone.refused) == (0, 1)


def test_a_refused_chunk_of_clients_with_several_records_is_no_error(make_statistics, make_table) -> None:
    path = make_table(users=[1, 1, 2, 2, 2], age=[1.0, 2.0, 3.0, 4.0, 5.0])
    text = LOCAL.replace("above = 4.0", "above = 4.0\ncolumn = 'age'").replace("hosts = 2", "hosts = 1")
    for query in ("low = 0.0", "edges = [2.0"):
        text = text.replace(query, f"column = 'age'\n{query}")
    head, _, rest = text.partition("[queries.share]")
    data = f'[data]\nname = "npz"\npath = "{path}"\nowner = "user"\n'
    for trust in ("local", "central"):
        asked = head.partition("[data]")[0] + data + "[queries.share]" + rest
        who = StatisticsClients.of(make_statistics(f"privacy.trust={trust}", text=asked))
        answered = who.fresh()
        for query in range(3):
            assert who.answer(request(who, [0, 1], query), answered, [0]).answered == 2
            again = who.answer(request(who, [0, 1], query), answered, [0])
            assert (again.answered, again.refused) == (0, 2)
            assert (again.totals == 0).all()


def test_no_two_answers_share_their_noise(respondents: StatisticsClients) -> None:
    """Same clients, other query; same query, other clients: the noise on the numbers is another."""
    who, answered = respondents, respondents.fresh()
    [mean] = [ask for ask in who.plan.asks if ask.question.name == "mean"]
    noises = []
    for client in (*EVEN, *ODD):
        told = who.answer(request(who, [client], 1, client % 2), answered, [0, 1]).totals
        noises.append(told[0] - mean.question.exact(who.people, np.array([client]))[0])
    assert len(np.unique(np.round(noises, 9))) == 40


def test_chunks_that_begin_alike_elsewhere_have_other_noise(make_statistics) -> None:
    """What is keyed by a chunk's first client is drawn once: a second chunk cannot begin with it."""
    who = StatisticsClients.of(make_statistics(text=LOCAL))
    answered = who.fresh()
    first = who.answer(request(who, EVEN[:3], 1), answered, [0])
    second = who.answer(request(who, EVEN[:6], 1), answered, [0])  # begins alike, its first three refuse
    alike = who.answer(request(who, EVEN[3:6], 1), who.fresh(), [0])
    assert (first.answered, second.answered) == (3, 3)
    assert second.totals == pytest.approx(alike.totals)  # the same three clients, the same draw: once a run


# ------------------------------------------------------------------ what is refused


def test_another_plan_is_refused(respondents: StatisticsClients, make_statistics) -> None:
    other = StatisticsClients.of(make_statistics("privacy.epsilon=30.0", text=LOCAL)).plan.to_json()
    for plan in (other, {"trust": "none"}, None, "", [], 3):
        answered = respondents.fresh()
        with pytest.raises(Refusal):
            respondents.answer(QueryRequest(0, 0, EVEN, plan), answered, [0])
        assert not answered.any()


@pytest.mark.parametrize(
    ("clients", "host", "query", "words"),
    [
        (ODD, 0, 0, "host 0"),
        (EVEN, 1, 0, "host 1"),
        (ODD, 1, 0, "this node has hosts"),
        ([0, 0], 0, 0, "named once"),
        ([2, 0], 0, 0, "sorted"),
        ([38, 40], 0, 0, "clients 0 to 39"),
        ([-2, 0], 0, 0, "clients 0 to 39"),
        ([0, 38, 40, 2], 0, 0, "clients 0 to 39"),
        ([0, 2, 2**62, -(2**62), 2], 0, 0, "clients 0 to 39"),
    ],
)
def test_a_request_that_names_others_is_refused(respondents, clients, host, query, words: str) -> None:
    answered = respondents.fresh()
    with pytest.raises(Refusal, match=words) as refused:
        respondents.answer(request(respondents, clients, query, host), answered, [0])
    assert refused.value.kind == "clients"
    assert not answered.any()


@pytest.mark.parametrize("query", [3, -1])
def test_a_query_that_there_is_not_is_refused(respondents, query: int) -> None:
    answered = respondents.fresh()
    with pytest.raises(InputError, match="the plan has 0 to 2"):
        respondents.answer(request(respondents, EVEN, query, 0), answered, [0])
    assert not answered.any()


@pytest.mark.parametrize(
    "broken",
    [
        {"query": "x"},
        {"host": None},
        {"plan": "{"},
        {"plan": 7},
        {"clients": np.zeros(2)},
        {"clients": np.zeros((1, 1), dtype=np.int64)},
        {"clients": None},
    ],
)
def test_what_is_no_query_is_refused(respondents: StatisticsClients, broken: dict) -> None:
    arrays, values = request(respondents, EVEN).parts()
    arrays |= {key: value for key, value in broken.items() if key == "clients" and value is not None}
    values |= {key: value for key, value in broken.items() if key != "clients"}
    if broken.get("clients", 0) is None:
        del arrays["clients"]
    with pytest.raises(InputError, match="not a "):
        QueryRequest.of(arrays, values)


def test_a_request_survives_the_wire(respondents: StatisticsClients) -> None:
    sent = request(respondents, EVEN, 2, 0)
    came = QueryRequest.of(*sent.parts())
    assert (came.query, came.host, came.plan) == (2, 0, respondents.plan.to_json())
    np.testing.assert_array_equal(came.clients, EVEN)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"totals": np.zeros(2)}, "expected"),
        ({"totals": np.zeros(3, dtype=np.float32)}, "expected"),
        ({"totals": np.array([0.0, np.nan, 0.0])}, "expected"),
        ({"answered": 2}, "were asked"),
        ({"answered": 5, "refused": -1}, "not a whole number"),
        ({"answered": "x"}, "not an answer"),
    ],
)
def test_a_server_counts_no_damaged_reply(changes: dict, words: str) -> None:
    from fedprivacy.errors import FedPrivacyError

    arrays, values = QueryReply(np.zeros(3), answered=4, refused=0).parts()
    arrays |= {key: value for key, value in changes.items() if key == "totals"}
    values |= {key: value for key, value in changes.items() if key != "totals"}
    with pytest.raises(FedPrivacyError, match=words):
        QueryReply.of(arrays, values, cells=3, clients=4)


# ------------------------------------------------------------------ what a reply tells


@pytest.fixture
def constant(make_statistics, make_table) -> Callable[..., StatisticsClients]:
    """Clients that all have the same value."""

    def make(value: float, trust: str = "local", clients: int = 300) -> StatisticsClients:
        path = make_table(age=[value] * clients)
        head, _, rest = LOCAL.partition("[queries.share]")
        text = head.partition("[data]")[0] + f'[data]\nname = "npz"\npath = "{path}"\n[queries.share]' + rest
        text = text.replace('kind = "', 'column = "age"\nkind = "').replace("hosts = 2", "hosts = 1")
        return StatisticsClients.of(make_statistics(f"privacy.trust={trust}", text=text))

    return make


def test_counts_in_a_reply_do_not_depend_on_data(constant) -> None:
    told = set()
    for value in (0.0, 5.0, float("nan"), float("inf")):
        who = constant(value)
        for query in range(3):
            reply = who.answer(request(who, np.arange(300), query), who.fresh(), [0])
            arrays, values = reply.parts()
            told.add((query, arrays["totals"].shape, arrays["totals"].dtype.str, *sorted(values.items())))
            assert list(arrays) == ["totals"]
    assert len(told) == 3


def test_a_reply_under_local_trust_holds_no_more_than_randomised_answers(constant) -> None:
    """Single answers of 300 clients with one value each follow the claimed probabilities, not the value.

    Binomial tests at a false-alarm rate of 1e-3 each.
    """
    who = constant(5.0)
    coin, oracle = who.plan.asks[0].mechanism, who.plan.asks[2].mechanism
    answered = who.fresh()
    bits = np.array([who.answer(request(who, [c]), answered, [0]).totals[0] for c in range(300)])
    spoken = np.array([who.answer(request(who, [c], 2), answered, [0]).totals for c in range(300)])
    assert binomtest(int(bits.sum()), 300, 1 - coin.flip).pvalue > 1e-3
    assert set(np.unique(spoken)) <= {0.0, 1.0}
    for cell in range(4):
        chance = oracle.p if cell == 2 else oracle.q
        assert binomtest(int(spoken[:, cell].sum()), 300, chance).pvalue > 1e-3


def test_central_replies_are_exact_and_tell_who_is_missing_where_sizes_are_private(constant) -> None:
    who = constant(5.0, "central")
    assert who.answer(request(who, np.arange(300)), who.fresh(), [0]).totals.tolist() == [300.0]


# ------------------------------------------------------------------ through the ClientApp


def test_the_app_keeps_count_over_messages_and_serves_its_hosts(respondents: StatisticsClients) -> None:
    nodes = [{"partition-id": at, "num-partitions": 2} for at in range(2)]
    grid = EmbeddedGrid(make_app(respondents), nodes)

    def ask(node: int, clients, host: int, query: int = 0, plan=None) -> Message:
        parts = request(respondents, clients, query, host, plan).parts()
        [reply] = grid.send_and_receive([request_to(node, "query.statistic", f"{query}/0", *parts)])
        return reply

    def counts(message: Message) -> tuple[int, int]:
        reply = QueryReply.of(*parts_of(message), cells=1, clients=20)
        return reply.answered, reply.refused

    assert counts(ask(1, EVEN, 0)) == (20, 0)
    assert counts(ask(1, EVEN, 0)) == (0, 20)
    assert ask(1, ODD, 1).has_error()
    assert counts(ask(2, ODD, 1)) == (20, 0)
    assert "another plan" in ask(2, ODD, 1, 1, {"trust": "none"}).error.reason
    assert counts(ask(2, ODD, 1, 1)) == (20, 0)  # what was refused was not spent
    assert ask(2, [1, 1], 1).has_error()


def test_clients_that_agreed_to_train_answer_no_query(
    trial, make_scenario, respondents: StatisticsClients
) -> None:
    grid = EmbeddedGrid(make_app(trial(make_scenario()).fleet), [{}])
    parts = request(respondents, EVEN).parts()
    [reply] = grid.send_and_receive([request_to(1, "query.statistic", "0/0", *parts)])
    assert "agreed to other requests" in reply.error.reason


def test_clients_of_a_statistics_scenario_do_not_train(respondents: StatisticsClients) -> None:
    grid = EmbeddedGrid(make_app(respondents), [{}])
    [reply] = grid.send_and_receive([request_to(1, "train", "0/0", *request(respondents, EVEN).parts())])
    assert "agreed to other requests" in reply.error.reason


def test_a_node_reads_its_scenario_from_the_run_or_from_its_own_configuration(
    make_statistics, tmp_path: Path
) -> None:
    """As under `flwr run`; a node with a scenario of its own serves no other plan."""
    run, own = make_statistics(text=LOCAL), make_statistics("privacy.epsilon=1.0", text=LOCAL)
    who = StatisticsClients.of(run)
    pinned = {"scenario": own.to_toml(compare=False), "home": str(tmp_path)}
    grid = EmbeddedGrid(app, [{}, pinned], {"scenario": run.to_toml(compare=False)})

    def ask(node: int) -> Message:
        parts = request(who, EVEN).parts()
        [reply] = grid.send_and_receive([request_to(node, "query.statistic", "0/0", *parts)])
        return reply

    told = QueryReply.of(*parts_of(ask(1)), cells=1, clients=20)
    mine = who.answer(request(who, EVEN), who.fresh(), [0])
    assert told.totals == mine.totals
    assert "another plan" in ask(2).error.reason
