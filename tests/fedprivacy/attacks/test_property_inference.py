"""Property inference: the classifier against its known optimum, the bound against its closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.stats import norm

from fedprivacy.accounting.events import to_json
from fedprivacy.attacks.property_inference import AUC, Property, discriminant

ATTACK = Property(kind="property", value="3")


def ledger(adjacency: str, unit: str = "client", *, noise: float | None = 2.0) -> dict:
    event = None if noise is None else to_json(dp.GaussianDpEvent(noise))
    claim = {"observer": "server", "event": event, "assumptions": ["nobody adds noise"]}
    return {"unit": unit, "adjacency": adjacency, "claims": [claim]}


@pytest.mark.parametrize(("adjacency", "mu"), [("replace-one", 1.0), ("add-remove", 1.0), ("zero-out", 1.0)])
def test_the_bound_is_that_of_gaussian_noise_in_closed_form(adjacency: str, mu: float) -> None:
    """Noise 2 C: the update moves by 2 C under replace-one, and in two steps of C under the others."""
    ceiling = ATTACK.ceiling(ledger(adjacency))
    assert ceiling.success == pytest.approx(norm.cdf(mu / 2), abs=1e-9)
    assert ceiling.figures[AUC] == pytest.approx(norm.cdf(mu / math.sqrt(2)), abs=1e-9)


def test_guarantees_for_records_bound_no_property_and_no_noise_gives_its_reason() -> None:
    of_records = ATTACK.ceiling(ledger("replace-one", "example"))
    assert of_records.success is None
    assert "single records" in of_records.assumptions[0]
    bare = ATTACK.ceiling(ledger("replace-one", noise=None))
    assert bare.success is None
    assert bare.assumptions == ("nobody adds noise",)


def test_the_classifier_reaches_the_optimum_that_known_distributions_have() -> None:
    """Two normals 2 deviations apart: the best classifier is right in Phi(1) = 84.1 %.

    20,000 guesses have a standard error of .26 points; 1.5 points cover what 2,000 examples in 20 dimensions
    lose. False-alarm rate below 1e-4.
    """
    stream = np.random.default_rng(1)
    gap = stream.normal(size=20)
    gap *= 2.0 / np.linalg.norm(gap)

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
        coins = np.arange(count) % 2 == 0
        return stream.normal(size=(count, 20)) + coins[:, None] * gap, coins

    rows, coins = drawn(20_000)
    right = ((discriminant(*drawn(2_000))(rows) > 0) == coins).mean()
    assert right == pytest.approx(norm.cdf(1.0), abs=0.015)


def test_known_noise_turns_the_classifier_towards_the_difference_of_the_means() -> None:
    """Where noise outweighs the spread of updates, directions in which these vary little are no better."""
    stream = np.random.default_rng(2)
    coins = np.arange(400) % 2 == 0
    spread = np.array([0.01, 1.0])
    rows = stream.normal(size=(400, 2)) * spread + coins[:, None] * np.array([0.05, 0.5])
    alone, noisy = discriminant(rows, coins).direction, discriminant(rows, coins, 100.0).direction
    assert abs(alone[0]) > abs(alone[1])
    assert noisy == pytest.approx(np.array([0.05, 0.5]) / np.hypot(0.05, 0.5), abs=0.15)
