"""The claims of private empirical risk minimisation, on data sets so small that every density is known.

The neighbours are those that attain the sensitivity: one record of a Huberised SVM, whose slope is -1 or 1 near 0.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import dp_accounting
import numpy as np
from scipy import integrate, optimize, special, stats

from claims import checks
from claims.claim import Claim
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.erm import (
    Approach,
    GradientPerturbation,
    GridExponential,
    HuberSVM,
    Logistic,
    Objective,
    ObjectivePerturbation,
    OutputPerturbation,
    Squared,
    SufficientStatistics,
)

Data = tuple[np.ndarray, np.ndarray]
DELTA = 0.01


def axis_record(approach: Approach, sign: float) -> Data:
    """One record e_1 with target `sign`; none for 0."""
    x = np.zeros((1, approach.objective.dimension))
    x[0, 0] = 1.0
    if sign:
        return x, np.array([sign])
    # One that is gone, or zeroed: its loss then depends on no theta.
    return (x[:0], np.zeros(0)) if approach.adjacency == "add-remove" else (0 * x, np.ones(1))


@lru_cache(maxsize=64)
def thetas(approach: Approach, world: int, count: int) -> np.ndarray:
    """Estimates on one of the neighbours, shape (count, d)."""
    stream = checks.stream(f"minima {world}")
    x, y = NEIGHBOURS[type(approach)](approach)[world]
    return np.array([approach.fit(x, y, stream).theta for _ in range(count)])


def signs(approach: Approach) -> tuple[Data, Data]:
    """The record is replaced by its opposite, or it comes and goes."""
    other = -1.0 if approach.adjacency == "replace-one" else 0.0
    return axis_record(approach, 1.0), axis_record(approach, other)


class MinimumClaim(Claim):
    """What the approaches share; half the noise is that of twice the epsilon, or nearly."""

    draws = 1500  # of half the noise KS still says p < 1e-30
    teeth = 0.3

    def audit(self, claimed: Any, drawn: Any) -> None:
        """By a threshold, but where scores are normal by their means, which proves more; false alarms 1e-3."""
        present, absent = self.scores(drawn, self.draws)
        if not self.normal(claimed):
            teeth = 0.1 if claimed.delta else self.teeth
            checks.audit(present, absent, self.epsilon(claimed), claimed.delta, teeth)
            return
        proved = gaussian_bound(present, absent, claimed.delta, 0.999).epsilon
        assert proved <= claimed.epsilon, (
            f"an epsilon of {proved:.3g} is proved, {claimed.epsilon:.3g} claimed"
        )
        assert proved >= self.teeth * claimed.epsilon, f"the audit is blunt: {proved:.3g}"

    def normal(self, approach: Any) -> bool:
        """Whether scores are normal: unsampled Gaussian noise."""
        return approach.delta > 0

    def epsilon(self, claimed: Any) -> float:
        spent = claimed.spent().epsilon
        assert spent <= claimed.epsilon * (1 + 1e-9)
        return float(spent)

    def halved(self, mechanism: Any) -> Any:
        return replace(mechanism, epsilon=2.2 * mechanism.epsilon)


HINGE = Objective(HuberSVM(0.5), regularisation=2.0, records=1, dimension=1)


class OutputClaim(MinimumClaim):
    instances = (
        OutputPerturbation(HINGE, 1.0),
        OutputPerturbation(replace(HINGE, dimension=3), 2.0, adjacency="add-remove"),
        OutputPerturbation(replace(HINGE, dimension=2), 1.0, DELTA),
        OutputPerturbation(HINGE, 0.5, DELTA, "zero-out", tolerance=0.01),
    )

    def centres(self, approach: OutputPerturbation) -> tuple[np.ndarray, np.ndarray]:
        """Where the minimum lies on the neighbours: 1/2 and -1/2, or 0."""
        shift = 1.0 if approach.adjacency == "replace-one" else 0.5
        axis = np.eye(approach.objective.dimension)[0]
        return 0.5 * axis, (0.5 - shift) * axis

    def distribution(self, claimed: OutputPerturbation, drawn: OutputPerturbation) -> None:
        noise = thetas(drawn, 0, self.draws) - self.centres(claimed)[0]
        d = claimed.objective.dimension
        if claimed.delta:
            checks.follows(noise.ravel(), stats.norm(scale=claimed.noise).cdf)
        else:
            law = stats.gamma(d, scale=claimed.sensitivity / claimed.epsilon)
            checks.follows(np.linalg.norm(noise, axis=1), law.cdf)

    def moments(self, claimed: OutputPerturbation, drawn: OutputPerturbation) -> None:
        for world in (0, 1):
            for told, centre in zip(
                thetas(drawn, world, self.draws).T, self.centres(claimed)[world], strict=True
            ):
                checks.moments(told, centre, claimed.noise**2, bias=claimed.distance, slack=1e-3)

    def privacy(self, claimed: OutputPerturbation, drawn: OutputPerturbation) -> None:
        # The solver may be off by its distance, away from the other on both sides.
        one, other = self.centres(claimed)
        shift = float(np.linalg.norm(one - other)) + 2 * claimed.distance
        if claimed.delta:
            here, there = stats.norm(0.0, drawn.noise), stats.norm(shift, drawn.noise)
            wide = 40 * claimed.noise
            checks.hockey_stick(here.pdf, there.pdf, self.epsilon(claimed), claimed.delta, (-wide, wide))
        else:
            assert shift * drawn.epsilon / drawn.sensitivity <= claimed.epsilon * (1 + 1e-9)

    def scores(self, drawn: OutputPerturbation, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, other = self.centres(drawn)

        def likelier(theta: np.ndarray) -> np.ndarray:
            return np.linalg.norm(theta - other, axis=1) - np.linalg.norm(theta - one, axis=1)

        if drawn.delta:
            return thetas(drawn, 0, count)[:, 0], thetas(drawn, 1, count)[:, 0]
        # Rounded, since all far beyond are equally likely.
        return tuple(np.round(likelier(thetas(drawn, world, count)), 3) for world in (0, 1))  # type: ignore[return-value]

    def oracle(self, claimed: OutputPerturbation) -> None:
        """scipy's minimum is where ours is, and the textbook's distance 2 L/(n lambda) what the noise is made for."""
        x, y = axis_record(claimed, 1.0)
        objective = claimed.objective
        found = optimize.minimize(
            objective.value, np.full(objective.dimension, 0.3), args=(x, y), jac=objective.gradient, tol=1e-10
        )
        assert np.allclose(found.x, self.centres(claimed)[0], atol=1e-6)
        textbook = (2.0 if claimed.adjacency == "replace-one" else 1.0) / (1 * 2.0)
        assert math.isclose(claimed.sensitivity, textbook + 2 * claimed.tolerance / 2.0, rel_tol=1e-12)
        if claimed.delta:
            theirs = dp_accounting.get_epsilon_gaussian(claimed.noise / claimed.sensitivity, claimed.delta)
            assert math.isclose(theirs, claimed.epsilon, rel_tol=1e-6)


class ObjectiveClaim(MinimumClaim):
    """theta falls with b, so that its distribution function and density are those of b(theta)."""

    instances = (
        ObjectivePerturbation(HINGE, 1.0),
        ObjectivePerturbation(HINGE, 1.5, adjacency="add-remove"),
        # With much regularisation all minima stay where the slope is 1 or -1, and theta is normal.
        ObjectivePerturbation(replace(HINGE, regularisation=60.0), 1.0, DELTA),
        ObjectivePerturbation(replace(HINGE, regularisation=60.0), 1.0, DELTA, "zero-out"),
    )

    def slope(self, approach: ObjectivePerturbation, theta: np.ndarray, y: float) -> np.ndarray:
        """The slope of the loss and the regulariser, written anew: of the hinge, rounded by 1/2."""
        hinge = y * np.clip(1.5 - y * theta, 0.0, 1.0) if y else 0.0
        return np.asarray(approach.objective.regularisation * theta - hinge)

    def law(self, approach: ObjectivePerturbation) -> Any:
        """Of b."""
        change = 2.0 if approach.adjacency == "replace-one" else 1.0
        if approach.delta:
            return stats.norm(scale=approach.noise)
        left = approach.epsilon * 0.99 - math.log(1 + 1 / 2)
        return stats.laplace(scale=change / left)

    def density(self, approach: ObjectivePerturbation, theta: np.ndarray, y: float) -> np.ndarray:
        rounded = np.where(np.abs(1 - y * theta) <= 0.5, 1.0, 0.0) if y else 0.0
        b, law = self.slope(approach, theta, y), self.law(approach)
        scale = law.kwds["scale"]
        bell = (
            np.exp(-((b / scale) ** 2) / 2) / math.sqrt(2 * math.pi)
            if approach.delta
            else np.exp(-np.abs(b) / scale) / 2
        )
        return np.asarray(bell / scale * (approach.objective.regularisation + rounded))

    def worlds(self, approach: ObjectivePerturbation) -> tuple[float, float]:
        return 1.0, (-1.0 if approach.adjacency == "replace-one" else 0.0)

    def distribution(self, claimed: ObjectivePerturbation, drawn: ObjectivePerturbation) -> None:
        for world, y in enumerate(self.worlds(claimed)):
            told = thetas(drawn, world, self.draws)[:, 0]
            checks.follows(told, lambda t, y=y: self.law(claimed).sf(-self.slope(claimed, t, y)))

    def moments(self, claimed: ObjectivePerturbation, drawn: ObjectivePerturbation) -> None:
        for world, y in enumerate(self.worlds(claimed)):
            grid = np.linspace(-30, 30, 200_001) * claimed.noise / claimed.objective.regularisation
            weights = self.density(claimed, grid, y)
            mean = integrate.trapezoid(grid * weights, grid)
            variance = integrate.trapezoid((grid - mean) ** 2 * weights, grid)
            checks.moments(thetas(drawn, world, self.draws)[:, 0], mean, variance, bias=1e-3, slack=1e-3)

    def privacy(self, claimed: ObjectivePerturbation, drawn: ObjectivePerturbation) -> None:
        one, other = self.worlds(claimed)
        if not claimed.delta:  # everywhere, and somewhere it is all of it, but for the solver's share
            grid = np.linspace(-3, 3, 60_001)
            loss = np.log(self.density(drawn, grid, one) / self.density(drawn, grid, other))
            assert np.abs(loss).max() <= claimed.epsilon
            assert math.isclose(np.abs(loss).max(), 0.99 * drawn.epsilon, rel_tol=1e-3)
            return
        wide = 10 * claimed.noise / 60.0
        checks.hockey_stick(
            lambda t: float(self.density(drawn, np.asarray(t), one)),
            lambda t: float(self.density(drawn, np.asarray(t), other)),
            0.99 * claimed.epsilon,
            claimed.delta,
            (-wide, wide),
        )

    def scores(self, drawn: ObjectivePerturbation, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, other = self.worlds(drawn)
        if drawn.delta:
            return -thetas(drawn, 0, count)[:, 0], -thetas(drawn, 1, count)[:, 0]

        def loss(theta: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.round(
                    np.log(self.density(drawn, theta, one)) - np.log(self.density(drawn, theta, other)), 3
                )

        return loss(thetas(drawn, 0, count)[:, 0]), loss(thetas(drawn, 1, count)[:, 0])

    def oracle(self, claimed: ObjectivePerturbation) -> None:
        """Published noise, proved by others, is never less than ours on the same terms."""
        n, lam, smooth = 1, claimed.objective.regularisation, 1.0
        if claimed.delta:  # Kifer et al. 2012, Algorithm 1
            epsilon = claimed.epsilon
            assert n * lam >= 2 * smooth / epsilon
            theirs = math.sqrt(8 * math.log(2 / claimed.delta) + 4 * epsilon) / epsilon
            # Their L bounds the change of the sum of gradients, which is 2 under replace-one.
            change = 2.0 if claimed.adjacency == "replace-one" else 1.0
            assert claimed.noise <= change * theirs
        else:  # Chaudhuri et al. 2011, Algorithm 2
            left = claimed.epsilon - 2 * math.log(1 + smooth / (n * lam))
            theirs = 2 / left if left > 0 else math.inf
            assert claimed.noise / math.sqrt(2) <= theirs


class GradientClaim(MinimumClaim):
    """All iterates stay where the slope is 1 or -1: the average is normal, given who was drawn at which step."""

    instances = (
        GradientPerturbation(
            replace(HINGE, regularisation=0.0), 1.0, DELTA, radius=0.5, steps=4, step_size=0.002
        ),
        GradientPerturbation(
            replace(HINGE, regularisation=0.0), 1.0, DELTA, "add-remove", radius=0.5, steps=3, step_size=0.005
        ),
        GradientPerturbation(
            replace(HINGE, regularisation=0.0), 3.0, DELTA, radius=0.5, steps=4, step_size=0.01, rate=0.5
        ),
    )

    def law(self, approach: GradientPerturbation, world: int) -> tuple[np.ndarray, np.ndarray, float]:
        """The average is a mixture of normals: their chances, means and standard deviation."""
        t, q, size = approach.steps, approach.rate, approach.step_size or 0.0
        weights = np.arange(t - 1, -1, -1) / t
        slope = (-1.0, 1.0 if approach.adjacency == "replace-one" else 0.0)[world]
        drawn = np.array(list(itertools.product((0, 1), repeat=t)))
        chances = np.prod(np.where(drawn == 1, q, 1 - q), axis=1)
        noise = size * approach.mechanism.standard_deviation / q * np.linalg.norm(weights)
        return chances, -size * slope / q * (drawn @ weights), float(noise)

    def distribution(self, claimed: GradientPerturbation, drawn: GradientPerturbation) -> None:
        for world in (0, 1):
            chances, means, noise = self.law(claimed, world)
            told = thetas(drawn, world, self.draws)[:, 0]
            checks.follows(
                told, lambda t, c=chances, m=means, s=noise: stats.norm.cdf((t[:, None] - m) / s) @ c
            )

    def moments(self, claimed: GradientPerturbation, drawn: GradientPerturbation) -> None:
        for world in (0, 1):
            chances, means, noise = self.law(claimed, world)
            mean = float(chances @ means)
            spread = float(chances @ (means - mean) ** 2)
            checks.moments(thetas(drawn, world, self.draws)[:, 0], mean, noise**2 + spread)

    def density(self, approach: GradientPerturbation, world: int, at: Any) -> Any:
        chances, means, noise = self.law(approach, world)
        return stats.norm.pdf(np.asarray(at)[..., None], means, noise) @ chances

    def privacy(self, claimed: GradientPerturbation, drawn: GradientPerturbation) -> None:
        wide = 12 * self.law(claimed, 0)[2]
        checks.hockey_stick(
            lambda t: float(self.density(drawn, 0, t)),
            lambda t: float(self.density(drawn, 1, t)),
            self.epsilon(claimed),
            claimed.delta,
            (-wide, wide),
        )

    def normal(self, approach: GradientPerturbation) -> bool:
        return approach.rate == 1

    def halved(self, mechanism: GradientPerturbation) -> Any:
        return replace(mechanism, epsilon=mechanism.epsilon * (2.2 if mechanism.rate == 1 else 5))

    def scores(self, drawn: GradientPerturbation, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        return thetas(drawn, 0, count)[:, 0], thetas(drawn, 1, count)[:, 0]

    def oracle(self, claimed: GradientPerturbation) -> None:
        """dp_accounting's own composition of the steps costs what is claimed."""
        adjacency = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        # A replaced record moves a sum by 2 L: half the noise, under add-remove, where all records take part.
        change = 2.0 if claimed.adjacency == "replace-one" else 1.0
        if claimed.rate < 1:
            adjacency = dp_accounting.NeighboringRelation.REPLACE_ONE
            change = 1.0  # it doubles by itself
        step = dp_accounting.GaussianDpEvent(claimed.mechanism.noise_multiplier / change)
        if claimed.rate < 1:
            step = dp_accounting.PoissonSampledDpEvent(claimed.rate, step)
        accountant = dp_accounting.pld.PLDAccountant(adjacency)
        accountant.compose(dp_accounting.SelfComposedDpEvent(step, claimed.steps))
        assert math.isclose(accountant.get_epsilon(claimed.delta), claimed.epsilon, rel_tol=2e-3)


RIDGE = Objective(Squared.within(1.0), regularisation=0.1, records=1, dimension=2)


def products(approach: Approach) -> tuple[Data, Data]:
    """Records at 60 degrees with opposite targets, or one that comes and goes."""
    d = approach.objective.dimension
    if approach.adjacency == "replace-one":
        there = (np.array([[0.5, math.sqrt(0.75)]]), np.array([-1.0]))
        return (np.array([[1.0, 0.0]]), np.array([1.0])), there
    return (np.full((1, d), d**-0.5), np.array([1.0])), (np.zeros((0, d)), np.zeros(0))


class StatisticsClaim(MinimumClaim):
    draws = 3000  # fewer prove too little at epsilon 2
    instances = (
        SufficientStatistics(RIDGE, 1.0, DELTA),
        SufficientStatistics(RIDGE, 1.0, DELTA, "add-remove"),
        SufficientStatistics(RIDGE, 2.0, 0.0, "add-remove"),
    )

    @lru_cache(maxsize=16)  # noqa: B019 one object, kept as long as the tests
    def released(self, approach: SufficientStatistics, world: int, count: int) -> np.ndarray:
        """(A_11, A_12, A_22, c_1, c_2) of each release, shape (count, 5)."""
        stream = checks.stream(f"statistics {world}")
        x, y = products(approach)[world]
        told = [approach.statistics(x, y, stream) for _ in range(count)]
        return np.array([[a[0, 0], a[0, 1], a[1, 1], *c] for a, c in told])

    def exact(self, approach: SufficientStatistics, world: int) -> np.ndarray:
        x, y = products(approach)[world]
        a, c = x.T @ x, x.T @ y
        return np.array([a[0, 0], a[0, 1], a[1, 1], *c])

    def weights(self, approach: SufficientStatistics) -> np.ndarray:
        return np.array([1.0, math.sqrt(2) if approach.delta else 1.0, 1.0, 1.0, 1.0])

    def distribution(self, claimed: SufficientStatistics, drawn: SufficientStatistics) -> None:
        noise = (self.released(drawn, 0, self.draws) - self.exact(claimed, 0)) * self.weights(claimed)
        law = (
            stats.norm(scale=claimed.noise) if claimed.delta else stats.laplace(scale=claimed.noise / 2**0.5)
        )
        for column in noise.T:
            checks.follows(column, law.cdf)

    def moments(self, claimed: SufficientStatistics, drawn: SufficientStatistics) -> None:
        told = self.released(drawn, 0, self.draws)
        for column, mean, weight in zip(told.T, self.exact(claimed, 0), self.weights(claimed), strict=True):
            checks.moments(column, mean, (claimed.noise / weight) ** 2)

    def moved(self, approach: SufficientStatistics) -> np.ndarray:
        return (self.exact(approach, 0) - self.exact(approach, 1)) * self.weights(approach)

    def privacy(self, claimed: SufficientStatistics, drawn: SufficientStatistics) -> None:
        if not claimed.delta:
            loss = np.abs(self.moved(claimed)).sum() / (drawn.noise / 2**0.5)
            assert loss <= claimed.epsilon * (1 + 1e-9)
            assert math.isclose(loss, drawn.epsilon, rel_tol=1e-9)
            return
        shift = float(np.linalg.norm(self.moved(claimed)))
        wide = 40 * claimed.noise
        here, there = stats.norm(0.0, drawn.noise), stats.norm(shift, drawn.noise)
        checks.hockey_stick(here.pdf, there.pdf, self.epsilon(claimed), claimed.delta, (-wide, wide))

    def scores(self, drawn: SufficientStatistics, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        weights = self.weights(drawn)
        if drawn.delta:
            along = self.moved(drawn) * weights
            return self.released(drawn, 0, count) @ along, self.released(drawn, 1, count) @ along
        one, other = self.exact(drawn, 0), self.exact(drawn, 1)

        def loss(told: np.ndarray) -> np.ndarray:
            return np.round((np.abs(told - other) - np.abs(told - one)).sum(axis=1), 3)

        return loss(self.released(drawn, 0, count)), loss(self.released(drawn, 1, count))

    def oracle(self, claimed: SufficientStatistics) -> None:
        """scipy's least squares in the ball, from statistics with and without noise."""
        stream = checks.stream("least squares")
        for spread in (0.0, 1.0):
            a = np.array([[0.5, 0.2], [0.2, 0.3]]) + spread * stream.normal(size=(2, 2))
            a, c = (a + a.T) / 2, np.array([0.7, -0.9])
            angles = np.linspace(0, 2 * math.pi, 2001)
            ball = np.concatenate(
                [r * np.stack([np.cos(angles), np.sin(angles)], 1) for r in np.linspace(0, 1, 501)]
            )
            curved = a / claimed.objective.records + 0.1 * np.eye(2)
            values = np.einsum("ij,jk,ik->i", ball, curved, ball) / 2 - ball @ c
            ours = claimed.solve(a, c)
            assert np.linalg.norm(ours) <= 1 + 1e-9
            assert ours @ curved @ ours / 2 - ours @ c <= values.min() + 1e-9
            assert np.allclose(ours, ball[values.argmin()], atol=5e-3)


class GridClaim(MinimumClaim):
    # Another record makes one of the candidates rarer, where one record says the most.
    objective = Objective(Logistic(), regularisation=0.1, records=2, dimension=1)
    grid = ((-2.0,), (-1.0,), (2.0,))
    instances = (
        GridExponential(objective, 2.0, candidates=grid, public=True),
        GridExponential(objective, 2.0, adjacency="add-remove", candidates=grid, public=True),
    )
    draws = 60_000

    def worlds(self, approach: GridExponential) -> tuple[Data, Data]:
        here, x = np.array([1.0, -1.0]), np.ones((2, 1))
        if approach.adjacency == "replace-one":
            return (x, here), (x, -np.ones(2))
        return (x, here), (x[1:], here[1:])

    def probabilities(self, approach: GridExponential, world: int) -> np.ndarray:
        """The chances, written anew."""
        x, y = self.worlds(approach)[world]
        theta = np.array(self.grid)[:, 0]
        risk = np.log1p(np.exp(-y[:, None] * x * theta)).sum(axis=0) + 2 * 0.1 / 2 * theta**2
        # The loss lies between ln(1 + e^-2) and ln(1 + e^2): 2 apart, which counts twice where it is replaced.
        scale = 2 * 2.0 if approach.adjacency == "replace-one" else 2.0
        return np.asarray(special.softmax(-approach.epsilon * risk / scale))

    def chosen(self, approach: GridExponential, world: int, count: int) -> np.ndarray:
        x, y = self.worlds(approach)[world]
        stream = checks.stream(f"grid {world}")
        first = approach.fit(x, y, checks.stream(f"grid {world}")).theta
        assert first == self.grid[int(approach.mechanism.draw(approach.scores(x, y), stream))]
        return approach.mechanism.draw(np.tile(approach.scores(x, y), (count, 1)), stream)

    def distribution(self, claimed: GridExponential, drawn: GridExponential) -> None:
        for world in (0, 1):
            counts = np.bincount(self.chosen(drawn, world, 20_000), minlength=3)
            checks.fits(counts, self.probabilities(claimed, world))

    def moments(self, claimed: GridExponential, drawn: GridExponential) -> None:
        chances, theta = self.probabilities(claimed, 0), np.array(self.grid)[:, 0]
        mean = float(chances @ theta)
        checks.moments(theta[self.chosen(drawn, 0, 20_000)], mean, float(chances @ (theta - mean) ** 2))

    def privacy(self, claimed: GridExponential, drawn: GridExponential) -> None:
        one, other = self.probabilities(drawn, 0), self.probabilities(drawn, 1)
        checks.loss(one, other, self.epsilon(claimed))

    def scores(self, drawn: GridExponential, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        return self.chosen(drawn, 0, count).astype(float), self.chosen(drawn, 1, count).astype(float)

    no_oracle = (
        "the choice is the exponential mechanism's, whose oracle is opendp; here its chances are written anew"
    )


NEIGHBOURS = dict.fromkeys((OutputPerturbation, ObjectivePerturbation, GradientPerturbation), signs)
CLAIMS = {
    OutputPerturbation.name: OutputClaim(),
    ObjectivePerturbation.name: ObjectiveClaim(),
    GradientPerturbation.name: GradientClaim(),
    SufficientStatistics.name: StatisticsClaim(),
    GridExponential.name: GridClaim(),
}
