"""The claims of choices of settings: the best of a random number of private tries, and a noisy score.

A choice on the clients' shares by the exponential mechanism is that mechanism; what one client moves there is
`tests/fedprivacy/tuning/test_scores.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import stats

from claims import checks
from claims.claim import Claim
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.tuning.repetitions import Repetitions
from fedprivacy.tuning.scores import NoisyScore
from fedprivacy.tuning.selection import PrivateSelection, best

ONCE = 0.5  # epsilon of a try


@dataclass(frozen=True)
class Louder(PrivateSelection):
    """The same choice among tries of twice the epsilon that is claimed."""


@lru_cache(maxsize=32)
def drawn_best(mechanism: PrivateSelection, chances: tuple[float, ...], count: int, world: int) -> np.ndarray:
    """The best outcome of each of `count` choices, -1 where nothing was tried, shape (count,)."""
    stream, levels = checks.stream(f"best {world}"), np.cumsum(chances)[:-1]
    told = np.empty(count, dtype=int)
    for number in range(count):
        tries = mechanism.draw(stream)  # its candidates are alike
        scores = np.searchsorted(levels, stream.random(len(tries)), side="right")
        at = best(scores.tolist())
        told[number] = -1 if at is None else scores[at]
    return told


class RandomStoppingClaim(Claim):
    """Each try ends in one of three outcomes, the larger the better, of likelihoods e^+-epsilon apart.

    On the neighbour the best outcome is likelier, and the middle one less likely: so a choice that tells the
    middle one says that there was no best one among many tries, and tells of each of them.
    """

    instances = (
        PrivateSelection(2, Repetitions.geometric(20.0)),
        PrivateSelection(3, Repetitions(50.0, 0.0)),
        PrivateSelection(2, Repetitions(20.0, 0.5)),
        PrivateSelection(1, Repetitions.poisson(4.0)),
    )
    draws = 12_000
    teeth = 0.4

    def epsilon(self, claimed: PrivateSelection) -> float:
        event = claimed.event([PureDpEvent(ONCE)] * claimed.candidates, "replace-one")
        return epsilon(event, 0.0, "replace-one").epsilon

    def halved(self, mechanism: PrivateSelection) -> PrivateSelection:
        return Louder(mechanism.candidates, mechanism.repetitions)

    def worlds(self, mechanism: PrivateSelection) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The chances of a try's outcomes on two neighbours, each within e^+-epsilon of the other."""
        once = 2 * ONCE if isinstance(mechanism, Louder) else ONCE
        rare, middle = (0.15, 0.1) if 0 < mechanism.repetitions.shape < math.inf else (0.25, 0.2)
        one = (1 - middle - rare, middle, rare)
        other = (0.0, middle * math.exp(-once), rare * math.exp(once))
        other = (1 - sum(other), *other[1:])
        assert np.abs(np.log(np.array(other) / one)).max() <= once + 1e-12
        return one, other

    def told(self, mechanism: PrivateSelection, chances: tuple[float, ...]) -> np.ndarray:
        """The chance of nothing and of each outcome to be told: f(Q(<= y)) - f(Q(< y)), f generating the law."""
        law = mechanism.repetitions.probabilities()
        below = np.concatenate([[0.0], np.cumsum(chances)])
        powers = below[:, None] ** np.arange(len(law))
        return np.concatenate([[law[0]], np.diff(powers @ law)])

    def distribution(self, claimed: PrivateSelection, drawn: PrivateSelection) -> None:
        for world in (0, 1):
            found = drawn_best(drawn, self.worlds(drawn)[world], self.draws, world)
            checks.fits(np.bincount(found + 1, minlength=4), self.told(claimed, self.worlds(claimed)[world]))

    def moments(self, claimed: PrivateSelection, drawn: PrivateSelection) -> None:
        chances, outcomes = self.told(claimed, self.worlds(claimed)[1]), np.arange(-1, 3)
        mean = float(chances @ outcomes)
        found = drawn_best(drawn, self.worlds(drawn)[1], self.draws, 1).astype(float)
        checks.moments(found, mean, float(chances @ (outcomes - mean) ** 2))

    def privacy(self, claimed: PrivateSelection, drawn: PrivateSelection) -> None:
        one, other = (self.told(drawn, chances) for chances in self.worlds(drawn))
        checks.loss(one, other, self.epsilon(claimed))

    def scores(self, drawn: PrivateSelection, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, other = self.worlds(drawn)
        present, absent = drawn_best(drawn, one, count, 0), drawn_best(drawn, other, count, 1)
        return (present == 1).astype(float), (absent == 1).astype(float)

    def oracle(self, claimed: PrivateSelection) -> None:
        """dp_accounting's law of the same gamma has the mean that is accounted for; Liu and Talwar's 3 epsilon."""
        from dp_accounting.rdp.rdp_privacy_accountant import _truncated_negative_binomial_mean

        law = claimed.repetitions
        if law.shape == math.inf:
            assert np.allclose(law.probabilities()[:30], stats.poisson.pmf(np.arange(30), law.mean))
            return
        theirs = _truncated_negative_binomial_mean(law.gamma, law.shape)
        assert math.isclose(theirs, law.mean, rel_tol=1e-6)
        ours = float(np.arange(len(law.probabilities())) @ law.probabilities())
        assert math.isclose(ours, theirs, rel_tol=1e-6)
        if law.shape == 1:
            assert math.isclose(self.epsilon(claimed), 3 * ONCE, rel_tol=1e-12)


class NoisyScoreClaim(Claim):
    """Two clients, of whom one names none of its records rightly or all."""

    instances = (NoisyScore(2.0), NoisyScore(20.0))
    delta = 1e-2
    draws = 20_000
    teeth = 0.3

    def audited(self, mechanism: NoisyScore) -> bool:
        return mechanism.noise_multiplier < 10

    def halved(self, mechanism: NoisyScore) -> NoisyScore:
        return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)

    def told(self, mechanism: NoisyScore, share: float, count: int) -> np.ndarray:
        stream, parts = checks.stream(f"score {share}"), np.array([share, 0.3])
        return np.array([mechanism.draw(parts, stream) for _ in range(count)])

    def distribution(self, claimed: NoisyScore, drawn: NoisyScore) -> None:
        law = stats.norm(0.5 - 0.2, 0.5 * claimed.event().noise_multiplier)
        checks.follows(self.told(drawn, 1.0, 6000), law.cdf)

    def moments(self, claimed: NoisyScore, drawn: NoisyScore) -> None:
        for share in (0.0, 1.0):
            variance = (0.5 * claimed.noise_multiplier) ** 2
            checks.moments(self.told(drawn, share, 6000), share - 0.5 - 0.2, variance)

    def privacy(self, claimed: NoisyScore, drawn: NoisyScore) -> None:
        spread = drawn.gaussian.standard_deviation
        here, there = stats.norm(0.0, spread), stats.norm(1.0, spread)
        wide = 20 * claimed.noise_multiplier
        checks.hockey_stick(here.pdf, there.pdf, self.epsilon(claimed), self.delta, (-wide, wide), (0.0, 1.0))

    def scores(self, drawn: NoisyScore, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        return self.told(drawn, 1.0, count), self.told(drawn, 0.0, count)

    def oracle(self, claimed: NoisyScore) -> None:
        """The closed form of a Gaussian release that moves by 1 (Balle and Wang 2018)."""
        assert math.isclose(
            self.epsilon(claimed), gaussian_epsilon(self.delta, 2 / claimed.noise_multiplier), rel_tol=1e-9
        )


CLAIMS = {PrivateSelection.name: RandomStoppingClaim(), NoisyScore.name: NoisyScoreClaim()}
