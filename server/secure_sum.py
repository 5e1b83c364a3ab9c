"""The secure sum between clients and server, ideal and simulated.

`SecureSum` is a grid around the real one. The server's code, honest or not, sends its requests through it and
gets one reply for all of them: the sum of the survivors' integers modulo 2^b and their number, beside the
counts of dropouts and of requests without an answer, which any transport shows. A sum of fewer than n_min
clients is not opened.

It is the functionality that masks compute (`server.masked_grid`), without masks: the process that it runs
in could read each node's message. Guarantees name that (`TrainingAssumption.IDEAL_SUM`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedprivacy.errors import RunError
from fedprivacy.mechanisms.modular import ModularSum
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import SumReply
from fedprivacy.plan.privacy_plan import Plan
from server.aggregation import message_number
from server.grid import MessageGrid
from server.messages import record_of
from server.reply_validation import Rejected, accepted


def secured(grid: Grid, plan: Plan) -> Grid:
    """The grid that the server's code gets: with noise in shares, one that shows sums alone."""
    return grid if plan.shares is None else SecureSum(grid, plan.shares)


class SecureSum(MessageGrid):
    """A grid that replies to the training requests of a round with their clients' sum.

    Args:
        grid: The real grid.
        shares: The mechanism of the plan: its modulus, its length and its least number of survivors.
    """

    def __init__(self, grid: Grid, shares: NoiseShares) -> None:
        self._grid, self._shares = grid, shares
        self._pushed: set[str] = set()

    @property
    def all_here(self) -> bool:
        """Whether the real grid has all its nodes from the beginning."""
        return bool(getattr(self._grid, "all_here", False))

    @property
    def run(self) -> Any:
        """The real grid's run."""
        return self._grid.run

    def set_run(self, run: Any) -> None:
        """Passed on to the real grid."""
        self._grid.set_run(run)

    def get_node_ids(self) -> Iterable[int]:
        """The real grid's nodes."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Passed on to the real grid.

        Raises:
            RunError: A message is no query: replies to others are for sums alone.
        """
        ids = list(self._grid.push_messages(map(_query, messages)))
        self._pushed.update(ids)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies to pushed messages; a late reply to a request for training is none of these."""
        return self._grid.pull_messages([each for each in message_ids if each in self._pushed])

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        """The replies; of training requests one alone, a `SumReply` to the last of them.

        Args:
            messages: Either all of them request training, or all are queries.
            timeout: Seconds to wait for replies; where a node serves one message at a time, for each of its.

        Raises:
            RunError: A message is of another type.
        """
        stream = iter(messages)
        first = next(stream, None)
        if first is None:
            return
        if first.metadata.message_type != "train":
            passed = map(_query, chain([first], stream))
            yield from self._grid.send_and_receive(passed, timeout=timeout)
            return
        reply, last = self._summed(first, stream, timeout)
        yield Message(record_of(*reply.parts()), reply_to=last)

    def _summed(
        self, first: Message, rest: Iterator[Message], timeout: float | None
    ) -> tuple[SumReply, Message]:
        """The sum of the replies to requests for training, and the last of these requests."""
        opening = _Opening(self._shares, first)
        for wave in self._waves(chain([first], rest)):
            for reply in self._grid.send_and_receive(map(opening.request, wave), timeout=timeout):
                opening.add(reply)
            for _ in wave:  # not sent in time
                pass
        return opening.reply(), opening.last

    def _waves(self, messages: Iterator[Message]) -> Iterator[Iterator[Message]]:
        """Cuts messages where a node's turn comes again, for grids that would lose a node's state.

        Each wave is to be used up before the next is taken.
        """
        if getattr(self._grid, "merges", False):
            yield messages
            return
        following = next(messages, None)

        def wave() -> Iterator[Message]:
            nonlocal following
            seen: set[int] = set()
            while following is not None and (node := following.metadata.dst_node_id) not in seen:
                seen.add(node)
                message, following = following, None
                yield message
                following = next(messages, None)

        while following is not None:
            yield wave()


class _Opening:
    """The messages of a round, added up.

    Args:
        shares: As `SecureSum` has it.
        last: The first request; later the last that was sent, to which the sum is the reply.
    """

    def __init__(self, shares: NoiseShares, last: Message) -> None:
        self._shares, self.last = shares, last
        self._sum = ModularSum(shares.padded, shares.bits)
        self._requested: dict[int, NDArray[np.int64]] = {}
        self._in_sum: set[int] = set()
        self._refused, self._faults = 0, Faults()

    def request(self, message: Message) -> Message:
        """Notes which clients a message requests, and returns it."""
        if (kind := message.metadata.message_type) != "train":
            raise RunError(f"a message of type {kind} among requests for training has no sum")
        clients = message.content.array_records["arrays"]["clients"].numpy()
        self._requested[message_number(message)] = clients
        self.last = message
        return message

    def add(self, message: Message) -> None:
        """Adds a node's reply, the first to each request."""
        clients = self._requested.pop(message_number(message), None)
        if clients is None:
            return
        try:
            reply = accepted(message, clients, self._shares.padded, "sum", None, bits=self._shares.bits)
            if self._in_sum.intersection(here := reply.clients.tolist()):
                raise Rejected("reply_clients", "a reply names a client that is in the sum already")
        except Rejected as error:
            self._faults += Faults({error.kind: len(clients)}, str(error))
            return
        self._in_sum.update(here)
        self._sum.add(reply.updates)
        self._refused += reply.refused
        self._faults += reply.faults

    def reply(self) -> SumReply:
        """The one reply to all requests."""
        survivors, least = len(self._in_sum), self._shares.min_survivors
        if survivors < least:
            reason = f"{survivors} survivors, fewer than min_survivors = {least}"
            return SumReply(None, survivors, self._refused, self._faults, reason)
        return SumReply(self._sum.total, survivors, self._refused, self._faults)


def _query(message: Message) -> Message:
    # Flower routes "train.NAME" to training too, so other types are refused, and not "train" alone.
    if (kind := message.metadata.message_type).partition(".")[0] != "query":
        raise RunError(
            f"a message of type {kind} passes by the secure sum, beyond which replies are single ones"
        )
    return message
