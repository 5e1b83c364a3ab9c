"""The number of repetitions follows the law that is accounted for. False-alarm rate of each draw: 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims import checks
from dp_accounting import dp_event as dp
from dp_accounting.rdp.rdp_privacy_accountant import _gamma_truncated_negative_binomial

from fedprivacy.errors import InputError
from fedprivacy.tuning.repetitions import Repetitions

LAWS = [
    Repetitions(mean, shape) for mean in (1.5, 10.0, 200.0) for shape in (0.0, 0.5, 1.0, 2.0, math.inf)
] + [Repetitions(12.0, 50.0)]


def papers(law: Repetitions, most: int) -> np.ndarray:
    """The law as Papernot and Steinke write it (Definition 1), gamma by their own code's bisection."""
    k = np.arange(most)
    if law.shape == math.inf:
        return np.exp(k * math.log(law.mean) - law.mean - np.array([math.lgamma(n + 1) for n in k]))
    gamma = _gamma_truncated_negative_binomial(law.shape, law.mean)
    found = np.zeros(most)
    if law.shape == 0:
        found[1:] = (1 - gamma) ** k[1:] / (k[1:] * math.log(1 / gamma))
        return found
    product = np.cumprod((k[:-1] + law.shape) / (k[:-1] + 1))
    found[1:] = (1 - gamma) ** k[1:] / (gamma**-law.shape - 1) * product
    return found


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_chances_are_those_of_the_paper_and_have_its_mean(law: Repetitions) -> None:
    chances = law.probabilities()
    np.testing.assert_allclose(chances, papers(law, len(chances)), rtol=1e-5, atol=1e-14)
    assert chances.sum() == pytest.approx(1)
    assert chances @ np.arange(len(chances)) == pytest.approx(law.mean, rel=1e-8)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_what_is_drawn_follows_the_law_that_is_accounted_for(law: Repetitions) -> None:
    event = law.event(dp.GaussianDpEvent(4.0))
    assert (event.mean, event.shape) == (law.mean, law.shape)
    accounted = papers(Repetitions(event.mean, event.shape), len(law.probabilities()))
    drawn = law.draw(checks.stream("repetitions"), 50_000)
    assert drawn.min() >= law.least
    checks.fits(np.bincount(drawn, minlength=len(accounted)), accounted / accounted.sum())


def test_another_law_of_the_same_mean_is_told_apart() -> None:
    drawn = Repetitions.geometric(10).draw(checks.stream("repetitions"), 50_000)
    other = papers(Repetitions(10.0, 0.5), 2000)
    with pytest.raises(AssertionError):
        checks.fits(np.bincount(drawn, minlength=2000), other / other.sum())


def test_a_mean_of_one_repeats_nothing() -> None:
    assert (Repetitions.geometric(1).draw(checks.stream("one"), 100) == 1).all()
    assert (Repetitions(1.0, 0.5).draw(checks.stream("one"), 100) == 1).all()


def test_how_likely_the_best_candidate_is_run() -> None:
    # Poisson repetitions split into one Poisson number for each candidate; geometric ones by their own sum.
    assert Repetitions.poisson(30).chance_of_the_best(10) == pytest.approx(1 - math.exp(-3))
    gamma, missed = 1 / 30, 0.9
    geometric = 1 - gamma * missed / (1 - (1 - gamma) * missed)
    assert Repetitions.geometric(30).chance_of_the_best(10) == pytest.approx(geometric)


@pytest.mark.parametrize(
    ("mean", "shape", "says"),
    [
        (0.5, 1.0, "mean"),
        (math.nan, 1.0, "mean"),
        (1e9, 1.0, "mean"),
        (2.0, -1.0, "shape"),
        (2.0, math.nan, "shape"),
    ],
)
def test_a_law_that_is_none_is_refused(mean: float, shape: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Repetitions(mean, shape)


def test_who_asks_for_what_is_not_there_is_told() -> None:
    with pytest.raises(InputError, match="no gamma"):
        _ = Repetitions.poisson(2).gamma
    with pytest.raises(InputError, match="candidates"):
        Repetitions.poisson(2).chance_of_the_best(0)
    assert "Poisson" in Repetitions.poisson(2).words
    assert "geometric" in Repetitions.geometric(2).words
    assert "shape 3" in Repetitions(2, 3).words
