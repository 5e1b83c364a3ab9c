"""Faults of clients and nodes, by kind: one place that names the kinds.

It depends on clients' data, and no noise hides it: operator-only. Under local trust the server is the
adversary, and what goes wrong on a node stays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Counted on a node, in clients; the last in pieces of clients, or messages.
ON_NODES = {
    "raised": "training raised an error",
    "worker_died": "the process that trained them died, twice, and again with each of them alone",
    "late": "still training, also alone, when federation.client_timeout (else timeout) was over",
    "not_finite": "the update was not finite: zero was answered for it",
    "dropped": "dropped out, by federation.dropout",
    "retried": "pieces repeated because their process died",
}
# Counted by the server, in clients of the node's message.
OF_REPLIES = {
    "no_node": "no node serves the client's logical host: its node answered with an error, or was left out",
    "contested": "several nodes claim the client's logical host, so none of them serves it",
    "no_answer": "no answer from the node, or none in federation.timeout",
    "node_error": "an error instead of the node's answer: it failed, refused or is gone",
    "reply_shape": "the node's reply lacked the requested parts or shapes",
    "reply_clients": "the node's reply named or counted other clients than the request",
    "reply_not_finite": "the node's sum was not finite",
    "reply_too_large": "the node's sum was longer than that of clipped updates can be",
}
KINDS = {**ON_NODES, **OF_REPLIES}
# Those whose clients have failed; under local trust such a client answers with noise alone.
FAILED = ("raised", "worker_died", "late", *OF_REPLIES)

REASON = 1000  # characters of why something failed: more than that is no reason


@dataclass(frozen=True)
class Failure:
    """Why one client failed.

    Args:
        kind: One of `FAILED`.
        reason: In words, of which `REASON` characters are kept; it may depend on the client's data.
    """

    kind: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason[:REASON])


@dataclass(frozen=True)
class Faults:
    """Counts of faults.

    Args:
        counts: How many of each kind; those of which there are none may be left out.
        first: The reason of the first failure, cut to `REASON` characters.

    >>> (Faults({"late": 2}) + Faults({"late": 1, "raised": 1}, "client 3: no room")).by_kind
    {'raised': 1, 'late': 3}
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    first: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown kind."""
        unknown = self.counts.keys() - KINDS.keys()
        if unknown:
            raise ValueError(f"no kinds of faults: {sorted(unknown)}")
        object.__setattr__(self, "counts", {k: self.counts[k] for k in KINDS if self.counts.get(k)})
        if self.first is not None:
            object.__setattr__(self, "first", self.first[:REASON])

    def __add__(self, other: Faults) -> Faults:
        return Faults({k: self[k] + other[k] for k in KINDS}, self.first or other.first)

    def __sub__(self, other: Faults) -> Faults:
        """The faults since `other`, to be added to it."""
        return Faults({k: self[k] - other[k] for k in KINDS}, None if other.first else self.first)

    def __getitem__(self, kind: str) -> int:
        return self.counts.get(kind, 0)

    @property
    def by_kind(self) -> dict[str, int]:
        """The counts above 0, for a record."""
        return dict(self.counts)

    @property
    def zeroed(self) -> int:
        """The number of clients whose update was not finite and was replaced by zero."""
        return self["not_finite"]

    @property
    def failed(self) -> int:
        """The number of clients that failed."""
        return sum(self[kind] for kind in FAILED)

    def values(self) -> dict[str, Any]:
        """The counts of a node, as scalars by name."""
        return {**{kind: self[kind] for kind in ON_NODES}, "first": self.first or ""}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Faults:
        """Rebuilds the counts that `values` took apart.

        Raises:
            KeyError, TypeError, ValueError: these are no such values.
        """
        counts = {kind: int(values[kind]) for kind in ON_NODES}
        if min(counts.values()) < 0:
            raise ValueError(f"counts below 0: {counts}")
        return cls(counts, str(values["first"]) or None)


NO_FAULTS = Faults()
