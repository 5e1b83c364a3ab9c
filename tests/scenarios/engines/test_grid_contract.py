"""The contract of every engine's Grid, on a toy app of Flower's public API only.

A new engine joins by an entry in ``ENGINES``. The toy app tells what happened on its side through its
replies alone, so that it may as well run in another process.

The grid of a deployment (`server.deployment_grid`, over Flower's `HttpGrid` and a real SuperLink, see far_side.py) keeps
those points that are a server's to keep: `every_grid`. The others are promises of a simulation, `grid`:

- replies in the order of messages: they come as nodes answer, and our server puts them in order;
- node ids from 1: Flower draws them;
- an error for what cannot be sent, such as a message for a node that is not there: a node may have gone, so that
  it is a reply that does not come, as tested here; of a message of another run Flower makes an HTTP error;
- what a node keeps, and what it makes of an app that does not reply: that is Flower's SuperNode; the budgets
  that we keep there have tests on whole runs (test_superlink.py), or a file of their own (clients/participation_ledger.py);
- two grids in one process: a ServerApp has a process and a run of its own.
"""

from __future__ import annotations

import gc
import itertools
import logging
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import ray
import safetensors.numpy
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import arrays_size_mod
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.superlink.grid import HttpGrid

import server.deployment_grid
from clients.app import make_app as make_respondents
from clients.statistics import StatisticsClients
from fedprivacy.errors import InputError, RunError
from fedprivacy.statistics.record import StatisticsRecord
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.engines.flower_internals import (
    CLIENT_APP_RAISED_EXCEPTION,
    MESSAGE_UNAVAILABLE,
    REPLY_MESSAGE_UNAVAILABLE,
    Run,
    identity,
    take_identity,
)
from scenarios.engines.ray_cluster import Cluster
from scenarios.engines.ray_grid import RayGrid
from scenarios.engines.ray_worker_pool import Workers
from scenarios.experiments.statistics_run import release
from server.deployment_grid import AT_ONCE, PollingGrid
from server.statistics import serve
from tests.scenarios.engines.far_side import FarSide

Configs = Sequence[Mapping[str, bool | float | int | str]]


@dataclass(frozen=True)
class Engine:
    """How to open an engine's grid, and what it is allowed.

    Args:
        open: (app, node configs, run config) -> a context manager that gives the grid.
        ahead: How many messages it may take beyond those whose replies were consumed.
        in_order: Whether replies come in the order of messages.
    """

    open: Callable[[ClientApp, Configs, Mapping[str, str]], AbstractContextManager[Grid]]
    ahead: int
    in_order: bool = True


@contextmanager
def embedded(app: ClientApp, configs: Configs, run_config: Mapping[str, str]) -> Iterator[EmbeddedGrid]:
    yield EmbeddedGrid(app, configs, run_config)


_toys: list[Workers] = []  # with the plain toy app: a process that imports torch takes seconds to start


@contextmanager
def on_ray(app: ClientApp, configs: Configs, run_config: Mapping[str, str]) -> Iterator[RayGrid]:
    """Two actors; this module is not there to import, so that the app travels as it is."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    if getattr(app, "toy", False):
        if not _toys:
            _toys.append(Workers(Cluster(2), make_app).__enter__())
            list(RayGrid(_toys[0], [{}]).send_and_receive([ask(1)]))  # no test's time is spent on imports
        yield RayGrid(_toys[0], configs, run_config)
    else:
        with Workers(Cluster(1), lambda: app) as workers:
            yield RayGrid(workers, configs, run_config)


_far: list[FarSide] = []  # started once: imports


@contextmanager
def on_superlink(app: ClientApp, configs: Configs, run_config: Mapping[str, str]) -> Iterator[PollingGrid]:
    """A run on a real SuperLink; this process is that of its ServerApp, as Flower's `run_serverapp` makes it."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    EmbeddedGrid(app, configs)  # whose process this is, it will be again
    before = identity()
    with _far[0].federation(ray.cloudpickle.dumps((app, configs, run_config))) as (address, run, task, token):
        flower = HttpGrid(address, insecure=True, token=token)
        flower.set_run(Run.create_empty(run))
        take_identity((task, run, SUPERLINK_NODE_ID))
        try:
            yield PollingGrid(flower)
        finally:
            flower.close()
            take_identity(before)


ENGINES = {
    "embedded": Engine(embedded, ahead=0),
    "ray": Engine(on_ray, ahead=4),
    "superlink": Engine(on_superlink, ahead=AT_ONCE, in_order=False),
}

# ------------------------------------------------------------------ the toy app

KEPT: list[Message] = []  # what a client holds on to, against the rules


def make_app(mods: list[Callable[[Message, Context, ClientAppCallable], Message]] | None = None) -> ClientApp:
    app = ClientApp(mods=mods)
    app.toy = not mods  # type: ignore[attr-defined]

    @app.query()
    def describe(message: Message, context: Context) -> Message:
        about: dict[str, Any] = {
            "node": context.node_id,
            "run": context.run_id,
            "type": message.metadata.message_type,
        }
        records: dict[str, Any] = {
            "about": ConfigRecord(about),
            "node": ConfigRecord(dict(context.node_config)),
            "run": ConfigRecord(dict(context.run_config)),
            "count": MetricRecord({"count": count_up(context)}),
        }
        context.node_config["partition-id"] = 99  # must not outlive the message
        context.run_config["scenario"] = "changed"
        return Message(RecordDict(records), reply_to=message)

    @app.query("metadata")
    def metadata(message: Message, context: Context) -> Message:
        seen = dict(vars(message.metadata))
        config = ConfigRecord({key: value for key, value in seen.items() if value is not None})
        return Message(RecordDict({"seen": config}), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        """Adds partition + 1 to every array; as many examples."""
        step = int(context.node_config["partition-id"]) + 1
        arrays = message.content["arrays"]
        assert isinstance(arrays, ArrayRecord)
        new = ArrayRecord({name: Array(array.numpy() + step) for name, array in arrays.items()})
        metrics = MetricRecord({"num-examples": step, "count": count_up(context)})
        return Message(RecordDict({"arrays": new, "metrics": metrics}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        arrays = message.content["arrays"]
        assert isinstance(arrays, ArrayRecord)
        mean = float(np.mean([array.numpy().mean() for array in arrays.values()]))
        metrics = MetricRecord({"num-examples": 1, "mean": mean})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    @app.train("vandalise")
    def vandalise(message: Message, context: Context) -> Message:
        """Reports what it was sent, then breaks all that it can reach, now and from earlier."""
        report = RecordDict({"saw": ConfigRecord({"saw": fingerprint(message.content)})})
        reply = Message(report, reply_to=message)
        context.state["kept"] = report["saw"]
        for held in [*KEPT, message]:
            held.metadata.group_id = "vandal"
            for record in held.content.values():
                if isinstance(record, ArrayRecord):
                    for array in record.values():
                        array.data = b"vandal"
                elif isinstance(record, MetricRecord | ConfigRecord):
                    lists: list[Any] = [value for value in record.values() if isinstance(value, list)]
                    for value in lists:
                        value.append(value[0])
                    record["vandal"] = 1
            held.content["vandal"] = ConfigRecord()
        KEPT.extend([message, reply])
        return reply

    @app.train("keep_state")
    def keep_state(message: Message, context: Context) -> Message:
        context.state.update(message.content)
        return Message(RecordDict(), reply_to=message)

    @app.query("state")
    def state(message: Message, context: Context) -> Message:
        return Message(context.state, reply_to=message)

    @app.train("fail")
    def fail(message: Message, context: Context) -> Message:
        count_up(context)
        context.state["rubbish"] = ConfigRecord({"left": True})
        raise ZeroDivisionError("the learning rate is 0")

    @app.train("slow")
    def slow(message: Message, context: Context) -> Message:
        count_up(context)
        time.sleep(0.3)
        return Message(RecordDict(), reply_to=message)

    @app.query("refuse")
    def refuse(message: Message, context: Context) -> Message:
        count_up(context)
        return Message(Error(77, "my budget is spent"), reply_to=message)

    @app.query("nothing")
    def nothing(message: Message, context: Context) -> Message:
        count_up(context)
        return None  # type: ignore[return-value]

    @app.query("echo_request")
    def echo_request(message: Message, context: Context) -> Message:
        count_up(context)
        return message

    @app.query("forge")
    def forge(message: Message, context: Context) -> Message:
        reply = Message(RecordDict(), reply_to=message)
        reply.metadata.dst_node_id, reply.metadata.group_id, reply.metadata.message_type = 2, "x", "train"
        return reply

    @app.query("interrupt")
    def interrupt(message: Message, context: Context) -> Message:
        count_up(context)
        raise KeyboardInterrupt

    @app.query("exit")
    def leave(message: Message, context: Context) -> Message:
        raise SystemExit(3)

    @app.query("stop_iteration")
    def stop_iteration(message: Message, context: Context) -> Message:
        raise StopIteration("inside the app")

    return app


def count_up(context: Context) -> int:
    """How many messages this node has got, by its state."""
    old = context.state.get("counter")
    count = int(old["values"].numpy()[0]) + 1 if isinstance(old, ArrayRecord) else 1
    context.state["counter"] = ArrayRecord({"values": Array(np.array([count]))})
    return count


def fingerprint(content: RecordDict) -> str:
    """Everything in a content, as text."""
    return repr(
        [
            (name, [(k, v.data.hex() if isinstance(v, Array) else v) for k, v in record.items()])
            for name, record in content.items()
        ]
    )


# ------------------------------------------------------------------ fixtures


# Each grid on Ray starts workers, which import for seconds. Every run of the tests has both engines by test_ray.py and
# by the statistics below.
SIMULATED = ["embedded", pytest.param("ray", marks=[pytest.mark.slow, pytest.mark.exhaustive])]
EVERY = [*SIMULATED, pytest.param("superlink", marks=[pytest.mark.slow, pytest.mark.exhaustive])]


@pytest.fixture(params=SIMULATED)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ready(request)


@pytest.fixture(params=EVERY)
def every_engine(request: pytest.FixtureRequest) -> Engine:
    return ready(request)


def ready(request: pytest.FixtureRequest) -> Engine:
    KEPT.clear()
    if request.param != "embedded":
        request.getfixturevalue({"ray": "ray_room", "superlink": "far_side"}[request.param])
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def the_far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _far.append(FarSide(str(tmp_path_factory.mktemp("flower"))))
    yield
    _far.pop().close()


@pytest.fixture
def far_side(the_far_side: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.deployment_grid, "POLL", 0.05)


@pytest.fixture
def grid(engine: Engine) -> Iterator[Grid]:
    """Three nodes with partitions 0, 1, 2."""
    with engine.open(make_app(), partitions(3), {"scenario": "toy"}) as grid:
        yield grid


@pytest.fixture
def every_grid(every_engine: Engine) -> Iterator[Grid]:
    """The same on each engine; the nodes' ids are `ids(grid)`."""
    with every_engine.open(make_app(), partitions(3), {"scenario": "toy"}) as grid:
        yield grid


@pytest.fixture
def in_process() -> EmbeddedGrid:
    """What only an engine that shares our process can promise."""
    return EmbeddedGrid(make_app(), partitions(3), {"scenario": "toy"})


def partitions(count: int) -> Configs:
    return [{"partition-id": index, "num-partitions": count} for index in range(count)]


def ask(node: int, kind: str = "query", content: RecordDict | None = None, **options: object) -> Message:
    return Message(content or RecordDict(), node, kind, **options)  # type: ignore[call-overload]


def arrays_of(*values: float) -> RecordDict:
    return RecordDict({"arrays": ArrayRecord({"flat": Array(np.array(values, dtype=np.float32))})})


def ids(grid: Grid) -> list[int]:
    """The nodes, in the order of their partitions."""
    return sorted(grid.get_node_ids())


def answers(grid: Grid, messages: Iterable[Message], **options: Any) -> list[Message]:
    """The replies in the order of their messages, whatever the order in which they come."""
    asked = list(messages)
    came = {reply.metadata.reply_to_message_id: reply for reply in grid.send_and_receive(asked, **options)}
    return [came[one.metadata.message_id] for one in asked if one.metadata.message_id in came]


def counts(grid: Grid, nodes: Iterable[int] | None = None) -> list[int]:
    """How many messages each node has got before this one."""
    replies = answers(grid, [ask(node) for node in nodes or ids(grid)])
    return [int(reply.content["count"]["count"]) - 1 for reply in replies]  # type: ignore[arg-type]


# ------------------------------------------------------------------ nodes, order, metadata


def test_node_ids_are_one_to_n(grid: Grid) -> None:
    assert list(grid.get_node_ids()) == [1, 2, 3]
    assert [info.node_id for info in grid.get_nodes()] == [1, 2, 3]


def test_there_are_as_many_nodes_as_configs(every_grid: Grid) -> None:
    assert len(set(ids(every_grid))) == 3
    assert sorted(info.node_id for info in every_grid.get_nodes()) == ids(every_grid)


def test_each_node_sees_its_own_id_and_configs_unchanged_by_earlier_messages(every_grid: Grid) -> None:
    nodes = ids(every_grid)
    order = [nodes[2], nodes[0], nodes[1]]
    for _ in range(2):
        for node, reply in zip(order, answers(every_grid, map(ask, order)), strict=True):
            content = reply.content
            assert content["about"] == {"node": node, "run": every_grid.run.run_id, "type": "query"}
            assert content["node"] == {"partition-id": nodes.index(node), "num-partitions": 3}
            assert content["run"] == {"scenario": "toy"}


def test_replies_come_in_the_order_of_messages_whichever_nodes_they_go_to(grid: Grid) -> None:
    order = [2, 3, 3, 1, 2, 1]
    messages = [ask(node) for node in order]
    replies = list(grid.send_and_receive(messages))
    assert [reply.metadata.src_node_id for reply in replies] == order
    sent = [message.metadata.message_id for message in messages]
    assert [reply.metadata.reply_to_message_id for reply in replies] == sent
    assert len(set(sent) | {reply.metadata.message_id for reply in replies}) == 2 * len(order)


@pytest.mark.parametrize("kind", ["train", "query", "evaluate", "train.fail"])
def test_reply_metadata_follow_from_the_message(every_grid: Grid, kind: str) -> None:
    check_metadata(every_grid, kind)


@pytest.mark.parametrize("kind", ["query.nothing", "query.forge"])
def test_reply_metadata_follow_from_the_message_whatever_the_app_does(grid: Grid, kind: str) -> None:
    check_metadata(grid, kind)


def check_metadata(grid: Grid, kind: str) -> None:
    node = ids(grid)[1]
    message = ask(node, kind, arrays_of(1.0), group_id="round 7", ttl=100.0)
    (reply,) = grid.send_and_receive([message])
    meta = reply.metadata
    assert (meta.run_id, meta.src_node_id, meta.dst_node_id, meta.group_id, meta.message_type) == (
        grid.run.run_id,
        node,
        message.metadata.src_node_id,
        "round 7",
        kind,
    )
    assert meta.reply_to_message_id == message.metadata.message_id != ""
    assert 90 < meta.ttl <= 100


def test_the_client_sees_the_metadata_that_the_server_set(every_grid: Grid) -> None:
    message = ask(ids(every_grid)[2], "query.metadata", group_id="round 7", ttl=100.0)
    (reply,) = every_grid.send_and_receive([message])
    sent = {key: value for key, value in vars(message.metadata).items() if value not in (None, "")}
    seen = {key: value for key, value in reply.content["seen"].items() if value != ""}
    assert seen == sent


def test_create_message_is_the_message_constructor(every_grid: Grid) -> None:
    node = ids(every_grid)[1]
    message = every_grid.create_message(RecordDict(), MessageType.QUERY, node, "g", ttl=9.0)
    assert message.metadata.ttl == 9.0
    (reply,) = every_grid.send_and_receive([message])
    assert (reply.metadata.src_node_id, reply.metadata.group_id) == (node, "g")


# ------------------------------------------------------------------ isolation


def mixed_content() -> RecordDict:
    return RecordDict(
        {
            "arrays": ArrayRecord({"a": Array(np.arange(4.0)), "b": Array(np.zeros((2, 0)))}),
            "config": ConfigRecord({"list": [1, 2], "text": "t", "bytes": b"b", "flag": True}),
            "metrics": MetricRecord({"losses": [0.5, 0.25], "n": 3}),
        }
    )


def test_a_client_cannot_change_another_message_nor_the_servers_own(every_grid: Grid) -> None:
    content = mixed_content()
    before = fingerprint(content)
    one, two, three = ids(every_grid)
    messages = [ask(node, "train.vandalise", content, group_id="g") for node in (one, one, two, three)]
    replies = answers(every_grid, messages)
    assert [reply.content["saw"]["saw"] for reply in replies] == [before] * 4
    assert fingerprint(content) == before
    for message in [*messages, *replies]:
        assert "vandal" not in message.content
        assert message.metadata.group_id == "g"
    assert all(list(reply.content["saw"]) == ["saw"] for reply in replies)


def test_a_client_cannot_change_what_it_has_handed_over_as_its_state(grid: Grid) -> None:
    content = mixed_content()
    list(grid.send_and_receive([ask(node, "train.vandalise", content) for node in (1, 1, 2, 3)]))
    for reply in grid.send_and_receive([ask(node, "query.state") for node in (1, 2, 3)]):
        assert reply.content["kept"] == {"saw": fingerprint(content)}


def test_what_the_server_does_to_a_reply_does_not_reach_the_nodes_state(grid: Grid) -> None:
    list(grid.send_and_receive([ask(1, "train.keep_state", mixed_content())]))
    for _ in range(2):
        (reply,) = grid.send_and_receive([ask(1, "query.state")])
        assert fingerprint(reply.content) == fingerprint(mixed_content())
        reply.content["config"]["list"].append(3)  # type: ignore[union-attr,arg-type]
        reply.content["arrays"]["a"].data = b""  # type: ignore[union-attr]
        del reply.content["metrics"]


def test_array_bytes_are_shared_not_copied(in_process: EmbeddedGrid) -> None:
    content = arrays_of(*range(100))
    data = content["arrays"]["flat"].data  # type: ignore[union-attr]
    list(in_process.send_and_receive([ask(1, "train.keep_state", content)]))
    (reply,) = in_process.send_and_receive([ask(1, "query.state")])
    assert reply.content["arrays"]["flat"].data is data  # type: ignore[union-attr]


# ------------------------------------------------------------------ state


def test_state_persists_over_messages_for_each_node_alone(grid: Grid) -> None:
    list(grid.send_and_receive(ask(node, "train", arrays_of(0.0)) for node in [1, 1, 3, 1]))
    assert counts(grid) == [3, 0, 1]


@pytest.mark.parametrize("kind", ["train.fail", "query.nothing", "query.echo_request"])
def test_a_failure_leaves_the_state_as_it_was(grid: Grid, kind: str) -> None:
    list(grid.send_and_receive([ask(1, "train", arrays_of(0.0)), ask(1, kind), ask(2, kind)]))
    (reply,) = grid.send_and_receive([ask(1, "query.state")])
    assert list(reply.content) == ["counter"]
    assert counts(grid) == [1, 0, 0]


def test_an_error_that_the_app_itself_replies_is_passed_on_and_keeps_its_state(every_grid: Grid) -> None:
    node = ids(every_grid)[1]
    (reply,) = every_grid.send_and_receive([ask(node, "query.refuse")])
    assert (reply.error.code, reply.error.reason) == (77, "my budget is spent")
    assert counts(every_grid) == [0, 1, 0]


# ------------------------------------------------------------------ failures


def test_an_exception_becomes_an_error_reply_with_type_and_message(every_grid: Grid) -> None:
    one, two, _ = ids(every_grid)
    replies = answers(every_grid, [ask(one, "train.fail"), ask(two, "query")])
    assert replies[0].has_error()
    assert replies[0].error.code == CLIENT_APP_RAISED_EXCEPTION
    reason = replies[0].error.reason or ""
    assert "ZeroDivisionError" in reason
    assert "the learning rate is 0" in reason
    assert replies[1].has_content()


def test_an_exception_is_told_with_its_traceback(grid: Grid) -> None:
    (reply,) = grid.send_and_receive([ask(1, "train.fail")])
    reason = reply.error.reason or ""
    assert reason.splitlines()[0] == "ZeroDivisionError: the learning rate is 0"
    assert "Traceback" in reason
    assert "in fail" in reason


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("query.nothing", "returned NoneType, not a Message"),
        ("query.echo_request", "does not reply to the one it got"),
        ("query.unknown", "No query function registered with name 'unknown'"),
        ("query.stop_iteration", "StopIteration: inside the app"),
    ],
)
def test_what_is_not_a_reply_becomes_an_error_reply(grid: Grid, kind: str, words: str) -> None:
    replies = list(grid.send_and_receive([ask(1, kind), ask(1)]))
    assert replies[0].error.code == CLIENT_APP_RAISED_EXCEPTION
    assert words in (replies[0].error.reason or "")
    assert replies[1].has_content()


@pytest.mark.parametrize(
    ("kind", "raised"), [("query.interrupt", KeyboardInterrupt), ("query.exit", SystemExit)]
)
def test_an_interrupt_in_the_app_ends_the_run_and_leaves_the_state(
    in_process: EmbeddedGrid, kind: str, raised: type[BaseException]
) -> None:
    with pytest.raises(raised):
        list(in_process.send_and_receive([ask(1), ask(2, kind), ask(3)]))
    assert counts(in_process) == [1, 0, 0]


@pytest.mark.parametrize("send", ["send_and_receive", "push_messages"])
class TestWhatCannotBeSent:
    def test_unknown_node(self, grid: Grid, send: str) -> None:
        with pytest.raises(ValueError, match="No node 4: the nodes are 1 to 3"):
            list(getattr(grid, send)([ask(1), ask(4)]))
        assert counts(grid) == [1, 0, 0]

    def test_another_run(self, grid: Grid, send: str) -> None:
        message = ask(1)
        message.metadata.__dict__["_run_id"] = 1234
        with pytest.raises(ValueError, match="carries run id 1234"):
            list(getattr(grid, send)([message]))

    def test_the_same_message_twice(self, grid: Grid, send: str) -> None:
        message = ask(1)
        with pytest.raises(ValueError, match="was sent before"):
            list(getattr(grid, send)([message, message]))
        assert counts(grid) == [1, 0, 0]

    def test_a_reply(self, grid: Grid, send: str) -> None:
        (reply,) = grid.send_and_receive([ask(1)])
        with pytest.raises(ValueError, match="is a reply"):
            list(getattr(grid, send)([reply]))

    def test_no_time_to_live(self, grid: Grid, send: str) -> None:
        with pytest.raises(ValueError, match="time to live"):
            list(getattr(grid, send)([ask(1, ttl=-1.0)]))

    def test_not_a_message(self, grid: Grid, send: str) -> None:
        with pytest.raises(TypeError, match="not str"):
            list(getattr(grid, send)(["train"]))


@pytest.mark.slow
def test_what_is_for_a_node_that_is_not_there_gets_no_reply_and_the_rest_does(far_side: None) -> None:
    with on_superlink(make_app(), partitions(2), {}) as grid:
        one, two = ids(grid)
        replies = list(grid.send_and_receive(map(ask, [one, 99, 99, two]), timeout=60))
        assert sorted(reply.metadata.src_node_id for reply in replies) == [one, two]


def test_a_grid_without_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        EmbeddedGrid(make_app(), [])


# ------------------------------------------------------------------ laziness and time


def test_messages_are_taken_only_as_replies_are_consumed(every_engine: Engine, every_grid: Grid) -> None:
    taken: list[int] = []
    nodes = ids(every_grid)

    def thousand() -> Iterator[Message]:
        for number in range(1000):
            taken.append(number)
            yield ask(nodes[number % 3])

    replies = iter(every_grid.send_and_receive(thousand()))
    assert len(taken) <= every_engine.ahead
    for consumed, _ in enumerate(itertools.islice(replies, 5), start=1):
        assert consumed <= len(taken) <= consumed + every_engine.ahead
    del replies
    assert sum(counts(every_grid)) <= 5 + every_engine.ahead


def test_memory_does_not_grow_with_the_number_of_messages(in_process: EmbeddedGrid) -> None:
    alive: weakref.WeakSet[Message] = weakref.WeakSet()
    most = 0

    def make() -> Message:
        nonlocal most
        most = max(most, len(alive))
        message = ask(1, "train", arrays_of(1.0))
        alive.add(message)
        return message

    gc.disable()  # freed at once, not when a collector happens to come by
    try:
        for reply in in_process.send_and_receive(make() for _ in range(50)):
            assert not alive, "a message outlives its reply"
            alive.add(reply)
            del reply
    finally:
        gc.enable()
    assert most == 0, "a message or reply is still there when the next message is made"


def test_nothing_begins_after_the_timeout_and_the_rest_gets_no_reply(
    engine: Engine, grid: Grid, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [ask(node, "train.slow") for node in [1, 2, 3] * 5]
    with caplog.at_level(logging.WARNING):
        replies = list(grid.send_and_receive(messages, timeout=0.75))
    assert 1 <= len(replies) <= (6 if engine.ahead else 3)  # a machine that is busy answers fewer
    answered = [reply.metadata.reply_to_message_id for reply in replies]
    sent = [message.metadata.message_id for message in messages]
    if engine.ahead:  # one that began on a worker of its own is replied, though one before it waited too long
        assert answered == [one for one in sent if one in answered]
    else:
        assert answered == sent[: len(answered)]
    assert "messages that remain are not sent" in caplog.text


def test_time_that_is_up_ends_the_wait_and_nothing_is_sent_any_more(
    every_engine: Engine, every_grid: Grid, caplog: pytest.LogCaptureFixture
) -> None:
    """There is work for 6 seconds at least; a reply over HTTP may take two on a machine that is busy."""
    taken = []

    def slow() -> Iterator[Message]:
        for node in ids(every_grid) * 14:
            taken.append(ask(node, "train.slow"))
            yield taken[-1]

    timeout = 1.0 if every_engine.in_order else 3.0
    replies = list(every_grid.send_and_receive(slow(), timeout=timeout))
    assert 1 <= len(replies) < 42
    answered = {reply.metadata.reply_to_message_id for reply in replies}
    assert len(answered) == len(replies)
    assert answered <= {message.metadata.message_id for message in taken}
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 1
    if every_engine.ahead:
        time.sleep(1)  # what was under way comes to its end
    assert sum(counts(every_grid)) <= len(replies) + 4  # under way: one to a node, or what waits in an actor


def test_no_message_is_sent_when_there_is_no_time(every_grid: Grid) -> None:
    one, two, _ = ids(every_grid)
    assert list(every_grid.send_and_receive([ask(one), ask(two)], timeout=0)) == []
    assert counts(every_grid) == [0, 0, 0]


def test_enough_time_is_as_good_as_no_limit(every_grid: Grid, caplog: pytest.LogCaptureFixture) -> None:
    one, two, _ = ids(every_grid)
    assert len(list(every_grid.send_and_receive([ask(one), ask(two)], timeout=60))) == 2
    assert list(every_grid.send_and_receive([], timeout=60)) == []
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_an_expired_message_is_not_delivered_and_a_late_reply_is_lost(grid: Grid) -> None:
    messages = [ask(1, "train.slow", ttl=0.25), ask(2, ttl=0.25)]
    messages[1].metadata.created_at -= 1
    late, expired = grid.send_and_receive(messages)
    assert late.error.code == REPLY_MESSAGE_UNAVAILABLE
    assert expired.error.code == MESSAGE_UNAVAILABLE
    assert counts(grid) == [1, 0, 0]


def test_a_reply_that_comes_too_late_for_its_message_is_an_error(every_grid: Grid) -> None:
    one, two, _ = ids(every_grid)
    late, other = answers(every_grid, [ask(one, "train.slow", ttl=0.25), ask(two)])
    assert late.error.code in (MESSAGE_UNAVAILABLE, REPLY_MESSAGE_UNAVAILABLE)
    assert other.has_content()


# ------------------------------------------------------------------ push and pull


def test_pushed_messages_are_pulled_once_in_order(every_engine: Engine, every_grid: Grid) -> None:
    one, two, three = ids(every_grid)
    messages = [ask(three), ask(one, "train.fail"), ask(two)]
    sent = list(every_grid.push_messages(iter(messages)))
    assert sent == [message.metadata.message_id for message in messages]
    wanted, replies = set(sent), []
    until = time.monotonic() + 30
    while wanted and time.monotonic() < until:
        for reply in every_grid.pull_messages(wanted):
            replies.append(reply)
            wanted.discard(reply.metadata.reply_to_message_id)
    if not every_engine.in_order:
        replies.sort(key=lambda reply: sent.index(reply.metadata.reply_to_message_id))
    assert [reply.metadata.src_node_id for reply in replies] == [three, one, two]
    assert [reply.has_error() for reply in replies] == [False, True, False]
    if every_engine.in_order:  # Flower answers what was pulled before with an error
        assert list(every_grid.pull_messages(sent)) == []
    else:
        assert all(reply.has_error() for reply in every_grid.pull_messages(sent))


def test_a_pull_takes_only_what_it_names(in_process: EmbeddedGrid) -> None:
    ids = in_process.push_messages([ask(1), ask(2), ask(3)])
    in_process.push_messages([ask(1)])
    pulled = in_process.pull_messages([ids[2], ids[0], "unheard-of"])
    assert [reply.metadata.src_node_id for reply in pulled] == [1, 3]
    assert [reply.metadata.src_node_id for reply in in_process.pull_messages(ids)] == [2]


# ------------------------------------------------------------------ Flower on top


def fed_avg(grid: Grid, rounds: int) -> tuple[np.ndarray, dict[int, MetricRecord], dict[int, MetricRecord]]:
    start = arrays_of(0.0, 10.0)["arrays"]
    assert isinstance(start, ArrayRecord)
    result = FedAvg().start(grid, start, num_rounds=rounds)
    return (
        result.arrays["flat"].numpy(),
        result.train_metrics_clientapp,
        result.evaluate_metrics_clientapp,
    )


def test_fed_avg_runs_unmodified(every_grid: Grid) -> None:
    """Nodes add 1, 2, 3 with weights 1, 2, 3: the mean moves by 14/6 a round."""
    arrays, trained, evaluated = fed_avg(every_grid, rounds=2)
    np.testing.assert_allclose(arrays, [14 / 3, 44 / 3], rtol=1e-6)
    assert [trained[r]["count"] for r in (1, 2)] == pytest.approx([1, 2])
    assert [evaluated[r]["mean"] for r in (1, 2)] == pytest.approx([5 + 14 / 6 * r for r in (1, 2)])


def test_a_plain_server_app_runs_without_deprecated_use(
    every_grid: Grid, recwarn: pytest.WarningsRecorder
) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append  # type: ignore[assignment,method-assign]
    flower_log = logging.getLogger("flwr")  # Flower warns of deprecated use in its log
    flower_log.addHandler(handler)
    app = ServerApp()
    outcome: list[np.ndarray] = []

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        outcome.append(fed_avg(grid, rounds=1)[0])

    try:
        app(every_grid, Context(every_grid.run.run_id, 0, {}, RecordDict(), {}))
    finally:
        flower_log.removeHandler(handler)
    np.testing.assert_allclose(outcome[0], [14 / 6, 10 + 14 / 6], rtol=1e-6)
    assert [record.getMessage() for record in records] == []
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(
    ("every_engine", "trust"),
    [
        *(("embedded", "local"), ("embedded", "central")),
        pytest.param("superlink", "local", marks=pytest.mark.slow),  # in every run
        pytest.param("ray", "central", marks=[pytest.mark.slow, pytest.mark.exhaustive]),
    ],
    indirect=["every_engine"],
)
def test_a_statistics_run_gives_the_same_answers_on_any_engine(
    every_engine: Engine, make_statistics: Callable[..., Any], trust: str
) -> None:
    """Each node keeps count of who has answered over the messages of a run, whichever node asks whom."""
    chunk = 25 if every_engine is ENGINES["superlink"] else 13  # a message over HTTP costs a second
    scenario = make_statistics(
        f"privacy.trust={trust}",
        f"federation={{hosts=4, chunk_size={chunk}}}",
        "queries.where={kind='count'}",
    )
    respondents = StatisticsClients.of(scenario)
    record = StatisticsRecord(scenario, respondents.plan, None)
    with every_engine.open(make_respondents(respondents), partitions(3), {}) as grid:
        serve(grid, record, respondents.people)
        with pytest.raises(RunError, match="nobody answered"):  # all have answered before
            serve(grid, StatisticsRecord(scenario, respondents.plan, None), respondents.people)
    told = [(one["estimate"], one["answered"], one["failures"]) for one in record.queries]
    alone = release(scenario, StatisticsClients.of(scenario)).queries
    assert told == [(one["estimate"], 100, 0) for one in alone]


def test_mods_run_around_the_handler_in_their_order(engine: Engine) -> None:
    def stamp(letter: str) -> Callable[[Message, Context, ClientAppCallable], Message]:
        def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
            reply = call_next(message, context)
            trail = reply.content.setdefault("trail", ConfigRecord({"trail": ""}))
            trail["trail"] = str(trail["trail"]) + letter  # type: ignore[assignment]
            return reply

        return mod

    app = make_app(mods=[stamp("a"), arrays_size_mod, stamp("b")])
    with engine.open(app, partitions(1), {}) as grid:
        (reply,) = grid.send_and_receive([ask(1, "train", arrays_of(1.0))])
    assert reply.content["trail"]["trail"] == "ba"


def test_two_grids_can_be_used_in_turn(engine: Engine) -> None:
    with engine.open(make_app(), partitions(2), {"scenario": "first"}) as first:
        early = ask(1)
        with engine.open(make_app(), partitions(3), {"scenario": "second"}) as second:
            replies = zip(
                first.send_and_receive(itertools.chain([early], (ask(2) for _ in range(2)))),
                second.send_and_receive(ask(3) for _ in range(3)),
                strict=True,
            )
            for one, two in replies:
                assert one.content["run"] == {"scenario": "first"}
                assert two.content["run"] == {"scenario": "second"}
            assert counts(second) == [0, 0, 3]
        assert counts(first, [1, 2]) == [1, 2]
        np.testing.assert_allclose(fed_avg(first, rounds=1)[0], [5 / 3, 10 + 5 / 3], rtol=1e-6)


def test_a_client_app_may_run_a_grid_of_its_own(in_process: EmbeddedGrid) -> None:
    outer = ClientApp()

    @outer.query()
    def relay(message: Message, context: Context) -> Message:
        inner = EmbeddedGrid(make_app(), partitions(2))
        replies = inner.send_and_receive(ask(node) for node in inner.get_node_ids())
        nodes = [int(reply.content["about"]["node"]) for reply in replies]  # type: ignore[arg-type]
        return Message(RecordDict({"nodes": ConfigRecord({"nodes": nodes})}), reply_to=message)

    for reply in EmbeddedGrid(outer, partitions(2)).send_and_receive([ask(1), ask(2)]):
        assert reply.content["nodes"]["nodes"] == [1, 2]


def test_the_run_is_a_copy_and_keeps_its_id(in_process: EmbeddedGrid) -> None:
    run_id = in_process.run.run_id
    in_process.run.run_id = 99
    assert in_process.run.run_id == run_id
    named = Run.create_empty(run_id)
    named.fab_id = "publisher/app"
    in_process.set_run(named)
    assert in_process.run.fab_id == "publisher/app"
    with pytest.raises(ValueError, match="cannot join run 99"):
        in_process.set_run(Run.create_empty(99))


# ------------------------------------------------------------------ node states in a checkpoint


def through_a_file(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return safetensors.numpy.load(safetensors.numpy.save(dict(arrays)))


def awkward_state() -> RecordDict:
    """Names with slashes, no name, order by position, 0-d and empty arrays, all dtypes, plain records."""
    dtypes = ["float64", "float32", "float16", "int64", "int8", "uint16", "bool", ">f4"]
    return RecordDict(
        {
            "z": ArrayRecord([np.full(2, index) for index in range(11)]),
            "a/b": ArrayRecord({"c": Array(np.array(7.0)), "b/c": Array(np.zeros((3, 0)))}),
            "a": ArrayRecord(
                {"b/c": Array(np.asfortranarray(np.arange(6.0).reshape(2, 3))), "": Array(np.ones(1))}
            ),
            "empty": ArrayRecord(),
            "dtypes": ArrayRecord({name: Array(np.array([0, 1, 5]).astype(name)) for name in dtypes}),
            "config": ConfigRecord(
                {"text": "ünï/", "flag": False, "list": [1.0, 0.1], "int": 2**60, "none": []}
            ),
            "metrics": MetricRecord({"loss": float("inf"), "n": 1, "losses": [0.1, 1.0]}),
        }
    )


def test_states_survive_a_checkpoint_in_value_type_and_order() -> None:
    old, new = (EmbeddedGrid(make_app(), partitions(3)) for _ in range(2))
    list(old.send_and_receive([ask(2, "train.keep_state", awkward_state()), ask(3)]))
    list(new.send_and_receive([ask(1)]))  # what it had is gone afterwards
    arrays = old.node_states()
    assert {"node/3/counter/values", "node/2/z/10", "node/index"} <= set(arrays)
    new.restore_node_states(through_a_file(arrays) | {"model": np.zeros(3)})
    assert counts(new) == [0, 0, 1]
    assert counts(old) == [0, 0, 1]
    (before,), (after,) = (grid.send_and_receive([ask(2, "query.state")]) for grid in (old, new))
    assert list(before.content) == list(after.content)
    for name, record in before.content.items():
        twin = after.content[name]
        assert type(twin) is type(record)
        assert list(twin) == list(record)
        if not isinstance(record, ArrayRecord):
            assert repr(twin) == repr(record)
            continue
        for key, array in record.items():
            was, now = array.numpy(), twin[key].numpy()  # type: ignore[union-attr]
            assert was.dtype.newbyteorder("=") == now.dtype
            np.testing.assert_array_equal(now, was, strict=was.dtype.isnative)


def test_a_resumed_run_equals_an_uninterrupted_one() -> None:
    whole, part, rest = (EmbeddedGrid(make_app(), partitions(3)) for _ in range(3))
    list(whole.send_and_receive(ask(node) for node in [1, 3, 3, 1, 2]))
    list(part.send_and_receive(ask(node) for node in [1, 3]))
    rest.restore_node_states(through_a_file(part.node_states()))
    list(rest.send_and_receive(ask(node) for node in [3, 1, 2]))
    for key, array in whole.node_states().items():
        np.testing.assert_array_equal(rest.node_states()[key], array)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (ArrayRecord({"a": Array(np.array(["text"]))}), "'r'/'a' of node 2 .* its type is <U4"),
        (ArrayRecord({"a": Array(np.array([1j]))}), "its type is complex128"),
        (ArrayRecord({"a": Array("float32", (1,), "other", b"....")}), "'r'/'a' of node 2 .* 'other'"),
        (ConfigRecord({"key": b"secret"}), "'r' of node 2 .* bytes"),
    ],
)
def test_a_state_that_no_checkpoint_can_hold_is_named(record: ArrayRecord | ConfigRecord, words: str) -> None:
    grid = EmbeddedGrid(make_app(), partitions(2))
    list(grid.send_and_receive([ask(2, "train.keep_state", RecordDict({"r": record}))]))
    with pytest.raises(TypeError, match=words):
        grid.node_states()


@pytest.mark.parametrize("damage", ["nodes", "index", "array", "json"])
def test_a_checkpoint_that_does_not_fit_is_refused_and_changes_nothing(damage: str) -> None:
    old = EmbeddedGrid(make_app(), partitions(4 if damage == "nodes" else 3))
    list(old.send_and_receive([ask(1), ask(1)]))
    arrays = old.node_states()
    if damage == "json":
        arrays["node/index"] = arrays["node/index"][:-1]
    elif damage != "nodes":
        del arrays["node/index" if damage == "index" else "node/1/counter/values"]
    grid = EmbeddedGrid(make_app(), partitions(3))
    list(grid.send_and_receive([ask(1)]))
    with pytest.raises(InputError, match="checkpoint"):
        grid.restore_node_states(arrays)
    assert counts(grid) == [1, 0, 0]
