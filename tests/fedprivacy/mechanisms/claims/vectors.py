"""The claims of the mechanisms for updates, vectors of norm C at most."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
from dp_accounting import SelfComposedDpEvent
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from claims import checks
from claims.claim import Claim
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.mechanisms.banded import BandedGaussian, CorrelatedNoise
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LocalMechanism
from fedprivacy.mechanisms.privunit import PrivUnitG, best_cap
from fedprivacy.mechanisms.rotation import hadamard
from fedprivacy.mechanisms.signs import RANGE, SignBits
from fedprivacy.mechanisms.sqkr import RANGE as SQKR_RANGE
from fedprivacy.mechanisms.sqkr import SQKR
from fedprivacy.randomness.streams import Streams

DIMENSION = 24
NORM = 2.0


def direction(seed: int = 0, norm: float = NORM, dimension: int = DIMENSION) -> np.ndarray:
    """An update of a norm, in a random direction, shape (dimension,)."""
    update = np.random.default_rng(seed).normal(size=dimension)
    return norm * update / np.linalg.norm(update)


def messages(mechanism: LocalMechanism, update: np.ndarray, count: int, purpose: str = "test") -> np.ndarray:
    """One client's messages, each from a stream of its own, shape (count, dimension)."""
    return mechanism.randomise_all(np.tile(update, (count, 1)), Streams(9).streams(purpose, range(count)))


class VectorClaim(Claim):
    """What all have in common; the worst neighbours are an update and its opposite."""

    draws = 6000

    def dimension(self, mechanism: LocalMechanism) -> int:
        """The numbers of an update."""
        return DIMENSION

    def halved(self, mechanism: LocalMechanism) -> LocalMechanism:
        return replace(mechanism, epsilon=2 * mechanism.epsilon)

    def told(self, mechanism: LocalMechanism, update: np.ndarray) -> np.ndarray:
        """What messages are unbiased for."""
        return update

    def moments(self, claimed: LocalMechanism, drawn: LocalMechanism) -> None:
        dimension = self.dimension(claimed)
        for norm in (NORM, NORM / 4, 0.0):
            update = direction(norm=norm, dimension=dimension)
            sent = messages(drawn, update, 4000)
            errors = sent.mean(axis=0) - self.told(claimed, update)
            z = errors / (sent.std(axis=0, ddof=1) / math.sqrt(len(sent)))
            # SQKR is unbiased over rotations up to what cutting takes, some 1e-3 of the norm
            assert np.abs(z).max() < stats.norm.isf(checks.FALSE_ALARM / 2 / dimension)
        squared = []
        for seed in range(100):
            update = direction(seed, dimension=dimension)
            squared.append(np.mean((messages(drawn, update, 40, f"{seed}") - update) ** 2))
        mean, spread = np.mean(squared), np.std(squared) / 10
        assert abs(mean - NORM**2 * claimed.error(dimension)) < 5 * spread + 1e-2 * mean

    def scores(self, drawn: LocalMechanism, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The part of a message along the update."""
        update = direction()
        present = messages(drawn, update, count, "present")
        absent = messages(drawn, -update, count, "absent")
        return present @ update, absent @ update


class GaussianClaim(VectorClaim):
    instances = (Gaussian(NORM, 1.5), Gaussian(NORM, 4.0))
    delta = 1e-2
    teeth = 0.4  # the best threshold lies where hardly a message does

    def halved(self, mechanism: Gaussian) -> Gaussian:
        return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)

    def distribution(self, claimed: Gaussian, drawn: Gaussian) -> None:
        for shares in (1, 100):
            noise = drawn.draw(20_000, checks.stream("noise", shares), shares=shares)
            deviation = claimed.event().noise_multiplier * NORM * math.sqrt(shares)
            checks.follows(noise, stats.norm(scale=deviation).cdf)
            checks.moments(noise, 0.0, deviation**2)

    def privacy(self, claimed: Gaussian, drawn: Gaussian) -> None:
        """Along the line from an update to its opposite, which is all of the message that tells them apart."""
        one, other = (stats.norm(loc, drawn.standard_deviation).pdf for loc in (NORM, -NORM))
        checks.hockey_stick(one, other, self.epsilon(claimed), self.delta, (-100.0, 100.0), (-NORM, NORM))

    def oracle(self, claimed: Gaussian) -> None:
        """Opacus' PRV accountant, of one release at the doubled sensitivity of a replaced update."""
        from opacus.accountants import PRVAccountant

        accountant = PRVAccountant()
        accountant.history = [(claimed.noise_multiplier / 2, 1.0, 1)]
        with np.errstate(divide="ignore"):  # it takes the logarithm of 1 - the sampling rate
            theirs = accountant.get_epsilon(1e-5, eps_error=1e-3)
        ours = gaussian_epsilon(1e-5, 2 / claimed.noise_multiplier)
        assert abs(ours - theirs) < 1e-2


class BandedClaim(Claim):
    """Whole runs, of which each coordinate is one; clients answer as often as the bands allow them to."""

    instances = (
        BandedGaussian(NORM, 3.0, 3, 7),
        BandedGaussian(NORM, 4.0, 4, 6, 0.9),
        BandedGaussian(NORM, 3.0, 1, 2),
    )
    delta = 1e-2
    teeth = 0.4

    def answers(self, mechanism: BandedGaussian) -> list[int]:
        """The rounds in which the client that answers most does."""
        return list(range(0, mechanism.rounds, mechanism.bands))

    def epsilon(self, claimed: BandedGaussian) -> float:
        composed = SelfComposedDpEvent(claimed.event(), len(self.answers(claimed)))
        return epsilon(composed, self.delta, "replace-one").epsilon

    def halved(self, mechanism: BandedGaussian) -> BandedGaussian:
        return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)

    def noise(self, drawn: BandedGaussian, count: int, seed: int) -> np.ndarray:
        """Of independent runs, shape (rounds, count)."""
        noise = CorrelatedNoise(drawn, count)
        return np.array([noise.draw(number, Streams(seed)) for number in range(drawn.rounds)])

    def distribution(self, claimed: BandedGaussian, drawn: BandedGaussian) -> None:
        """C times the noise is independent: each row, and each sum and difference of two, is normal."""
        white = claimed.strategy.matrix() @ self.noise(drawn, 20_000, 1)
        law = stats.norm(scale=claimed.noise_multiplier * NORM)
        for row in white:
            checks.follows(row, law.cdf)
        for one, other in itertools.combinations(white, 2):
            checks.follows((one + other) / math.sqrt(2), law.cdf)
            checks.follows((one - other) / math.sqrt(2), law.cdf)

    def moments(self, claimed: BandedGaussian, drawn: BandedGaussian) -> None:
        """The covariance is z^2 (C^T C)^-1, and the error of the models that of the formula."""
        noise = self.noise(drawn, 40_000, 2) / NORM
        matrix = claimed.strategy.matrix()
        covariance = claimed.noise_multiplier**2 * np.linalg.inv(matrix.T @ matrix)
        variances = np.diag(covariance)
        spread = np.sqrt(np.outer(variances, variances) + covariance**2) / math.sqrt(40_000)
        bar = stats.norm.isf(checks.FALSE_ALARM / covariance.size)
        assert np.abs((noise @ noise.T / 40_000 - covariance) / spread).max() < bar
        velocity, models, squares = np.zeros(40_000), np.zeros(40_000), np.zeros(40_000)
        for row in noise:
            velocity = claimed.momentum * velocity + row
            models += velocity
            squares += models**2 / claimed.rounds
        error = squares.std() / math.sqrt(40_000)
        assert abs(squares.mean() - claimed.error(1)) < 5 * error

    def privacy(self, claimed: BandedGaussian, drawn: BandedGaussian) -> None:
        """Whoever answers when it may, whatever the signs: all of it lies on one line, the worst is told apart."""
        matrix, worst = claimed.strategy.matrix(), 0.0
        for count in range(1, claimed.rounds + 1):
            for rounds in itertools.combinations(range(claimed.rounds), count):
                if min(np.diff(rounds), default=claimed.bands) >= claimed.bands:
                    for signs in itertools.product((1, -1), repeat=count):
                        worst = max(worst, float(np.linalg.norm(matrix[:, list(rounds)] @ signs)))
        scale = drawn.noise_multiplier * NORM
        one, other = (stats.norm(loc * worst * NORM, scale).pdf for loc in (1, -1))
        wide = 12 * scale + worst * NORM
        checks.hockey_stick(
            one, other, self.epsilon(claimed), self.delta, (-wide, wide), (-worst * NORM, worst * NORM)
        )

    def scores(self, drawn: BandedGaussian, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The likelihood ratio of the whole run: the client's columns, which the noise has not blurred."""
        matrix, answered = drawn.strategy.matrix(), np.zeros((drawn.rounds, 1))
        answered[self.answers(drawn)] = NORM
        weights = matrix.T @ matrix @ answered[:, 0]
        present, absent = (
            weights @ (sign * answered + self.noise(drawn, count, seed)) for sign, seed in ((1, 3), (-1, 4))
        )
        return present, absent

    def oracle(self, claimed: BandedGaussian) -> None:
        """dp_accounting's privacy loss distribution of one Gaussian release, of all answers' sensitivity."""
        answers = len(self.answers(claimed))
        theirs = privacy_loss_distribution.from_gaussian_mechanism(
            claimed.noise_multiplier / math.sqrt(answers), sensitivity=2.0
        ).get_epsilon_for_delta(self.delta)
        assert abs(self.epsilon(claimed) - theirs) < 1e-3


class PrivUnitClaim(VectorClaim):
    instances = (
        PrivUnitG(NORM, 1.0),
        PrivUnitG(NORM, 2.0, "normalised"),
        PrivUnitG(NORM, 12.0, "normalised"),
        PrivUnitG(NORM, 6.0),
    )

    def audited(self, mechanism: PrivUnitG) -> bool:
        return mechanism.epsilon <= 2.0

    def told(self, mechanism: PrivUnitG, update: np.ndarray) -> np.ndarray:
        if mechanism.direction == "normalised" and update.any():
            return NORM * update / np.linalg.norm(update)
        return update

    def distribution(self, claimed: PrivUnitG, drawn: PrivUnitG) -> None:
        """Messages lie in the cap as often as they should, and their part along the update is cut normal."""
        update = direction()
        flat = replace(claimed, direction="normalised"), replace(drawn, direction="normalised")
        cap, own = (best_cap(each.epsilon, DIMENSION) for each in flat)
        along = messages(flat[1], update, 5000) @ update / NORM * own.mean / NORM
        inside, outside = along[along >= cap.threshold], along[along < cap.threshold]
        assert stats.binomtest(len(inside), 5000, cap.probability).pvalue > checks.FALSE_ALARM
        above = stats.norm.sf(cap.threshold)
        checks.follows(stats.norm.sf(inside) / above, stats.uniform.cdf)
        if len(outside):
            checks.follows(stats.norm.cdf(outside) / (1 - above), stats.uniform.cdf)

    def privacy(self, claimed: PrivUnitG, drawn: PrivUnitG) -> None:
        """The density of a message is that of a normal, times one of two factors: in the cap, and outside."""
        for dimension in (DIMENSION, 1000):
            cap = best_cap(drawn.epsilon, dimension)
            above = stats.norm.sf(cap.threshold)
            factors = cap.probability / above, (1 - cap.probability) / (1 - above)
            assert math.log(factors[0] / factors[1]) <= self.epsilon(claimed) + checks.ROUNDING

    def oracle(self, claimed: PrivUnitG) -> None:
        """Mean squared errors of other people's code, per coordinate of unit vectors in 1000 dimensions."""
        known = {1: 6.33, 2: 1.62, 4: 0.435, 8: 0.133, 16: 0.048}
        for budget, error in known.items():
            assert math.isclose(PrivUnitG(1.0, budget, "normalised").error(1000), error, rel_tol=5e-3)


class PublicPart:
    """A stream whose first draws, the rotation and coordinates that SQKR shares with the server, are fixed."""

    def __init__(self, flips: np.ndarray, chosen: np.ndarray, private: np.random.Generator) -> None:
        self.fixed = {"integers": [(flips + 1) // 2], "choice": [chosen]}
        self.private = private

    def _next(self, kind: str, *args, **options):
        return self.fixed[kind].pop() if self.fixed[kind] else getattr(self.private, kind)(*args, **options)

    def __getattr__(self, kind: str):
        return partial(self._next, kind) if kind in self.fixed else getattr(self.private, kind)


class SQKRClaim(VectorClaim):
    """Given what client and server share, a message is one word of b bits: finite, and read back here."""

    instances = (SQKR(NORM, 0.5), SQKR(NORM, 5.0))
    draws = 3000  # at epsilon .5 this proves .38 on average, 4.6 standard errors above the half
    no_oracle = (
        "The paper spreads an update by Kashin's representation, ours by a rotation whose coordinates are cut: "
        "another error, of which nobody else has code or figures."
    )
    size = 16

    def audited(self, mechanism: SQKR) -> bool:
        return mechanism.epsilon <= 2.0

    def words(self, mechanism: SQKR, update: np.ndarray, count: int, purpose: str, bits: int) -> np.ndarray:
        """The word of each message for fixed signs and coordinates, shape (count,)."""
        flips, chosen = self.public(bits)
        found = np.empty(count, dtype=int)
        for member in range(count):
            stream = PublicPart(flips, chosen, checks.stream(purpose, member))
            read = hadamard(mechanism.randomise(update, stream) * flips)
            found[member] = (read[chosen] > 0) @ (1 << np.arange(bits))
        return found

    def public(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        flips = np.where(np.arange(self.size) % 3 == 0, -1, 1)
        return flips, np.arange(bits) * 2 % self.size

    def probabilities(self, mechanism: SQKR, update: np.ndarray, bits: int) -> np.ndarray:
        """Of each word, shape (2^bits,): k-ary randomised response over the rounded coordinates."""
        flips, chosen = self.public(bits)
        bound = SQKR_RANGE * NORM / math.sqrt(self.size)
        up = (1 + np.clip(hadamard(update * flips)[chosen] / bound, -1, 1)) / 2
        ones = np.arange(2**bits)[:, None] >> np.arange(bits) & 1
        rounded = np.where(ones, up, 1 - up).prod(axis=1)
        truth = math.exp(mechanism.epsilon) / (math.exp(mechanism.epsilon) + 2**bits - 1)
        return rounded * truth + (1 - rounded) * (1 - truth) / (2**bits - 1)

    def spikes(self, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """Two updates that fill the range of coordinates of the word, in opposite senses."""
        flips, chosen = self.public(bits)
        spread = np.zeros(self.size)
        spread[chosen] = NORM / math.sqrt(bits)
        return hadamard(spread) * flips, -hadamard(spread) * flips

    def distribution(self, claimed: SQKR, drawn: SQKR) -> None:
        bits = claimed.bits(self.size)
        update = self.spikes(bits)[0]
        assert drawn.bits(self.size) == bits, "words of another length"
        found = self.words(drawn, update, 4000, "words", bits)
        checks.fits(np.bincount(found, minlength=2**bits), self.probabilities(claimed, update, bits))

    def privacy(self, claimed: SQKR, drawn: SQKR) -> None:
        bits = drawn.bits(self.size)
        up, down = np.zeros(2**bits), np.zeros(2**bits)
        up[-1], down[0] = 1.0, 1.0  # words that are certain before they are told: the worst there are
        truth = math.exp(drawn.epsilon) / (math.exp(drawn.epsilon) + 2**bits - 1)
        one, other = (sure * truth + (1 - sure) * (1 - truth) / (2**bits - 1) for sure in (up, down))
        checks.loss(one, other, self.epsilon(claimed))

    def scores(self, drawn: SQKR, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The likelihood ratio of the word, for opposite updates."""
        bits = drawn.bits(self.size)
        one, other = self.spikes(bits)
        ratio = np.log(self.probabilities(drawn, one, bits)) - np.log(self.probabilities(drawn, other, bits))
        present = ratio[self.words(drawn, one, count, "present", bits)]
        absent = ratio[self.words(drawn, other, count, "absent", bits)]
        return present, absent


class SignBitsClaim(VectorClaim):
    instances = (SignBits(NORM, 1.0, 2), SignBits(NORM, 0.3, DIMENSION), SignBits(NORM, 1.0, DIMENSION))

    def dimension(self, mechanism: SignBits) -> int:
        return mechanism.dimension

    def audited(self, mechanism: SignBits) -> bool:
        return mechanism.dimension == 2  # all of many bits are hardly ever told truly

    def told(self, mechanism: SignBits, update: np.ndarray) -> np.ndarray:
        bound = RANGE * NORM / math.sqrt(mechanism.dimension)  # a coordinate beyond the range is cut
        return np.clip(update, -bound, bound)

    def distribution(self, claimed: SignBits, drawn: SignBits) -> None:
        update = np.zeros(claimed.dimension)
        update[:2] = 10 * NORM, -10 * NORM  # certain plus, certain minus; for the others either
        signs = messages(drawn, update, 4000) > 0
        truth = 1 / (1 + math.exp(-claimed.epsilon))
        for column, chance in zip(signs.T[:4], (truth, 1 - truth, 0.5, 0.5), strict=False):
            checks.fits(np.bincount(column, minlength=2), np.array([1 - chance, chance]))

    def privacy(self, claimed: SignBits, drawn: SignBits) -> None:
        """The bits are independent, so that the worst update for all is the worst for each."""
        truth = 1 / (1 + math.exp(-drawn.epsilon))
        bit = np.array([truth, 1 - truth])
        checks.loss(bit, bit[::-1], self.epsilon(claimed) / claimed.dimension)

    def scores(self, drawn: SignBits, count: int) -> tuple[np.ndarray, np.ndarray]:
        """How many signs are plus, where all should be or none."""
        update = np.full(drawn.dimension, 10 * NORM)
        present = messages(drawn, update, count, "present")
        absent = messages(drawn, -update, count, "absent")
        return (present > 0).sum(axis=1).astype(float), (absent > 0).sum(axis=1).astype(float)

    def oracle(self, claimed: SignBits) -> None:
        """Randomised response on every sign bit at eps/d, unit vectors in 1000 dimensions: other code."""
        for budget, error in {1: 64000, 2: 16000, 4: 4000, 8: 1000, 16: 250}.items():
            assert math.isclose(SignBits(1.0, budget / 1000, 1000).error(1000), error, rel_tol=5e-3)


CLAIMS = {
    Gaussian.name: GaussianClaim(),
    BandedGaussian.name: BandedClaim(),
    PrivUnitG.name: PrivUnitClaim(),
    SQKR.name: SQKRClaim(),
    SignBits.name: SignBitsClaim(),
}
