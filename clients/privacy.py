"""Between a client's training and its reply: clip, encode, and under local trust randomise.

Nothing computed from a client's data leaves this file unclipped.
"""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from fedprivacy.mechanisms.clipping import bounds_of_a_sum, clip
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.modular import Integers, ModularSum
from fedprivacy.mechanisms.rotation import random_signs
from fedprivacy.mechanisms.summation import sum_of_rows
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.training.updates import Updates

Ids = NDArray[np.int64]

_AT_ONCE = 2**16  # numbers randomised at once: few enough for a processor's cache


def privatise(
    updates: Updates,
    clients: Ids,
    plan: Plan,
    streams: Streams,
    *,
    round: int,
    observe: str,
    threads: int = 1,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Privatises the updates of clients that trained together, without the noise of sums (`sum_noise`).

    With noise in shares `shared_sum` does.

    Args:
        updates: Raw updates; with unit "example" already private.
        clients: Their ids, sorted, shape (clients,).
        plan: The clients' own plan, of this round (`Plan.for_round`).
        streams: The run's random streams; each client draws from its own.
        round: The round, which keys the draws.
        observe: "sum" for the sum of the updates, "each" for all of them.
        threads: How many draw noise; they change no bit.

    Returns:
        The sum, float64, shape (parameters,), or the stack, shape (clients, parameters), under adaptive
        clipping with one more number, the bits; and which updates were zeroed because they were not finite. A
        zeroed client's noise is drawn nevertheless.
    """
    # With unit "example", gradients were clipped, and under local trust noised, inside training
    # (`fedprivacy.training.dp_sgd`), so the sum over a client's records is not clipped again.
    bound, error = plan.clipping_norm if plan.unit == "client" else None, math.inf
    randomiser = plan.randomiser if plan.noise_draw == "client" else None
    # Floating-point addition rounds, so the computed sum can move by more than C for one client. Clipping a
    # little below C leaves room for that (proof: `bounds_of_a_sum`). Randomised messages need no room, since
    # adding them up is post-processing.
    # Of clients that all failed nobody is left, and nothing needs a weight: their sum is zero.
    weights = plan.weights_of(clients) if len(clients) else None
    if weights is not None:
        return _weighted(updates, weights, plan, observe)
    if randomiser is None and plan.encoder is None:
        bound, error = bounds_of_a_sum(bound, plan.most_in_a_sum)
    adaptive = plan.adaptive
    # The bits compare with C before clipping: after it every norm would be at most C.
    bits = None if adaptive is None else adaptive.bits(updates.norms().numpy(), adaptive.clipping_norm)
    # Some trainers compute the clipped sum without forming single updates (`Updates.clipped_total`).
    if observe == "sum" and randomiser is None and plan.encoder is None:
        total, broken = updates.clipped_total(bound, error)
        released = total.numpy() if bits is None else np.append(total.numpy(), bits.sum())
        return released, broken.numpy()
    bounded, broken = clip(updates.stack(), bound)
    # Encoding comes between clipping and noise, so it is part of the mechanism and its codes are accounted
    # for. After the noise it would be free post-processing.
    if plan.encoder is not None:
        bounded = plan.encoder.encode(bounded)
    if randomiser is not None:
        most = max(1, _AT_ONCE // max(1, bounded.shape[1]))

        randomisers = plan.randomisers(clients)

        def randomise(start: int) -> None:
            # One stream for each client and round. The same noise on two messages of a client would let the
            # server subtract them and read the difference of the updates.
            piece = slice(start, start + most)
            rows, ids = bounded[piece], clients[piece]
            for having, mechanism in randomisers:
                if not (here := having[piece]).any():
                    continue
                streams_of_clients = streams.noises("local", ids[here].tolist(), round=round)
                rows[here] = torch.from_numpy(mechanism.randomise_all(rows[here].numpy(), streams_of_clients))

        starts = range(0, len(clients), most)
        if threads == 1:
            deque(map(randomise, starts), maxlen=0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                deque(pool.map(randomise, starts), maxlen=0)
    if bits is not None:
        bounded = torch.column_stack([bounded, torch.from_numpy(bits)])
    added = bounded if observe == "each" else sum_of_rows(bounded)
    return added.numpy(), broken.numpy()


def _weighted(
    updates: Updates, weights: NDArray[np.float64], plan: Plan, observe: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The clipped updates, or their sum, each times the weight of its client's group.

    Args:
        updates: Raw updates.
        weights: The weight of each client, shape (clients,).
        plan: The clients' own plan, under central trust.
        observe: As of `privatise`.

    Returns:
        As `privatise` has it.
    """
    broken, rows = torch.zeros(len(weights), dtype=torch.bool), []
    order = np.argsort(weights, kind="stable")
    for weight in np.unique(weights).tolist():
        alike = np.flatnonzero(weights == weight)
        bound, error = bounds_of_a_sum(plan.clipping_norm, plan.most_in_a_sum, weight)
        # A weight before clipping would leave the sensitivity at C, and a client's part as large as any.
        if observe == "each":
            part, broken[alike] = clip(updates.only(alike).stack(), bound)
        else:
            part, broken[alike] = updates.only(alike).clipped_total(bound, error)
        rows.append(part * weight)
    if observe == "each":
        return torch.cat(rows)[np.argsort(order)].numpy(), broken.numpy()
    return torch.stack(rows).sum(dim=0).numpy(), broken.numpy()


def shared_sum(
    updates: Updates, clients: Ids, plan: Plan, streams: Streams, *, round: int
) -> tuple[Integers, NDArray[np.bool_]]:
    """Adds the messages of clients with noise in shares, without noise of sums (`sum_share`).

    Each client clips, rotates, rounds and adds its own share, unless `sum_share` draws for all. A process
    with several clients adds their messages up here, where an ideal secure sum begins; a node that masks its
    message has one client.

    Args:
        updates: Raw updates.
        clients: Their ids, sorted, shape (clients,).
        plan: The clients' own plan.
        streams: The run's random streams; each client draws from its own.
        round: The round, which keys the draws and the public rotation.

    Returns:
        The sum, int64, shape (d,), and which updates count as zero because they were not finite. Their
        clients add their shares nevertheless.
    """
    shares = plan.shares
    assert shares is not None
    rows = updates.stack().numpy()
    signs = random_signs(shares.dimension, streams.stream("rotation", round=round))
    # A stream for each purpose and client: the rounded vector is fixed before any noise is drawn.
    rounding = streams.noises("rounding", clients.tolist(), round=round)
    noises = streams.noises("share", clients.tolist(), round=round)
    total = ModularSum(shares.padded, shares.bits)
    for row, rounds, noise in zip(rows, rounding, noises, strict=True):
        encoded = shares.encode(row, signs, rounds)
        total.add(encoded if plan.noise_draw == "sum" else shares.message(encoded, noise))
    return total.total, ~np.isfinite(rows).all(axis=1)


def sum_share(clients: Ids, plan: Plan, streams: Streams, *, round: int) -> Integers:
    """Draws the shares of a message's clients at once, if the plan does so; else zeros.

    One draw has the distribution of the sum of all clients' draws.
    """
    shares = plan.shares
    assert shares is not None
    if plan.noise_draw != "sum" or not len(clients):
        return np.zeros(shares.padded, np.int64)
    stream = streams.noise("share-sum", round=round, member=int(clients[0]))
    return shares.draw(shares.padded, stream, shares=len(clients))


def sum_noise(
    parameters: int, clients: Ids, plan: Plan, streams: Streams, *, round: int
) -> NDArray[np.float64] | float:
    """Draws the noise of a message's sum, if the plan draws one for all its clients; else 0.

    One draw has the distribution of the sum of all clients' draws. The first id keys it, since a client is in
    one message of a round only.
    """
    if not isinstance(plan.randomiser, Gaussian) or plan.noise_draw != "sum" or not len(clients):
        return 0.0
    stream = streams.noise("local-sum", round=round, member=int(clients[0]))
    if plan.groups is None:
        return plan.randomiser.draw(parameters, stream, shares=len(clients))
    multipliers = plan.groups.values("noise_multiplier", plan.randomiser.noise_multiplier, plan.population)
    together = math.sqrt(float(np.square(multipliers[clients]).sum()))  # independent draws: variances add up
    return plan.randomiser.with_noise(together).draw(parameters, stream)
