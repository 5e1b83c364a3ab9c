"""What Student t noise on codes costs, against quadrature, draws and the Gaussian limit."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy import integrate, optimize, signal, stats

from fedprivacy.accounting import encoded_updates
from fedprivacy.accounting.encoded_updates import (
    EncodedStudentDpEvent,
    encoded_loss,
    gaussian_like,
    largest_loss,
    moved_delta,
)
from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from fedprivacy.errors import InputError, UnsupportedEvent

DRAWS = 100_000


def scale_of(event: EncodedStudentDpEvent) -> float:
    """Of the Student t variable, where the norm of a code is 1."""
    return event.noise_multiplier * math.sqrt((event.degrees - 2) / event.degrees)


def density(degrees: float):
    """Of Student t noise of scale 1, by its formula: scipy's takes most of its time to check a single number."""
    factor = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(
        math.pi * degrees
    )
    return lambda x: factor * (1 + x * x / degrees) ** (-(degrees + 1) / 2)


@pytest.mark.parametrize("degrees", [3.0, 9.0, 40.0])
@pytest.mark.parametrize("moved", [0.02, 0.9, 6.0])
def test_the_curve_of_one_coordinate_is_its_integral(degrees: float, moved: float) -> None:
    noise = density(degrees)
    largest = largest_loss(moved, degrees)
    x = np.linspace(-50, 50, 400_001)
    assert np.max(np.log(noise(x) / noise(x - moved))) == pytest.approx(largest, rel=1e-6)
    for part in (0.0, 0.1, 0.5, 0.9):
        alpha = math.exp(part * largest)
        value, _ = integrate.quad(
            lambda at, alpha=alpha: max(0.0, noise(at) - alpha * noise(at - moved)),
            *(-200, 60),
            points=(-5.0, 0.0, moved / 2, moved),
            limit=2000,
        )
        found = moved_delta(np.array([part * largest]), moved, degrees)[0]
        assert found == pytest.approx(value, rel=1e-5, abs=1e-8)
    assert moved_delta(np.array([1.0001 * largest]), moved, degrees)[0] == 0.0


def test_the_curve_grows_with_the_move() -> None:
    """What makes a code that is zeroed, or partly the same, no worse than the worst."""
    grid = np.linspace(0.0, 3.0, 61)
    curves = np.array([moved_delta(grid, moved, 9.0) for moved in np.geomspace(1e-3, 10, 40)])
    assert (np.diff(curves, axis=0) >= -1e-15).all()


def law_of(moves: np.ndarray, event: EncodedStudentDpEvent, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses of draws of the noise against the noise moved, and the other way; shape (draws,)."""
    law = stats.t(event.degrees, scale=scale_of(event))
    noise = law.rvs(size=(DRAWS, len(moves)), random_state=seed)
    there = (law.logpdf(noise) - law.logpdf(noise - moves)).sum(axis=1)
    back = (law.logpdf(noise + moves) - law.logpdf(noise)).sum(axis=1)
    return there, back


def hockey_stick(losses: np.ndarray, at: float) -> tuple[float, float]:
    """Delta at an epsilon, estimated, and its standard error."""
    parts = np.maximum(0.0, -np.expm1(at - losses))
    return float(parts.mean()), float(parts.std() / math.sqrt(len(parts)))


def patterns(event: EncodedStudentDpEvent, adjacency: str) -> list[np.ndarray]:
    kept, size = event.coordinates, 1 / math.sqrt(event.coordinates)
    if adjacency != "replace-one":
        return [np.full(kept, size)]
    found = [np.array([2 * size] * j + [size] * 2 * (kept - j)) for j in range(kept + 1)]
    return [moves for moves in found if len(moves) <= event.dimension]


EVENTS = [
    EncodedStudentDpEvent(0.3, 3.0, 1, 5),  # at large epsilons two codes that share nothing are the worst
    EncodedStudentDpEvent(1.0, 9.0, 2, 7),
    EncodedStudentDpEvent(0.4, 4.0, 3, 9),
    EncodedStudentDpEvent(2.0, 9.0, 4, 4),
]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_no_pattern_costs_more_than_is_claimed_and_one_nearly_as_much(
    event: EncodedStudentDpEvent, adjacency: str
) -> None:
    """By draws, five standard errors; of single releases."""
    claimed = encoded_loss(event, 1.0, adjacency, 1e-3)
    nearest = []
    for number, moves in enumerate(patterns(event, adjacency)):
        for losses in law_of(moves, event, number):
            for at in (0.0, 0.5, 1.0, 2.0, 4.0, 7.5):
                mean, error = hockey_stick(losses, at)
                assert mean <= claimed.get_delta_for_epsilon(at) + 5 * error + 1e-12
            mean, error = hockey_stick(losses, 0.5)
            nearest.append(mean + 5 * error - claimed.get_delta_for_epsilon(0.5))
    assert max(nearest) >= -0.02


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_a_sampled_release_costs_no_more_than_is_claimed(adjacency: str, rate: float) -> None:
    """The mixtures themselves, by draws: (1 - q) A + q B against A, and against (1 - q) A + q B'."""
    event = EncodedStudentDpEvent(0.7, 9.0, 2, 6)
    law, stream = stats.t(event.degrees, scale=scale_of(event)), np.random.default_rng(5)
    size = 1 / math.sqrt(2)
    codes = [np.array([size, size, 0, 0]), np.array([-size, -size, 0, 0]), np.array([0, 0, size, size])]
    zero = np.zeros(4)
    claimed = encoded_loss(event, rate, adjacency, 1e-3)

    def density(x: np.ndarray, code: np.ndarray) -> np.ndarray:
        at = [np.exp(law.logpdf(x - each).sum(axis=1)) for each in (zero, code)]
        return (1 - rate) * at[0] + rate * at[1]

    pairs = [(codes[0], code) for code in codes[1:]] if adjacency == "replace-one" else []
    pairs += [(codes[0], zero), (zero, codes[0])]
    closest = -math.inf
    for one, other in pairs:
        drawn = law.rvs(size=(DRAWS, 4), random_state=stream)
        drawn += np.where(stream.random((DRAWS, 1)) < rate, one, zero)
        losses = np.log(density(drawn, one)) - np.log(density(drawn, other))
        for at in (0.0, 0.05, 0.2, 0.5, 1.0):
            mean, error = hockey_stick(losses, at)
            assert mean <= claimed.get_delta_for_epsilon(at) + 5 * error + 1e-12
        mean, error = hockey_stick(losses, 0.05)
        closest = max(closest, mean + 5 * error - claimed.get_delta_for_epsilon(0.05))
    assert closest >= (
        -0.05 if adjacency == "replace-one" else 0.0
    )  # where the bound is exact, nothing is lost


@pytest.mark.parametrize("rate", [0.5, 0.02])
def test_sampled_curves_are_the_integrals_of_the_mixtures(rate: float) -> None:
    """Of one coordinate, where the curves of both directions are exact."""
    noise, moved = density(5.0), 1.3
    curve = encoded_updates._symmetric(partial(moved_delta, moved=moved, degrees=5.0))

    def drawn(x: float) -> float:
        return (1 - rate) * noise(x) + rate * noise(x - moved)

    grid = np.array([-0.8, -0.3, -0.005, 0.0, 0.004, 0.01, 0.2, 0.6])
    for sampled, one, other in (
        (encoded_updates._removed(curve, rate), drawn, noise),
        (encoded_updates._added(curve, rate), noise, drawn),
    ):
        found = sampled(grid)
        for at, delta in zip(grid, found, strict=True):
            value, _ = integrate.quad(
                lambda x, at=at, one=one, other=other: max(0.0, one(x) - math.exp(at) * other(x)),
                *(-300, 300),
                points=(-10.0, -2.0, 0.0, moved, 4.0, 12.0),
                limit=3000,
            )
            assert delta == pytest.approx(value, rel=1e-4, abs=1e-7)


GRID = 5e-4


def losses_of(moved: float, event: EncodedStudentDpEvent) -> tuple[int, np.ndarray]:
    """Of one coordinate, by its density alone: the first place on a grid, and the probabilities from there."""
    x = np.sinh(np.linspace(-1, 1, 100_001) * np.arcsinh(1e5)) * scale_of(event) + moved / 2
    law = stats.t(event.degrees, scale=scale_of(event))
    edges = np.concatenate([[-np.inf], (x[1:] + x[:-1]) / 2, [np.inf]])
    below, above = edges[:-1], edges[1:]
    mass = np.where(below > 0, law.sf(below) - law.sf(above), law.cdf(above) - law.cdf(below))
    losses = (law.logpdf(x) - law.logpdf(x - moved)) / GRID
    places = np.floor(losses).astype(int)
    found = np.zeros(places.max() - places.min() + 2)
    np.add.at(found, places - places.min(), mass * (places + 1 - losses))
    np.add.at(found, places - places.min() + 1, mass * (losses - places))
    return int(places.min()), found


def convolved(moves: np.ndarray, rounds: int, event: EncodedStudentDpEvent, delta: float) -> float:
    """Epsilon of rounds in which coordinates move so."""
    alone = {moved: losses_of(moved, event) for moved in set(moves.tolist())}
    first, total = 0, np.ones(1)
    for moved in moves.tolist() * rounds:
        first += alone[moved][0]
        total = np.maximum(signal.fftconvolve(total, alone[moved][1]), 0.0)
    losses = (first + np.arange(len(total))) * GRID
    return float(
        optimize.brentq(lambda at: (total * np.maximum(0.0, -np.expm1(at - losses))).sum() - delta, 0, 60)
    )


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(
    ("event", "rounds", "delta", "adjacency"),
    [
        (EncodedStudentDpEvent(1.0, 3.0, 1, 1), 1, 1e-5, "zero-out"),
        (EncodedStudentDpEvent(1.0, 3.0, 1, 1), 4, 1e-5, "replace-one"),
        (EncodedStudentDpEvent(1.0, 9.0, 1, 1), 4, 1e-3, "replace-one"),
        (EncodedStudentDpEvent(1.0, 3.0, 2, 2), 4, 1e-5, "zero-out"),
        (EncodedStudentDpEvent(1.0, 3.0, 2, 3), 1, 1e-5, "replace-one"),
        (EncodedStudentDpEvent(2.0, 3.0, 3, 650), 10, 1e-5, "replace-one"),
        (EncodedStudentDpEvent(0.3, 9.0, 1, 12), 3, 1e-5, "zero-out"),
    ],
    ids=repr,
)
def test_few_coordinates_have_a_largest_loss_and_nothing_beyond(
    event: EncodedStudentDpEvent, rounds: int, delta: float, adjacency: str
) -> None:
    """Against convolutions that share no code with the account."""
    exact = max(convolved(moves, rounds, event, delta) for moves in patterns(event, adjacency))
    stated = epsilon(dp.SelfComposedDpEvent(event, rounds), delta, adjacency).epsilon
    assert exact * (1 - 1e-4) <= stated <= exact * 1.02
    loss = encoded_loss(event, 1.0, adjacency, 5e-3)
    assert loss.get_delta_for_epsilon(700.0) < 1e-12


def test_the_least_budgets_of_one_coordinate_have_noise() -> None:
    for target in (4.0, 8.0, 16.0):
        least = noise_multiplier(
            lambda z: dp.SelfComposedDpEvent(EncodedStudentDpEvent(z, 9.0, 1, 12), 3),
            target,
            1e-5,
            "zero-out",
        )
        assert (
            0.95 * target
            < convolved(np.array([1.0]), 3, EncodedStudentDpEvent(least, 9.0, 1, 12), 1e-5)
            <= target * (1 + 1e-4)
        )


def test_rounding_is_allowed_for() -> None:
    """Against 40 digits: what is far in both tails, where it is the most."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        for degrees, moved, at in ((3.0, 9.9688, 7.045), (3.0, 79.0, 11.0), (3.7, 897.0, 28.59)):
            nu, t, alpha = mpmath.mpf(degrees), mpmath.mpf(moved), mpmath.exp(mpmath.mpf(at))
            excess = alpha ** (2 / (nu + 1)) - 1
            root = mpmath.sqrt((1 + excess) * t**2 - nu * excess**2)
            high, low = (t**2 - nu * excess) / (t + root), -(t + root) / excess

            def below(x, nu=nu):
                tail = mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + x * x), regularized=True) / 2
                return tail if x < 0 else 1 - tail

            exact = below(high) - below(low) - alpha * (below(high - t) - below(low - t))
            found = moved_delta(np.array([at]), moved, degrees)[0]
            assert abs(mpmath.mpf(float(found)) - exact) <= encoded_updates._rounding(moved)


def test_rounds_are_composed() -> None:
    """Three rounds by draws, whose losses add up."""
    event = EncodedStudentDpEvent(1.5, 9.0, 2, 2)
    losses = sum(law_of(np.full(2, math.sqrt(2)), event, seed)[0] for seed in range(3))
    stated = epsilon(dp.SelfComposedDpEvent(event, 3), 1e-2, "replace-one")
    assert stated.accountant == "PLD"
    for at, sign in ((stated.epsilon, 1), (stated.epsilon * 0.97, -1)):
        mean, error = hockey_stick(losses, at)
        assert sign * (mean - 1e-2) <= 5 * error
    mean, error = hockey_stick(losses, stated.epsilon * 0.8)
    assert mean > 1e-2 + 5 * error


MANY = [(5000, 5000, 3e-3), (5000, 50_000, 3e-3), (10**5, 10**5, 3e-3)]


@pytest.mark.parametrize(
    ("adjacency", "kept", "dimension", "within"),
    [*(("replace-one", *one) for one in MANY), *(("zero-out", *one) for one in MANY[:2])],
)
def test_many_coordinates_cost_what_gaussian_noise_of_the_same_information_does(
    adjacency: str, kept: int, dimension: int, within: float
) -> None:
    event = EncodedStudentDpEvent(3.0, 9.0, kept, dimension)
    mu = (2 if adjacency == "replace-one" else 1) / gaussian_like(event)
    assert epsilon(event, 1e-5, adjacency).epsilon == pytest.approx(gaussian_epsilon(1e-5, mu), rel=within)


@pytest.mark.parametrize(("kept", "dimension", "within"), MANY[:2])
def test_of_sampled_clients_too(kept: int, dimension: int, within: float) -> None:
    event = EncodedStudentDpEvent(3.0, 9.0, kept, dimension)
    sampled, gaussian = (
        epsilon(dp.PoissonSampledDpEvent(0.3, release), 1e-5, "zero-out").epsilon
        for release in (event, dp.GaussianDpEvent(gaussian_like(event)))
    )
    assert sampled == pytest.approx(gaussian, rel=within)


def test_at_the_same_epsilon_nine_degrees_need_seven_percent_more_variance() -> None:
    """nu (nu + 1)/((nu - 2)(nu + 3)) = 90/84; Gaussian noise has the least variance for its information."""

    def least(make) -> float:
        return noise_multiplier(lambda z: dp.SelfComposedDpEvent(make(z), 10), 2.0, 1e-5, "zero-out")

    student = least(lambda z: EncodedStudentDpEvent(z, 9.0, 650, 650))
    assert (student / least(dp.GaussianDpEvent)) ** 2 == pytest.approx(90 / 84, rel=2e-3)


def test_curves_are_taken_from_above() -> None:
    """The hull of points that lie above a convex curve by as much as rounding does not go below it."""
    grid = np.arange(-300, 301) * 0.01
    true = np.array([gaussian_delta(at, 0.5) if at >= 0 else math.nan for at in grid])
    curve = encoded_updates._symmetric(lambda at: np.array([gaussian_delta(float(x), 0.5) for x in at]))
    noise = np.random.default_rng(0).random(len(grid)) * 1e-6
    shaken = lambda at: curve(at) + noise[: len(at)]  # noqa: E731
    dots = encoded_updates._Dots.of(shaken, (-3.0, 3.0), 0.01)
    asked = np.linspace(0.0, 2.99, 400)
    exact = curve(asked)
    assert (dots.curve(asked) >= exact).all()
    assert (dots.curve(asked) <= exact + 2e-4).all()
    deltas = dots.distribution().get_delta_for_epsilon(asked)
    assert np.allclose(deltas, dots.curve(asked), rtol=1e-9, atol=1e-12)
    assert np.nanmax(np.abs(true - curve(grid))) < 1e-12


def test_the_curve_of_a_distribution_is_that_of_dp_accounting_to_the_bit() -> None:
    loss = encoded_loss(EncodedStudentDpEvent(1.0, 9.0, 8, 20), 1.0, "replace-one", 1e-3)._pmf_remove
    losses = (np.arange(loss.size) + loss._lower_loss) * loss._discretization
    between = (losses[1:] + losses[:-1]) / 2
    asked = np.sort(np.concatenate([[-50.0, -0.0, 50.0, np.inf], losses, between]))
    assert (encoded_updates._curve_of(loss)(asked) == loss.get_delta_for_epsilon(asked)).all()


def test_more_noise_more_people_and_more_rounds_cost_what_they_should() -> None:
    cost = partial(epsilon, delta=1e-4, adjacency="replace-one")
    base = cost(EncodedStudentDpEvent(2.0, 9.0, 10, 100)).epsilon
    assert cost(EncodedStudentDpEvent(3.0, 9.0, 10, 100)).epsilon < base
    assert cost(dp.SelfComposedDpEvent(EncodedStudentDpEvent(2.0, 9.0, 10, 100), 2)).epsilon > base
    assert cost(dp.PoissonSampledDpEvent(0.5, EncodedStudentDpEvent(2.0, 9.0, 10, 100))).epsilon < base
    assert cost(dp.PoissonSampledDpEvent(1.0, EncodedStudentDpEvent(2.0, 9.0, 10, 100))).epsilon == base
    assert cost(EncodedStudentDpEvent(0.0, 9.0, 10, 100)).epsilon == math.inf
    mixed = dp.ComposedDpEvent([EncodedStudentDpEvent(2.0, 9.0, 10, 100), dp.GaussianDpEvent(2.0)])
    assert cost(mixed).epsilon > base


def test_what_has_no_account_is_refused() -> None:
    """And the cause is named, no other."""
    some = EncodedStudentDpEvent(2.0, 9.0, 3, 3)
    tree = dp.SingleEpochTreeAggregationDpEvent(2.0, 4)
    laplace = dp.PoissonSampledDpEvent(0.5, dp.LaplaceDpEvent(2.0))
    for event, delta, adjacency, cause in (
        (dp.SampledWithoutReplacementDpEvent(100, 10, some), 1e-5, "replace-one", "use Poisson sampling"),
        (dp.SampledWithReplacementDpEvent(100, 10, some), 1e-5, "replace-one", "use Poisson sampling"),
        (dp.RepeatAndSelectDpEvent(some, 10.0, 1.0), 1e-5, "replace-one", "private selection"),
        (EncodedStudentDpEvent(2.0, 9.0, 10**7 + 1, 10**8), 1e-5, "replace-one", "up to 10,000,000 coord"),
        (dp.ComposedDpEvent([some, tree]), 1e-5, "zero-out", "for SingleEpochTreeAggregationDpEvent"),
        (dp.ComposedDpEvent([some, laplace]), 1e-5, "replace-one", "for PoissonSampledDpEvent.*Laplace"),
        (dp.SelfComposedDpEvent(some, 100), 1e-12, "replace-one", "delta = 1e-12, which is too small"),
        (EncodedStudentDpEvent(0.001, 9.0, 10_000, 10_000), 1e-5, "replace-one", "too little noise"),
    ):
        with pytest.raises(UnsupportedEvent, match=rf"^Student t noise on encoded updates .*{cause}"):
            epsilon(event, delta, adjacency)
    for wrong in ((2.0, 2.0, 3, 3), (2.0, 9.0, 4, 3), (2.0, 9.0, 0, 3), (2.0, math.nan, 3, 3)):
        with pytest.raises(InputError):
            epsilon(EncodedStudentDpEvent(*wrong), 1e-5, "replace-one")
