"""A malicious or curious server, placed between the honest server code and the grid.

The honest code is unaware of it. A curious server (passive) reads the replies; a malicious one also changes
requests. An attack implements `ServerAdversary`; `Interposed` puts it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Message
from flwr.serverapp import Grid
from torch import Tensor

from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.expected_sum import expected_sum
from fedprivacy.attacks.game import Ids
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Sight
from fedprivacy.attacks.trap_units import TrapUnits
from fedprivacy.messages.protocol import TrainReply, TrainRequest, parts_of
from fedprivacy.plan.privacy_plan import Plan
from server.aggregation import RoundTotal
from server.messages import request_to

See = Callable[[Sight], None]
Raise = Ascent | TrapUnits  # by which a malicious server raises the loss on targets
# Updates of an attacker's own clients, shape (clients, parameters): from which weights, and how many.
References = Callable[[Tensor, int], Tensor]


class ServerAdversary(Protocol):
    """An adversary at the server, who may change each message."""

    def act(self, request: Message) -> Message:
        """The request to send instead of `request` (passive: the request itself)."""
        ...

    def observe(self, reply: Message) -> Message:
        """Observes a reply, and returns the one for the honest code."""
        ...


class Interposed(Grid):
    """A grid with an adversary in the server's seat. Replies still stream.

    Args:
        grid: The real grid.
        adversary: Sees every message both ways.
    """

    def __init__(self, grid: Grid, adversary: ServerAdversary) -> None:
        self._grid, self._adversary = grid, adversary

    def set_run(self, run: Any) -> None:
        """Passed on to the real grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The real grid's run."""
        return self._grid.run

    @property
    def all_here(self) -> bool:
        """Whether the real grid has all its nodes from the beginning."""
        return bool(getattr(self._grid, "all_here", False))

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Made by the real grid."""
        return self._grid.create_message(*args, **kwargs)

    def get_node_ids(self) -> Iterable[int]:
        """The real grid's nodes."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Pushes the messages as the adversary changes them."""
        return self._grid.push_messages(self._adversary.act(message) for message in messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pulls replies; the adversary observes each of them."""
        return (self._adversary.observe(reply) for reply in self._grid.pull_messages(message_ids))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        """Sends messages and yields replies, both as the adversary changes them."""
        sent = (self._adversary.act(message) for message in messages)
        for reply in self._grid.send_and_receive(sent, timeout=timeout):
            yield self._adversary.observe(reply)


@dataclass
class Listener:
    """A curious server: it changes nothing, and observes each update of each round.

    Args:
        victim: The attacked client; every client has its own message.
        see: Takes each round's observation.
        targets: The targets of the current round; None: all are scored.
        round: The number of the round, for its observation.
        scale: The factor from answers to steps of the weights, if clients send sums of gradients.
    """

    victim: int
    see: See
    targets: Ids | None = None
    round: int = 0
    scale: float = 1.0
    _sent: Tensor | None = None
    _places: Tensor | None = None
    _update: Tensor | None = None
    _others: list[Tensor] = field(default_factory=list)

    def act(self, request: Message) -> Message:
        """Stores the weights sent to the victim."""
        if _client_of(request) == self.victim:
            self._sent = torch.from_numpy(parts_of(request)[0]["weights"])
        return request

    def observe(self, reply: Message) -> Message:
        """Keeps the update of every client."""
        if not reply.has_error() and "arrays" in reply.content:
            arrays, _ = parts_of(reply)
            update = torch.from_numpy((self.scale * arrays["updates"]).reshape(-1).astype(np.float32))
            clients = arrays["clients"]
            if len(clients) and clients[0] == self.victim:
                self._update = update
            elif len(clients):
                self._others.append(update)
        return reply

    def close(self) -> bool:
        """Ends a round; False if the victim did not answer, which then has not been observed."""
        answered = self._sent is not None and self._update is not None
        if self._sent is not None and self._update is not None:
            others = torch.stack(self._others) if self._others else torch.empty(0, len(self._sent))
            self.see(Sight(self._sent, self._update, others, self.targets, self.round, self._places))
        # A victim that dropped out must not be judged by its update of an earlier round.
        self._sent, self._update, self._others = None, None, []
        return answered


@dataclass(kw_only=True)
class Climber(Listener):
    """A malicious server: it sends weights with a raised loss on some targets (Nasr et al. 2019).

    The honest code sums the differences from each client's own start, so the ascent does not enter the global
    model. The client's answer to it does: its corrections of the targets, and with trap units its steps on
    the weights into and out of them, which are steps of other units in the global model.

    Args:
        probe: Evaluates the model on all targets.
        ascent: The gradient ascent on the loss.
        everybody: Whether all clients receive them, or the victim alone.
    """

    probe: Probe
    ascent: Raise
    everybody: bool = False
    _raised: Tensor | None = None

    def act(self, request: Message) -> Message:
        """Replaces the sent weights."""
        client = _client_of(request)
        if client is None or not (self.everybody or client == self.victim):
            return request
        if self._raised is None:  # the same for all: the round has one global model
            assert self.targets is not None
            weights = torch.from_numpy(parts_of(request)[0]["weights"])
            self._raised = self.ascent.climb(self.probe.at(self.targets), weights)
            self._places = places_of(self.ascent, self.targets)
        if client == self.victim:
            self._sent = self._raised
        return _with_weights(request, self._raised)

    def close(self) -> bool:
        """Ends a round."""
        self._raised = None
        return super().close()


@dataclass(kw_only=True)
class SumObserver:
    """A server that learns the sum of a round's clients and no update.

    It reads no reply, and with noise in shares a secure sum shows it no more. What it knows of a round is the
    total that the honest code was given, the number of clients in it, and the weights that it sent. From the
    total it takes what it expects of the others.

    Args:
        victim: The attacked client.
        see: Takes each round's observation.
        references: Trains clients of its own, on records that no client has.
        ascent: The gradient ascent of a malicious server; None: it sends what the honest code sends.
        probe: Evaluates the model on all targets, for the ascent.
        everybody: Whether all clients receive raised weights, or the victim alone in its message.
        targets: The targets of the current round; None: all are scored.
        round: The number of the round, for its observation.
        scale: The factor from answers to steps of the weights, if clients send sums of gradients.
    """

    victim: int
    see: See
    references: References
    ascent: Raise | None = None
    probe: Probe | None = None
    everybody: bool = False
    targets: Ids | None = None
    round: int = 0
    scale: float = 1.0
    _model: Tensor | None = None
    _raised: Tensor | None = None

    def act(self, request: Message) -> Message:
        """Stores the weights that are sent, and replaces them where the attack raises a loss."""
        if (clients := _clients_of(request)) is None:
            return request
        if self._model is None:  # the same for all: the round has one global model
            self._model = torch.from_numpy(parts_of(request)[0]["weights"])
            if self.ascent is not None and self.probe is not None and self.targets is not None:
                self._raised = self.ascent.climb(self.probe.at(self.targets), self._model)
        if self._raised is None or not (self.everybody or clients.tolist() == [self.victim]):
            return request
        return _with_weights(request, self._raised)

    def observe(self, reply: Message) -> Message:
        """Reads nothing in a single message."""
        return reply

    def close(self, total: RoundTotal) -> bool:
        """Ends a round; False if there was no sum, or if some refused: perhaps the victim.

        Args:
            total: What the honest code knows of the round, in which the victim was requested.
        """
        model, raised, self._model, self._raised = self._model, self._raised, None, None
        if model is None or total.void or total.refused or not total.answered:
            return False
        sent = model if raised is None else raised
        # At least two, for their spread; four for each client, so that their mean has half of its error.
        count = max(16, 4 * total.answered)
        others = self.references(sent, count)
        honest = others if raised is None or self.everybody else self.references(model, count)
        seen = torch.from_numpy(self.scale * total.updates).float()
        update = seen - expected_sum(honest, total.answered - 1)
        places = places_of(self.ascent, self.targets)
        self.see(Sight(sent, update, others, self.targets, self.round, places))
        return True


@dataclass
class Isolator:
    """A malicious server that isolates the victim: no other client gets a request.

    Args:
        grid: Flower's way to the nodes.
        node: The victim's node.
        host: Its logical host.
        plan: The privacy plan that the victim agreed to.
        victim: The client.
        weights: The victim's separate model, float32, shape (parameters,).
        scale: As a `Listener` has it.
    """

    grid: Grid
    node: int
    host: int
    plan: Plan
    victim: int
    weights: Tensor
    scale: float = 1.0

    def ask(self, round: int, aim: Probe | None = None, ascent: Raise | None = None) -> Sight | None:
        """One round with the victim alone, which moves its stream; None if it refuses.

        Args:
            round: The number of the round, above all earlier ones.
            aim: The targets whose loss is raised first; None: the weights are sent unchanged.
            ascent: The gradient ascent.
        """
        sent = self.weights if aim is None or ascent is None else ascent.climb(aim, self.weights)
        request = TrainRequest(round, self.host, 0, np.array([self.victim]), sent.numpy(), self.plan, "sum")
        message = request_to(self.node, "train", f"{round}/0", *request.parts())
        for reply in self.grid.send_and_receive([message]):
            if reply.has_error():
                return None
            answer = TrainReply.of(*parts_of(reply), parameters=len(sent), observe="sum")
            if not len(answer.clients):
                return None
            update = torch.from_numpy((self.scale * answer.updates).astype(np.float32))
            # The isolated model continues from the victim's own update, so its fit to the victim's members
            # grows. Neither trap units nor the answers to them enter it.
            start, step = sent, update
            if isinstance(ascent, TrapUnits) and aim is not None:
                start, step = self.weights, update.clone()
                step[ascent.planted(len(aim.y))] = 0.0
            self.weights = start + step
            return Sight(sent, update, torch.empty(0, len(sent)))
        return None


def places_of(ascent: Raise | None, targets: Ids | None) -> Tensor | None:
    """The parameters that lead into the targets' trap units (`Sight.places`)."""
    return ascent.parameters(len(targets)) if isinstance(ascent, TrapUnits) and targets is not None else None


def _client_of(request: Message) -> int | None:
    """The client that a training request is for, where it is for one alone."""
    clients = _clients_of(request)
    return int(clients[0]) if clients is not None and len(clients) == 1 else None


def _clients_of(request: Message) -> Ids | None:
    """The clients that a training request is for; None for other requests."""
    if request.metadata.message_type != "train":
        return None
    # Only this array: the weights are large, and every message is inspected.
    clients: Ids = request.content.array_records["arrays"]["clients"].numpy()
    return clients


def _with_weights(request: Message, weights: Tensor) -> Message:
    """A training request with other weights."""
    request.content.array_records["arrays"] = ArrayRecord(
        {**request.content.array_records["arrays"], "weights": Array(weights.numpy())}
    )
    return request
