"""A scenario in which six clients with a record each hardly move a model: audits put their canaries there."""

from __future__ import annotations

import numpy as np

CANARY = """
name = "canary"
[data]
name = "synthetic"
records = 6
features = 6
partition = "one-per-example"
[model]
name = "logistic"
[training]
learning_rate = 1.0
[server]
rounds = 2
learning_rate = 1e-6
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 3.0
delta = 1e-2
"""


def canaries(count: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Records of clients that are all canaries, each with a feature of its own: noise is independent between these.

    A record is so far out that the clipped update is +C or -C along the feature, by the label. So one run is as many
    trials as it has clients, half of them in either world.

    Args:
        count: How many clients; at most the six features.
        first: The label of the first client, 0 or 1; labels alternate.

    Returns:
        The features, shape (count, 6), and the labels, shape (count,).
    """
    return 1e4 * np.eye(count, 6), (np.arange(count) + first) % 2


def along(moved: np.ndarray, count: int) -> np.ndarray:
    """The score of each canary, shape (count,): what a logistic model, flat, moved by along its feature."""
    return (moved[:6] - moved[6:12])[:count]


class Worlds:
    """Scores of many runs, by the label of the canary."""

    def __init__(self) -> None:
        self._scores: tuple[list[float], list[float]] = ([], [])

    def add(self, scores: np.ndarray, labels: np.ndarray) -> None:
        """Scores of canaries with these labels, both of shape (canaries,)."""
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
            self._scores[label].append(score)

    def both(self) -> tuple[np.ndarray, np.ndarray]:
        """The scores of label 0 and of label 1, each of shape (trials,)."""
        everything = [*self._scores[0], *self._scores[1]]
        assert len(set(everything)) == len(everything), "noise that was drawn before"
        return np.array(self._scores[0]), np.array(self._scores[1])
