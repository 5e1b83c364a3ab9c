"""Validates a node's reply to a training request: form, and values that no honest node sends.

A node that answers otherwise is at fault, and nothing of its answer is taken. Under the plan each client's
part is bounded, so a bound on the reply rejects no honest one, and rejection depends on nobody's data.
"""

from __future__ import annotations

import math

import numpy as np
from flwr.app import Message
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.messages.faults import REASON
from fedprivacy.messages.protocol import TrainReply, parts_of
from fedprivacy.plan.privacy_plan import Plan

_ROUNDING = 1 + 1e-6  # an honest norm of exactly C may come out this much longer after rounding
_TAIL = 12.0  # a Gaussian message exceeds the typical length by this factor with probability below 1e-22


class Rejected(FedPrivacyError):
    """A node's reply that does not fit the request.

    Args:
        kind: One of `fedprivacy.messages.faults.OF_REPLIES`.
        reason: In words, of which some are kept: a node may send what it likes.
    """

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        super().__init__(reason[:REASON])


def longest(plan: Plan, parameters: int, records: int = 1) -> float | None:
    """The L2 norm that one client's part of a reply has at most, or None where the plan sets no bound.

    Args:
        plan: The agreed plan.
        parameters: The length of an update.
        records: Of the largest client, if the gradients of records are clipped.
    """
    bound, mechanism = plan.clipping_norm, plan.mechanism
    if bound is None or mechanism is None:
        return None
    if plan.batches is not None:
        # One more may be there in a game. Steps in a client end where the data say.
        most = max(records + 1, getattr(plan.batches, "batch_size", None) or 0)
        return bound * most * _ROUNDING if plan.trust == "central" else None
    # Of all clients, since a reply is a sum over groups that differ in noise.
    randomisers = [randomiser for _, randomiser in plan.randomisers(np.arange(1))]
    if not randomisers or isinstance(mechanism, ClipOnly):
        return bound * _ROUNDING
    error = max(randomiser.error(parameters) for randomiser in randomisers)
    return _TAIL * bound * math.sqrt(error * parameters + 1)


def accepted(
    message: Message,
    requested: NDArray[np.int64],
    parameters: int,
    observe: str,
    most: float | None,
    dropout: bool = True,
    counted: bool = False,
    bits: int | None = None,
    clips: bool = False,
    weights: NDArray[np.float64] | None = None,
) -> TrainReply:
    """The reply in a message.

    Args:
        message: From a node.
        requested: The requested clients, shape (clients,).
        parameters: The length of the model's flat vector.
        observe: "sum" or "each": what the reply holds.
        most: The bound of `longest`.
        dropout: Whether clients may drop out (`federation.dropout`).
        counted: Whether the last number is a sum of centred bits (adaptive clipping), each 1/2 at most.
        bits: b, where the numbers are integers modulo 2^b.
        clips: Whether the server clips each update, which sets those that are not finite to zero.
        weights: The factor of each client's clipped update, shape (population,); None: all are 1.

    Raises:
        Rejected: an honest node does not answer so.
    """
    if message.has_error():
        raise Rejected("node_error", message.error.reason or f"Flower error {message.error.code}")
    try:
        kind: type[np.float64] | type[np.int64] = np.float64 if bits is None else np.int64
        reply = TrainReply.of(*parts_of(message), parameters=parameters, observe=observe, numbers=kind)
    except FedPrivacyError as error:
        raise Rejected("reply_shape", str(error)) from error
    answered, faults = len(reply.clients), reply.faults
    # The checks of ids protect the accounting: a client that is counted twice, or was not drawn, would move
    # the sum by more than the plan's sensitivity, or without a charge.
    if answered > len(requested):  # before processing that many
        raise Rejected("reply_clients", f"a reply names {answered} clients, the request {len(requested)}")
    if not np.array_equal(reply.clients, requested) and (
        len(np.setdiff1d(reply.clients, requested)) or len(np.unique(reply.clients)) != answered
    ):
        raise Rejected("reply_clients", "a reply names clients that were not requested, or a client twice")
    reported = answered + reply.refused + faults.failed + faults["dropped"]
    if (
        reply.refused < 0
        or reported > len(requested)
        or max(faults.zeroed, faults["retried"]) > len(requested)
    ):
        raise Rejected(
            "reply_clients", f"the counts of a reply do not fit the request of {len(requested)} clients"
        )
    if faults["dropped"] and not dropout:
        raise Rejected("reply_clients", "a reply counts dropped clients, and the scenario has no dropout")
    if (
        bits is not None
        and len(reply.updates)
        and not 0 <= reply.updates.min() <= reply.updates.max() < 2**bits
    ):
        raise Rejected("reply_shape", f"a reply has numbers that are no residues of {bits} bits")
    # One NaN or infinity would make the whole sum useless, and no noise hides it.
    if not clips and not np.isfinite(reply.updates).all():
        raise Rejected("reply_not_finite", "a reply has numbers that are not finite")
    # Under local trust the bound protects the model from a faulty node, not any client's privacy.
    if most is not None and not clips:
        at_once = answered if observe == "sum" else 1
        numbers, parts = np.atleast_2d(reply.updates), np.ones(answered)
        if weights is not None:  # a group's part is bounded by its own sensitivity
            parts = weights[reply.clients]
        if counted:
            bits, numbers = np.abs(numbers[:, -1]).max(initial=0.0), numbers[:, :-1]
            if not bits <= at_once * 0.5 * _ROUNDING:
                raise Rejected("reply_too_large", "a reply counts more clients than were requested")
        bounds = most * (np.array([parts.sum()]) if observe == "sum" else parts)
        lengths = np.linalg.norm(numbers, axis=1)
        for length, bound in zip(lengths, bounds, strict=True):
            if not length <= bound:
                raise Rejected(
                    "reply_too_large",
                    f"a node answered with norm {length:.4g}, where {at_once} of its clients have at most "
                    f"{bound:.4g}",
                )
    return reply
