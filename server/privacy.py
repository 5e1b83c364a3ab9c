"""Central noise: the server adds it to the sum, once a round, before anything else sees the sum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.plan import Plan
from fedprivacy.seeds import Streams


def add_central_noise(
    total: NDArray[np.float64], plan: Plan, streams: Streams, round: int
) -> NDArray[np.float64]:
    """The sum that may be released: under central trust with noise, also when the cohort is empty.

    Args:
        total: The sum of clipped updates, float64, shape (parameters,).
        plan: The run's plan; its mechanism draws.
        streams: The run's random streams.
        round: The round, which keys the draw.
    """
    noise = plan.central_noise
    if noise is None:
        return total
    return total + noise.draw(len(total), streams.noise("central", round=round))
