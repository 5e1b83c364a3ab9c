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
    if noise is None:
        return total
    if plan.banded is not None:
        if correlated is None:
            raise RunError("the noise of past rounds is missing, with which this round's is correlated")
        return total + correlated.draw(round, streams)
    return total + noise.draw(len(total), streams.noise("central", round=round))
