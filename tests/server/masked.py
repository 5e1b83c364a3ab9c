"""Pinned nodes with one client each, their keys, and a server that sums their updates under masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord, Context, Message, RecordDict

from clients.app import app
from clients.fleet import Fleet
from clients.node import clients_of_node
from clients.training_handler import answer
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.messages.secure_sum import new_run, round_name
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.scenario import Scenario
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.roster import read_roster, roster_text
from fedprivacy.secure_sum.transcript import Phase, Roster
from fedprivacy.verification.verify import checked_document
from scenarios.engines.embedded import EmbeddedGrid
from server.app import app as server_app
from server.grid import MessageGrid
from server.masked_sum import MaskedRound, Place, Total

CLIENTS = 5
PARAMETERS = 10  # of the model: 4 features, 2 classes
TEXT = f"""
name = "masked"
[data]
name = "on-nodes"
features = 4
classes = 2
clients = {CLIENTS}
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "distributed"
adjacency = "zero-out"
bits = 16
min_survivors = 4
clipping_norm = 1.0
noise_multiplier = 0.5
delta = 1e-3
[federation]
hosts = {CLIENTS}
"""
Change = Callable[[Phase, int, Message], Message | None]


@cache
def key_texts(client: int) -> tuple[bytes, str]:
    """A node's private and public key as files have them."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return private, key.public_key().public_bytes(*form).decode()


class MaskedNodes:
    """Owners of records, each with a node, a scenario, a file, a key and a home of its own."""

    def __init__(self, folder: Path, text: str = TEXT, *overrides: str) -> None:
        self.folder = folder
        self.scenario = Scenario.from_text(text, overrides=overrides)
        self.plan = plan_of(self.scenario)
        self.roster_file = folder / "roster"
        self.roster_file.write_text(roster_text([key_texts(client)[1] for client in range(CLIENTS)]))
        self.run = new_run()

    def config(self, client: int, **changes: object) -> dict:
        """The node config of one of them; what is None in `changes` is left out."""
        own = self.folder / f"node-{client}"
        if not own.exists():
            (own / "home").mkdir(parents=True)
            (own / "key").write_bytes(key_texts(client)[0])
            stream = np.random.default_rng(client)
            x = stream.standard_normal((20, 4)).astype(np.float32)
            np.savez(own / "own.npz", x_train=x, y_train=(x[:, 0] > 0).astype(np.int64))
        config = {
            "partition-id": client,
            "num-partitions": CLIENTS,
            "scenario": self.scenario.to_toml(),
            "data": str(own / "own.npz"),
            "home": str(own / "home"),
            "node-key": str(own / "key"),
            "roster": str(self.roster_file),
            "noise": "system",
        } | {key.replace("_", "-"): value for key, value in changes.items()}
        return {key: value for key, value in config.items() if value is not None}

    def round_file(self, client: int) -> Path:
        """The file with the secrets of a client's round."""
        return self.folder / f"node-{client}" / "home" / "secure-sum" / f"client-{client}.round"

    @property
    def shares(self) -> NoiseShares:
        assert self.plan.shares is not None
        return self.plan.shares

    @property
    def parameters(self) -> Parameters:
        return Parameters.of_shares(self.shares)

    @property
    def roster(self) -> Roster:
        return read_roster(self.roster_file)

    def grid(self, **changes: object) -> EmbeddedGrid:
        """The nodes, started anew, with changes to their configs."""
        return EmbeddedGrid(app, [self.config(client, **changes) for client in range(CLIENTS)])

    def integers(self, client: int, number: int = 0) -> Integers:
        """What a client with seeded noise adds to the sum, without masks."""
        config = self.config(client, noise="seeded")
        context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})
        here = clients_of_node(context)
        assert isinstance(here.clients, Fleet)
        training = self.training(number)
        request = replace(training, host=client, clients=np.array([client]))
        integers: Integers = answer(here.clients, None, request, [client])[0].updates
        return integers

    @staticmethod
    def ids(client: int) -> np.ndarray:
        return np.array([client], np.int64)

    def training(self, number: int = 0, weight: float = 0.0) -> TrainRequest:
        weights = np.full(PARAMETERS, weight, np.float32)
        return TrainRequest(number, 0, 0, np.zeros(1, np.int64), weights, self.plan, "sum")

    def round(self, number: int = 0, grid: EmbeddedGrid | Wire | None = None, run: str = "") -> Total:
        """One round with all clients."""
        training = self.training(number)
        return MaskedRound(
            grid or self.grid(),
            {client: Place(client + 1, client) for client in range(CLIENTS)},
            self.roster,
            self.parameters,
            training,
            self.scenario.seed,
            round_name(run or self.run, number, training.weights),
            60.0,
        ).total()


class Wire(MessageGrid):
    """A grid that changes, drops and records what passes; each message meets nodes that were started anew.

    Args:
        nodes: The nodes.
        request: Changes a request by its phase and client; None: it is lost.
        reply: Changes a reply.
        **changes: Of the nodes' configs.
    """

    def __init__(
        self,
        nodes: MaskedNodes,
        request: Change = lambda phase, client, message: message,
        reply: Change = lambda phase, client, message: message,
        **changes: object,
    ) -> None:
        self._nodes, self._request, self._reply, self._changes = nodes, request, reply, changes
        self._grid = nodes.grid(**changes)  # Flower makes messages within a run
        self._sent: dict[str, list[Message]] = {}
        self.requests: list[tuple[Phase, int, Message]] = []
        self.replies: list[tuple[Phase, int, Message]] = []

    all_here = True

    @property
    def run(self) -> object:
        return self._grid.run

    def set_run(self, run: object) -> None:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for message in messages:
            message_id = f"message-{len(self._sent)}"
            self._sent[message_id] = list(self.send_and_receive([message]))
            ids.append(message_id)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        pulled = []
        for message_id in message_ids:
            for reply in self._sent[message_id]:
                reply.metadata.__dict__["_reply_to_message_id"] = message_id
                pulled.append(reply)
            self._sent[message_id] = []
        return pulled

    def get_node_ids(self) -> list[int]:
        return list(range(1, CLIENTS + 1))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        for message in messages:
            if message.metadata.message_type == "query":  # of hosts
                yield from self._nodes.grid(**self._changes).send_and_receive([message])
                continue
            values = message.content.config_records["values"]
            phase, client = Phase(int(values["phase"])), int(values["client"])
            changed = self._request(phase, client, message)
            self.requests.append((phase, client, message))
            if changed is None:
                continue
            for reply in self._nodes.grid(**self._changes).send_and_receive([changed]):
                self.replies.append((phase, client, reply))
                shown = self._reply(phase, client, reply)
                if shown is not None:
                    yield shown


def with_values(sent: Message, /, **values: object) -> Message:
    """A message with other values."""
    record = ConfigRecord({**sent.content.config_records["values"], **values})  # type: ignore[arg-type]
    sent.content["values"] = record
    return sent


def served(nodes: MaskedNodes, wire: Wire, **config: object) -> dict:
    """The document of a run that the server of a deployment made, checked as any other."""
    out = nodes.folder / "runs"
    values = {
        "scenario": nodes.scenario.to_toml(compare=False),
        "out": str(out),
        "noise": "system",
        "pinned": True,
        "roster": nodes.roster_file.read_text(),
    } | config
    server_app(wire, Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=values))
    [path] = out.glob("*/run.json")
    return checked_document(path.parent)
