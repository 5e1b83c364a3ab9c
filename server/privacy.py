"""Central noise: the server adds it to the sum, once a round, before anything else sees the sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import RunError
from fedprivacy.mechanisms.banded import CorrelatedNoise
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams


def add_central_noise(
    total: NDArray[np.float64],
    plan: Plan,
    streams: Streams,
    round: int,
    correlated: CorrelatedNoise | None = None,
) -> NDArray[np.float64]:
    """The sum that may be released: under central trust with noise, also when the cohort is empty.

    Args:
        total: The sum of clipped updates, float64, shape (parameters,).
        plan: The run's plan; its mechanism draws.
        streams: The run's random streams.
        round: The round, which keys the draw.
        correlated: The noise of the run so far, where the plan's is correlated over rounds.
    """
    noise = plan.central_noise
    if noise is None:  # the clients have added theirs (local trust), or there is no noise at all
        return total
    if plan.banded is not None:
        if correlated is None:
            raise RunError("the noise of past rounds is missing, with which this round's is correlated")
        return total + correlated.draw(round, streams)
    # Also for an empty cohort: a sum without noise would show that nobody was drawn, which Poisson sampling
    # keeps secret. In float64: in float32, small noise on large numbers is rounded away.
    return total + noise.draw(len(total), streams.noise("central", round=round))
