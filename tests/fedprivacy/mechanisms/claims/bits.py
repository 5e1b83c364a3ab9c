"""The claim of randomised response."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from claims import checks
from claims.claim import Claim
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.bits import RandomizedResponse


def answers(mechanism: RandomizedResponse, value: float, count: int, purpose: str) -> np.ndarray:
    """Answers of clients who all hold the same bit, or the same number."""
    draw = mechanism.draw if value in (0, 1) else mechanism.draw_numbers
    values = np.full(count, value, dtype=int if value in (0, 1) else float)
    return draw(values, checks.stream(f"{purpose} {value}"))


def probabilities(mechanism: RandomizedResponse, value: float) -> np.ndarray:
    """Of the answers 0 and 1."""
    one = mechanism.flip * (1 - value) + (1 - mechanism.flip) * value
    return np.array([1 - one, one])


class RandomizedResponseClaim(Claim):
    instances = tuple(RandomizedResponse(each) for each in (0.1, 1.0, 4.0))
    draws = 60_000

    def halved(self, mechanism: RandomizedResponse) -> RandomizedResponse:
        return replace(mechanism, epsilon=2 * mechanism.epsilon)

    def distribution(self, claimed: RandomizedResponse, drawn: RandomizedResponse) -> None:
        for value in (0, 1, 0.0, 0.3, 1.0):
            counts = np.bincount(answers(drawn, value, 200_000, "distribution"), minlength=2)
            checks.fits(counts, probabilities(claimed, value))

    def moments(self, claimed: RandomizedResponse, drawn: RandomizedResponse) -> None:
        clients, trials = 50, 20_000
        people = checks.stream("people").random((trials, clients))
        for mean in (0.0, 0.2, 0.5):
            bits = people < mean
            told = drawn.draw(bits, checks.stream(f"told {mean}"))
            estimates = np.array([claimed.estimate(int(ones), clients) for ones in told.sum(axis=1)])
            checks.moments(estimates, mean, claimed.variance(clients, mean))
            checks.moments(estimates - bits.mean(axis=1), 0.0, claimed.given_variance(clients))
            told = drawn.draw_numbers(np.full(bits.shape, mean), checks.stream(f"numbers {mean}"))
            estimates = np.array([claimed.estimate(int(ones), clients) for ones in told.sum(axis=1)])
            checks.moments(estimates, mean, claimed.variance(clients, mean))

    def privacy(self, claimed: RandomizedResponse, drawn: RandomizedResponse) -> None:
        checks.loss(probabilities(drawn, 0), probabilities(drawn, 1), self.epsilon(claimed))

    def scores(self, drawn: RandomizedResponse, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        one, zero = (answers(drawn, bit, count, "audit").astype(float) for bit in (1, 0))
        return one, zero

    def oracle(self, claimed: RandomizedResponse) -> None:
        """dp_accounting's own event for it, with a truth of probability 1 - p/2."""
        import dp_accounting

        theirs = dp_accounting.RandomizedResponseDpEvent(2 * claimed.flip, 2)
        assert abs(epsilon(theirs, 0.0, "replace-one").epsilon - claimed.epsilon) < 1e-9


CLAIMS = {RandomizedResponse.name: RandomizedResponseClaim()}
