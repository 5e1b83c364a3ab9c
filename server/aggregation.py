"""Adds up a round's replies as they stream in, in the order of the chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from flwr.app import Message
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError
from fedprivacy.mechanisms.clipping import add_in_order
from fedprivacy.protocol import TrainReply
from server.messages import parts_of
from server.sampling import Chunk


@dataclass
class RoundTotal:
    """What a round's replies amount to. Counts and texts are operator-only.

    Args:
        updates: The sum of all answered updates, float64, shape (parameters,).
        answered: How many clients are in it.
        zeroed: How many of those had an update that was not finite; None where nobody may know.
        refused: How many clients refused, since their budget is spent.
        failed: How many clients failed or never answered.
        first_failure: Why the first of them failed.
    """

    updates: NDArray[np.float64]
    answered: int = 0
    zeroed: int | None = 0
    refused: int = 0
    failed: int = 0
    first_failure: str | None = None

    def fail(self, count: int, reason: str) -> None:
        """Counts clients that failed."""
        self.failed += count
        self.first_failure = self.first_failure or reason

    def nobody_answered(self, round: int) -> str:
        """Why a run ends in which every client failed."""
        return f"round {round}: all {self.failed} clients failed. First: {self.first_failure}"


def aggregate(
    asked: Iterable[Chunk], replies: Iterable[Message], *, parameters: int, observe: str
) -> RoundTotal:
    """The sum over a round's replies, added in (host, chunk) order whatever the order of arrival.

    Memory holds the total and whatever arrived before its turn, not the cohort.

    Args:
        asked: The round's chunks, in order; message number i asked for the i-th.
        replies: Flower replies; `metadata.group_id` ends in the message's number.
        parameters: The length of the model's flat vector.
        observe: "sum" or "each": what the replies hold.
    """
    total = RoundTotal(np.zeros(parameters))
    in_order = by_turn(replies)
    reply = next(in_order, None)
    for number, chunk in enumerate(asked):
        if reply is not None and reply[0] == number:
            _add(total, chunk, reply[1], parameters, observe)
            reply = next(in_order, None)
        else:
            total.fail(len(chunk.clients), "the node did not answer")
    return total


def message_number(message: Message) -> int:
    """The number of the request that a reply answers, from its group id `round/number`."""
    return int(message.metadata.group_id.rpartition("/")[2])


def by_turn(replies: Iterable[Message]) -> Iterator[tuple[int, Message]]:
    """Replies in the order of their numbers; early ones wait, and gaps are closed at the end."""
    waiting: dict[int, Message] = {}
    turn = 0
    for message in replies:
        waiting[message_number(message)] = message
        while turn in waiting:
            yield turn, waiting.pop(turn)
            turn += 1
    for number in sorted(waiting):
        yield number, waiting[number]


def _add(total: RoundTotal, chunk: Chunk, message: Message, parameters: int, observe: str) -> None:
    if message.has_error():
        total.fail(len(chunk.clients), message.error.reason or f"Flower error {message.error.code}")
        return
    try:
        reply = TrainReply.of(*parts_of(message), parameters=parameters, observe=observe)
    except FedPrivacyError as error:
        total.fail(len(chunk.clients), str(error))
        return
    unknown = np.setdiff1d(reply.clients, chunk.clients)
    if len(unknown) or len(np.unique(reply.clients)) != len(reply.clients):
        total.fail(len(chunk.clients), "a node answered for clients that it was not asked for")
        return
    updates = reply.updates if observe == "sum" else add_in_order(torch.from_numpy(reply.updates)).numpy()
    total.updates += updates
    total.answered += len(reply.clients)
    total.zeroed = (total.zeroed or 0) + reply.faults.zeroed
    total.refused += reply.refused
    missing = len(chunk.clients) - len(reply.clients) - reply.refused
    if missing > 0:
        total.fail(missing, reply.faults.first or "the client did not answer")
