"""Adds up a round's replies as they stream in, in the order of the chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from flwr.app import Message
from numpy.typing import NDArray

from fedprivacy.io.escape import first_line
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.summation import RunningSum, sum_of_rows
from fedprivacy.messages.faults import NO_FAULTS, Faults
from server.reply_validation import Rejected, accepted
from server.robust_rules import RobustRule
from server.sampling import Chunk

NO_ANSWER = ("no_answer", "the node did not answer")


@dataclass
class RoundTotal:
    """The total of a round's replies. Counts and texts are operator-only.

    Args:
        updates: The sum of all answered updates, float64, shape (parameters,); with a robust rule its
            estimate of their mean.
        answered: The number of clients in it.
        refused: The number of clients that refused because their budget is spent.
        faults: The counted faults.
        known: Whether `faults` includes those on the nodes, which local trust keeps there.
        noise_alone: The number of answers that are noise alone, because the client failed.
        void: Whether too few clients survived for a secure sum, or answered for a robust rule: nothing is
            released, and `updates` are zero.
        void_reason: Why it is void, as far as the secure sum states it.
    """

    updates: NDArray[np.float64]
    answered: int = 0
    refused: int = 0
    faults: Faults = NO_FAULTS
    known: bool = True
    noise_alone: int = 0
    void: bool = False
    void_reason: str | None = None

    @property
    def failed(self) -> int:
        """The number of clients that failed or never answered."""
        return self.faults.failed

    @property
    def zeroed(self) -> int | None:
        """The number of updates that were not finite; None where nobody may know."""
        return self.faults.zeroed if self.known else None

    @property
    def contributed(self) -> int | None:
        """The number of clients with a whole update in the sum; None where nobody may know."""
        if not self.known:
            return None
        if self.void:
            return 0
        return max(0, self.answered - self.noise_alone - self.faults.zeroed)

    @property
    def first_failure(self) -> str | None:
        """The reason of the first failure."""
        return self.faults.first

    def fail(self, kind: str, count: int, reason: str) -> None:
        """Counts clients that failed."""
        self.faults += Faults({kind: count}, reason)

    def nobody_answered(self, round: int) -> str:
        """Explains why a run ends in which every client failed or refused."""
        refused = f" ({self.refused} others refused)" if self.refused else ""
        first = first_line(self.first_failure or "")
        return f"round {round}: all {self.failed} clients failed{refused}. First: {first}"


def aggregate(
    chunks_requested: Iterable[Chunk],
    replies: Iterable[Message],
    *,
    parameters: int,
    observe: str,
    longest: float | None = None,
    dropout: bool = True,
    counted: bool = False,
    rule: RobustRule | None = None,
    clips_to: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
    fault_of: Callable[[int], tuple[str, str] | None] = lambda host: None,
) -> RoundTotal:
    """Sums a round's replies in (host, chunk) order, independently of their order of arrival.

    Memory contains the total and early replies, not the cohort; with a robust rule it contains the cohort.

    Args:
        chunks_requested: The round's chunks, in order; message number i requested the i-th.
        replies: Flower replies; `metadata.group_id` ends in the message's number.
        parameters: The length of the model's flat vector.
        observe: "sum" or "each": what the replies hold.
        longest: The largest norm of one client's part (`server.reply_validation.longest`), or None.
        dropout: Whether clients may drop out.
        counted: Whether the last number counts clients (`server.reply_validation.accepted`).
        rule: Estimates the mean update from single ones in place of their sum; None: they are added up.
        clips_to: The norm to which the server clips the update of each client, shape (population,); None: it
            does not clip.
        weights: The factor of each client's clipped update, shape (population,); None: all are 1.
        fault_of: The kind of fault and the reason of a logical host that has no node (`server.hosts`).
    """
    # Floating-point addition is not associative: adding in order of arrival would make a run depend on the
    # network, and its rounding error on timing that may depend on data.
    total = RoundTotal(np.zeros(parameters))
    updates = RunningSum(parameters) if rule is None else SingleUpdates(rule, parameters)
    in_order = by_turn(replies)
    reply = next(in_order, None)
    for number, chunk in enumerate(chunks_requested):
        if reply is not None and reply[0] == number:
            bounds = (longest, clips_to, weights)
            _add(total, updates, chunk, reply[1], parameters, observe, bounds, dropout, counted)
            reply = next(in_order, None)
        else:
            kind, reason = fault_of(chunk.host) or NO_ANSWER
            total.fail(kind, len(chunk.clients), reason)
    total.updates = updates.total
    total.void = isinstance(updates, SingleUpdates) and updates.too_few
    return total


class SingleUpdates:
    """The updates of a round for a robust rule, which needs all of them at once.

    Args:
        rule: The rule.
        length: Of each update.
    """

    def __init__(self, rule: RobustRule, length: int) -> None:
        self._rule, self._length = rule, length
        self._rows: list[NDArray[np.float64]] = []
        self._clients: list[NDArray[np.int64]] = []

    def add(self, rows: NDArray[np.float64], clients: NDArray[np.int64]) -> None:
        """Adds updates, shape (clients, length), and the ids of their clients."""
        self._rows.append(rows)
        self._clients.append(clients)

    @property
    def too_few(self) -> bool:
        """Whether some clients answered, and too few for the rule."""
        answers = sum(map(len, self._clients))
        return answers > 0 and not self._rule.enough(answers)

    @property
    def total(self) -> NDArray[np.float64]:
        """The rule's estimate of the mean update, shape (length,); zero without answers, or with too few."""
        if not any(map(len, self._clients)) or self.too_few:
            return np.zeros(self._length)
        # By client id: hosts and chunks, which cut a cohort, change no bit.
        order = np.argsort(np.concatenate(self._clients))
        return self._rule.estimate(np.concatenate(self._rows)[order])


SPENT = (
    "A client refuses a request that it has answered before, in this run or an earlier one: a plan is "
    "trained once, and no record affects the refusal. The account (home) of each node has the details; the "
    "server sees only the number of refusals, and the clients without an answer. Owners who agree to "
    "another run choose a new home, which costs the same epsilon again (docs/nodes.md)."
)


def nobody_took_part(events: Sequence[Mapping[str, Any]]) -> str | None:
    """Explains why a run ends in which every client refused; None where any answered.

    Args:
        events: Its rounds (`fedprivacy.records.run_record.round_event`).
    """
    refused = sum(event["refusals"] for event in events)
    away = [event["refusals"] + event["failures"] + event["faults"].get("dropped", 0) for event in events]
    if not refused or any(event["cohort"] > gone for event, gone in zip(events, away, strict=True)):
        return None
    requested, others = sum(event["cohort"] for event in events), sum(away) - refused
    rounds = "its round" if len(events) == 1 else f"all {len(events)} rounds"
    return (
        f"no client's data are in the model: of {requested} requests to clients in {rounds}, {refused} were "
        f"refused{f' and {others} failed or dropped out' if others else ''}. {SPENT}"
    )


def message_number(message: Message) -> int:
    """The number of the request that a reply answers, from its group id `round/number`; -1 without one."""
    number = message.metadata.group_id.rpartition("/")[2]
    return int(number) if number.isascii() and number.isdigit() else -1


def by_turn(replies: Iterable[Message]) -> Iterator[tuple[int, Message]]:
    """Yields replies in the order of their numbers; early ones wait, and gaps close at the end.

    A reply to no request, or a second reply to one, is left out.
    """
    waiting: dict[int, Message] = {}
    turn = 0
    for message in replies:
        number = message_number(message)
        if number >= turn:
            # The first of several replies to a request counts: a node that answers twice must not be in the
            # sum twice, which would double its clients' sensitivity.
            waiting.setdefault(number, message)
        while turn in waiting:
            yield turn, waiting.pop(turn)
            turn += 1
    for number in sorted(waiting):
        yield number, waiting[number]


def _add(
    total: RoundTotal,
    updates: RunningSum | SingleUpdates,
    chunk: Chunk,
    message: Message,
    parameters: int,
    observe: str,
    bounds: tuple[float | None, NDArray[np.float64] | None, NDArray[np.float64] | None],
    dropout: bool,
    counted: bool,
) -> None:
    requested, (longest, clips_to, weights) = len(chunk.clients), bounds
    # Validated before it is added. Under central trust a client moves the sum by at most C only if its node
    # clipped; a reply that is too long is therefore refused as a whole.
    try:
        reply = accepted(
            message,
            chunk.clients,
            parameters,
            observe,
            longest,
            dropout,
            counted,
            clips=clips_to is not None,
            weights=weights,
        )
    except Rejected as error:
        total.fail(error.kind, requested, str(error))
        return
    if clips_to is not None:
        # A node's clipping is its own affair: what bounds a malicious client is done here. It is charged to
        # nobody else, since other clients of its message count in full.
        bounds_of_rows = torch.from_numpy(clips_to[reply.clients])
        rows, broken = clip(torch.from_numpy(reply.updates), bounds_of_rows)
        reply = replace(reply, updates=rows.numpy())
        total.faults += Faults({"not_finite": int(broken.sum())})
    if isinstance(updates, SingleUpdates):
        updates.add(reply.updates, reply.clients)
    else:
        updates.add(
            reply.updates if observe == "sum" else sum_of_rows(torch.from_numpy(reply.updates)).numpy()
        )
    total.answered += len(reply.clients)
    total.refused += reply.refused
    total.faults += reply.faults
    # Clients that the reply does not mention.
    missing = requested - len(reply.clients) - reply.refused - reply.faults.failed - reply.faults["dropped"]
    if missing > 0:
        total.fail("no_answer", missing, "the client did not answer")
