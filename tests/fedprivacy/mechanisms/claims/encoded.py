"""The claims of noise on encoded updates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from claims import checks
from claims.claim import Claim
from claims.vectors import DIMENSION, NORM, GaussianClaim
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent

PAIRS = 100_000  # drawn to estimate a hockey stick


def moves(mechanism: EncodedStudent) -> list[np.ndarray]:
    """By how much the coordinates may move where one code replaces another, the most of each pattern."""
    kept, size = mechanism.coordinates, NORM / math.sqrt(mechanism.coordinates)
    found = []
    for flipped in range(kept + 1):
        others = 2 * (kept - flipped)
        if flipped + others <= mechanism.dimension:
            found.append(size * np.array([2.0] * flipped + [1.0] * others))
    return found


def loss(noise: np.ndarray, moved: np.ndarray, degrees: float, scale: float) -> np.ndarray:
    """The privacy loss of draws of the noise against the same noise moved; shape (draws,)."""
    law = stats.t(degrees, scale=scale)
    return (law.logpdf(noise) - law.logpdf(noise - moved)).sum(axis=1)


class EncodedGaussianClaim(GaussianClaim):
    instances = (
        EncodedGaussian(NORM, 1.5, "signs", DIMENSION, DIMENSION),
        EncodedGaussian(NORM, 4.0, "levels", DIMENSION, DIMENSION, 2),
    )


class EncodedStudentClaim(Claim):
    """The worst neighbours are a code and its opposite, or two that share no coordinate."""

    instances = (
        EncodedStudent(NORM, 1.2, 9.0, "top-k", 1, 4),
        EncodedStudent(NORM, 1.5, 9.0, "top-k", 3, 8),
        EncodedStudent(NORM, 3.0, 30.0, "signs", DIMENSION, DIMENSION),
    )
    delta = 1e-2
    teeth = 0.4  # the best threshold lies where hardly a message does

    def halved(self, mechanism: EncodedStudent) -> EncodedStudent:
        return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)

    def noise(self, drawn: EncodedStudent, moved: np.ndarray, count: int, purpose: str) -> np.ndarray:
        return drawn.draw(count * len(moved), checks.stream(purpose)).reshape(count, len(moved))

    def distribution(self, claimed: EncodedStudent, drawn: EncodedStudent) -> None:
        event = claimed.event()
        scale = event.noise_multiplier * NORM * math.sqrt((event.degrees - 2) / event.degrees)
        noise = drawn.draw(40_000, checks.stream("student"))
        checks.follows(noise, stats.t(event.degrees, scale=scale).cdf)
        checks.follows(noise[::2] + noise[1::2], self.summed(event.degrees, scale))  # independent ones

    def summed(self, degrees: float, scale: float):
        """The distribution function of the sum of two independent variables, by quadrature."""
        law = stats.t(degrees, scale=scale)
        nodes = np.linspace(-60 * scale, 60 * scale, 6001)
        weights = law.pdf(nodes) * (nodes[1] - nodes[0])
        values = np.array([weights @ law.cdf(x - nodes) for x in nodes[::20]])
        return lambda x: np.interp(x, nodes[::20], values)

    def moments(self, claimed: EncodedStudent, drawn: EncodedStudent) -> None:
        noise = drawn.draw(60_000, checks.stream("moments"))
        checks.moments(noise, 0.0, claimed.standard_deviation**2)

    def privacy(self, claimed: EncodedStudent, drawn: EncodedStudent) -> None:
        """By draws: delta at the claimed epsilon is the mean of 1 - e^(epsilon - loss) above it."""
        stated = self.epsilon(claimed)
        for number, moved in enumerate(moves(drawn)):
            losses = loss(
                self.noise(drawn, moved, PAIRS, f"privacy {number}"), moved, drawn.degrees, drawn.scale
            )
            parts = np.maximum(0.0, -np.expm1(stated - losses))
            mean, error = parts.mean(), parts.std() / math.sqrt(PAIRS)
            assert mean <= self.delta + 5 * error, f"delta is {mean:.3g} at epsilon {stated:.3g}"

    def scores(self, drawn: EncodedStudent, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        moved = moves(drawn)[-1]  # a code and its opposite
        present, absent = (self.noise(drawn, moved, count, purpose) for purpose in ("present", "absent"))
        return tuple(loss(each, moved, drawn.degrees, drawn.scale) for each in (present, absent + moved))

    def oracle(self, claimed: EncodedStudent) -> None:
        """Two finite distributions by dp_accounting: the noise in some 4000 cells, against itself moved."""
        law = stats.t(claimed.degrees, scale=claimed.scale)
        found = []
        for moved in {tuple(moved) for moved in moves(claimed)}:
            total = None
            for step in sorted(set(moved)):
                most = law.isf(1e-9)
                ends = np.linspace(-most, most + step, 4001)
                ends[0], ends[-1] = -np.inf, np.inf
                masses = [np.log(np.diff(law.cdf(ends - at))) for at in (0.0, step)]
                one = pld.from_two_probability_mass_functions(
                    *(dict(enumerate(each)) for each in masses), value_discretization_interval=2e-5
                ).self_compose(moved.count(step))
                total = one if total is None else total.compose(one)
            found.append(total.get_epsilon_for_delta(self.delta))
        assert self.epsilon(claimed) >= max(found) - 1e-3  # they round each loss up
        assert self.epsilon(claimed) <= max(found) + 1e-2


CLAIMS = {EncodedGaussian.name: EncodedGaussianClaim(), EncodedStudent.name: EncodedStudentClaim()}
