"""The messages of server and clients, as plain values: arrays and scalars by name.

It imports no Flower: `clients` and `server` put these parts into Flower messages, and `parts_of` takes a
message apart by the names of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError, InputError, Refusal
from fedprivacy.io import bounded_json, npy
from fedprivacy.messages.faults import KINDS, NO_FAULTS, REASON, Faults
from fedprivacy.plan.privacy_plan import Plan

Arrays = dict[str, NDArray[Any]]
Values = dict[str, Any]

MOST = 2**31 - 1  # bound of a message's counts: rounds, clients, faults
_SHORT = 2**16  # letters of a plan that is kept for the next request
# What taking a damaged message apart may raise.
DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


@dataclass(frozen=True)
class TrainRequest:
    """Train these clients, a chunk of the cohort on one logical host.

    Args:
        round: The round, from 0.
        host: The logical host of all these clients.
        chunk: The number of the chunk within the host's part of the cohort.
        clients: Their ids, sorted, int64, shape (chunk,).
        weights: The model that they start from, float32, shape (parameters,).
        plan: The requested privacy plan. A client compares it with its own.
        observe: "sum" or "each": what the node replies with.
        clipping_norm: Of this round, where the plan's changes from round to round; else None.
    """

    round: int
    host: int
    chunk: int
    clients: NDArray[np.int64]
    weights: NDArray[np.float32]
    plan: Plan
    observe: str
    clipping_norm: float | None = None

    def parts(self) -> tuple[Arrays, Values]:
        """The request as arrays and scalars."""
        values: Values = {
            "round": self.round,
            "host": self.host,
            "chunk": self.chunk,
            "observe": self.observe,
            "plan": json.dumps(self.plan.to_json()),
        }
        if self.clipping_norm is not None:
            values["clipping_norm"] = self.clipping_norm
        return {"weights": self.weights, "clients": self.clients}, values

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> TrainRequest:
        """The request that `parts` took apart.

        Raises:
            InputError: if parts are missing or of the wrong kind.
        """
        try:
            request = cls(
                round=whole(values["round"]),
                host=whole(values["host"]),
                chunk=whole(values["chunk"]),
                clients=arrays["clients"],
                weights=arrays["weights"],
                plan=_plan_of(values["plan"]),
                observe=str(values["observe"])[:REASON],
                clipping_norm=float(values["clipping_norm"]) if "clipping_norm" in values else None,
            )
        except DAMAGE as error:
            raise InputError(f"not a training request: {describe_error(error)}") from error
        _check(request.weights, np.float32, "weights")
        _check(request.clients, np.int64, "clients")
        if request.observe not in ("sum", "each"):
            raise InputError(f"not a training request: observe is {request.observe!r}")
        return request


@dataclass(frozen=True)
class TrainReply:
    """A node's reply for a chunk.

    Args:
        updates: Privatised updates, float64: their sum, shape (parameters,), where sums are observed,
            else one row for each client that answered, shape (answered, parameters). With noise in shares
            their sum modulo 2^b, int64.
        clients: The ids that answered, in the order of the rows, int64, shape (answered,).
        refused: How many refused, since their budget is spent; no data decides it.
        faults: Counts of faults. Under local trust, where the server is the adversary, only who dropped out,
            by a coin that no data decides.
    """

    updates: NDArray[Any]
    clients: NDArray[np.int64]
    refused: int = 0
    faults: Faults = NO_FAULTS

    def parts(self) -> tuple[Arrays, Values]:
        """The reply as arrays and scalars."""
        values = {"refused": self.refused, **self.faults.values()}
        return {"updates": self.updates, "clients": self.clients}, values

    @classmethod
    def of(
        cls,
        arrays: Arrays,
        values: Values,
        *,
        parameters: int,
        observe: str,
        numbers: type[np.float64] | type[np.int64] = np.float64,
    ) -> TrainReply:
        """Rebuilds the reply that `parts` took apart, and checks it against the request.

        Args:
            arrays: Of the message.
            values: Of the message.
            parameters: The length of an answer (`Plan.answer_length`).
            observe: What was requested.
            numbers: The type of its numbers (`Plan.answer_type`).

        Raises:
            FedPrivacyError: if the node's answer does not have the requested shape.
        """
        try:
            reply = cls(
                updates=arrays["updates"],
                clients=arrays["clients"],
                refused=int(values["refused"]),
                faults=Faults.of(values),
            )
        except DAMAGE as error:
            raise FedPrivacyError(f"not a training reply: {describe_error(error)}") from error
        if reply.clients.ndim != 1 or reply.clients.dtype != np.int64:
            raise FedPrivacyError(
                f"not a training reply: clients are {reply.clients.dtype} of shape {reply.clients.shape}"
            )
        expected = (parameters,) if observe == "sum" else (len(reply.clients), parameters)
        if reply.updates.shape != expected or reply.updates.dtype != numbers:
            raise FedPrivacyError(
                f"not a training reply: updates are {reply.updates.dtype} {reply.updates.shape}, "
                f"expected {numbers.__name__} {expected}"
            )
        return reply


@dataclass(frozen=True)
class SumReply:
    """The reply of a secure sum to all requests of a round.

    Args:
        total: The sum of the survivors' integers modulo 2^b, int64, shape (d,); None where it was not opened.
        survivors: How many clients are in it.
        refused: How many refused, since their budget is spent; no data decides it.
        faults: Dropouts, and requests without an answer: the transport shows them, and no data decides them.
        reason: Why the sum was not opened; None where it was.
    """

    total: NDArray[np.int64] | None
    survivors: int
    refused: int = 0
    faults: Faults = NO_FAULTS
    reason: str | None = None

    def parts(self) -> tuple[Arrays, Values]:
        """The reply as arrays and scalars."""
        counts = {kind: self.faults[kind] for kind in KINDS}
        values = {
            "survivors": self.survivors,
            "refused": self.refused,
            **counts,
            "first": self.faults.first or "",
            "reason": self.reason or "",
        }
        return ({} if self.total is None else {"total": self.total}), values

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> SumReply:
        """The reply that `parts` took apart.

        Raises:
            FedPrivacyError: it is none: the sum is not secure.
        """
        try:
            counts = {kind: whole(values[kind]) for kind in KINDS}
            faults = Faults(counts, str(values["first"]) or None)
            survivors, refused = whole(values["survivors"]), whole(values["refused"])
            return cls(arrays.get("total"), survivors, refused, faults, str(values["reason"]) or None)
        except DAMAGE as error:
            raise FedPrivacyError(f"not the reply of a secure sum: {describe_error(error)}") from error


@dataclass(frozen=True)
class QueryRequest:
    """Ask these clients one query of a statistics scenario; they all live on one logical host.

    Args:
        query: The number of the query in the scenario.
        host: The logical host of all these clients.
        clients: Their ids, sorted, int64, shape (chunk,).
        plan: The requested plan, as JSON data. A client compares it with its own.
    """

    query: int
    host: int
    clients: NDArray[np.int64]
    plan: Any

    def parts(self) -> tuple[Arrays, Values]:
        """The request as arrays and scalars."""
        return {"clients": self.clients}, {
            "query": self.query,
            "host": self.host,
            "plan": json.dumps(self.plan),
        }

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> QueryRequest:
        """The request that `parts` took apart.

        Raises:
            InputError: if parts are missing or of the wrong kind.
        """
        try:
            plan = bounded_json.loads(values["plan"])
            request = cls(whole(values["query"]), whole(values["host"]), arrays["clients"], plan)
        except DAMAGE as error:
            raise InputError(f"not a query: {describe_error(error)}") from error
        _check(request.clients, np.int64, "clients")
        return request


@dataclass(frozen=True)
class QueryReply:
    """A node's reply for a chunk.

    Args:
        totals: The totals of the clients' answers, float64, shape (cells,).
        answered: How many clients are in them.
        refused: How many refused, since they have answered this query before.
    """

    totals: NDArray[np.float64]
    answered: int
    refused: int

    def parts(self) -> tuple[Arrays, Values]:
        """The reply as arrays and scalars."""
        return {"totals": self.totals}, {"answered": self.answered, "refused": self.refused}

    @classmethod
    def of(cls, arrays: Arrays, values: Values, *, cells: int, clients: int) -> QueryReply:
        """Rebuilds the reply that `parts` took apart, and checks it against the request.

        Raises:
            FedPrivacyError: if the node's answer does not have the requested shape.
        """
        try:
            reply = cls(arrays["totals"], whole(values["answered"]), whole(values["refused"]))
        except DAMAGE as error:
            raise FedPrivacyError(f"not an answer: {describe_error(error)}") from error
        totals = reply.totals
        if totals.shape != (cells,) or totals.dtype != np.float64 or not np.isfinite(totals).all():
            raise FedPrivacyError(
                f"not an answer: totals are {totals.dtype} {totals.shape}, expected ({cells},)"
            )
        if reply.answered + reply.refused != clients:
            raise FedPrivacyError(f"not an answer: {clients} were asked, {reply.answered} answered")
        return reply


def _plan_of(text: str) -> Plan:
    # All requests of a run have the same plan. A long text, which no plan has, is not kept.
    return (_plan_of_short if len(text) <= _SHORT else _plan_of_short.__wrapped__)(text)


@lru_cache(maxsize=2)
def _plan_of_short(text: str) -> Plan:
    return Plan.from_json(bounded_json.loads(text))


def parts_of(message: Any) -> tuple[Arrays, Values]:
    """Splits a message into arrays and scalars; refuses pickles, and arrays larger than their bytes.

    Args:
        message: As it travels (`flwr.app.Message`): its `content` has `array_records`, each array with
            `stype`, how its `data` is written, and `config_records`, with the scalars.

    Raises:
        InputError: the message has none, or they are not plain arrays in numpy's format.
    """
    try:
        arrays, values = message.content.array_records["arrays"], message.content.config_records["values"]
        return {name: _array(name, array) for name, array in arrays.items()}, dict(values)
    except DAMAGE as error:
        raise InputError(f"not a message of arrays and values: {describe_error(error)}") from error


def _array(name: str, sent: Any) -> NDArray[Any]:
    if sent.stype != "numpy.ndarray":
        raise ValueError(f"{name[:60]} is written as {str(sent.stype)[:60]!r}")
    return npy.array_of(sent.data)


def whole(value: Any) -> int:
    """A whole number of a message.

    Raises:
        ValueError: it is none, or above `MOST`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise ValueError(f"{str(value)[:40]!r} is not a whole number from 0 to {MOST}")
    return value


def describe_error(error: Exception) -> str:
    """The text of an error about damage, no longer than a reason."""
    return f"{type(error).__name__}: {str(error)[:REASON]}"


def check_clients(
    clients: NDArray[np.int64],
    host: int,
    here: Sequence[int],
    hosts: int,
    population: int,
    named: str = "clients",
) -> None:
    """Refuses a request that names clients who do not exist, who live elsewhere, or one twice.

    Args:
        clients: The ids of a request.
        host: The logical host that it names.
        here: The logical hosts of this node.
        hosts: How many there are.
        population: How many clients there are.
        named: Their name in the message.

    Raises:
        Refusal: it does, of kind "clients".
    """
    if len(clients) > population:
        raise Refusal(f"request for {len(clients)} {named}, there are {population}", "clients")
    if len(clients) and (clients.min() < 0 or clients.max() >= population):
        raise Refusal(f"request for unknown {named}: there are {named} 0 to {population - 1}", "clients")
    if host not in here or (clients % hosts != host).any():
        # A client that answered on two nodes would be counted by neither, and reuse its noise.
        raise Refusal(f"request for {named} of host {host}; this node has hosts {list(here)}", "clients")
    if not sorted_once(clients):
        # A client named twice would count twice in the sum, beyond the sensitivity.
        raise Refusal(f"the {named} of a request must be sorted and named once", "clients")


def sorted_once(ids: NDArray[np.int64]) -> bool:
    """Whether ids rise strictly. Neighbours are compared, since their difference may wrap around.

    >>> sorted_once(np.array([1, 2, 5])), sorted_once(np.array([1, 2, 2]))
    (True, False)
    """
    return bool((ids[1:] > ids[:-1]).all())


def _check(array: NDArray[Any], dtype: type, name: str) -> None:
    if array.ndim != 1 or array.dtype != dtype:
        raise InputError(f"not a request: {name} is {array.dtype} of shape {array.shape}")
