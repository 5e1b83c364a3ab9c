"""From (epsilon, delta) to noise: the smallest noise multiplier whose event costs at most epsilon.

The search evaluates the same `epsilon` function that later writes the guarantee, and rounds up, so that a
calibrated run never costs more than its target.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dp_accounting import dp_event as dp

from fedprivacy.accounting import epsilon as accounting
from fedprivacy.accounting.events import MAX_NOISE, MIN_NOISE
from fedprivacy.errors import InputError

_START = 32.0  # much noise, where privacy loss distributions are small and quick to compose
_MOST = math.log(MAX_NOISE) - 1e-9  # its exponential is not above MAX_NOISE
_TOLERANCE = 5e-5  # relative, in the noise multiplier
_EXACT_TOLERANCE = 1e-10  # where an evaluation costs microseconds


def noise_multiplier(
    make_event: Callable[[float], dp.DpEvent], epsilon: float, delta: float, adjacency: str
) -> float:
    """The smallest noise multiplier for which `make_event(noise_multiplier)` costs at most epsilon.

    Args:
        make_event: Noise standard deviation / C -> what will be released. Its epsilon falls with noise.
        epsilon: Above 0.
        delta: In (0, 1).
        adjacency: "replace-one", "add-remove" or "zero-out".

    Returns:
        z with epsilon(make_event(z)) <= epsilon, at most 1e-4 of itself above the smallest such z
        (1e-9 for unsampled Gaussian noise and randomized response on bits).

    Raises:
        InputError: A value is out of range, or no noise from 1e-4 to 1e7 gives this epsilon.
        UnsupportedEvent: No accountant answers for the event.

    >>> round(noise_multiplier(dp.GaussianDpEvent, 1.0, 1e-5, "add-remove"), 3)
    3.731
    """
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon = {epsilon}: must be a finite number above 0.")

    def spend(log_noise: float) -> accounting.Accounted:
        return accounting.epsilon(make_event(math.exp(log_noise)), delta, adjacency)

    low, high = _bracket(lambda log_noise: spend(log_noise).epsilon, epsilon)
    exact = spend(high).accountant in ("analytic Gaussian", "optimal composition")
    # scipy.optimize, which these need, takes a moment to import.
    from dp_accounting.mechanism_calibration import ExplicitBracketInterval, calibrate_dp_mechanism

    root = calibrate_dp_mechanism(
        lambda: _EventAccountant(adjacency),
        lambda log_noise: make_event(math.exp(log_noise)),
        epsilon,
        delta,
        ExplicitBracketInterval(low, high),
        tol=_EXACT_TOLERANCE if exact else _TOLERANCE,
    )
    return math.exp(root)


class _EventAccountant:
    """Adapts our accountants to the interface that `calibrate_dp_mechanism` expects."""

    ledger = dp.NoOpDpEvent()

    def __init__(self, adjacency: str) -> None:
        self.adjacency = adjacency

    def compose(self, event: dp.DpEvent) -> _EventAccountant:
        self.event = event
        return self

    def get_epsilon(self, delta: float) -> float:
        # Brent's method interpolates: infinity would spoil it, any huge number does not.
        return min(accounting.epsilon(self.event, delta, self.adjacency).epsilon, 1e12)


def _bracket(cost: Callable[[float], float], target: float) -> tuple[float, float]:
    """Two logarithms of noise, neighbours of the answer: cost(low) > target >= cost(high).

    Comes down from much noise, since an evaluation at little noise is slow. log epsilon is nearly a
    line in log noise, so each step follows that line, by a factor between 1.25 and 4.
    """
    high = math.log(_START)
    cost_high = cost(high)
    while cost_high > target:
        if high >= _MOST:
            raise InputError(
                f"epsilon = {target:g} cannot be reached by any noise: something else in the run "
                "already costs more, or has no noise at all."
            )
        high = min(high + math.log(4), _MOST)
        cost_high = cost(high)
    slope = -1.0
    while True:
        wanted = math.log(target / cost_high) / -slope if cost_high > 0 else math.inf
        low = high - min(max(1.05 * wanted, math.log(1.25)), math.log(4))
        if low < math.log(MIN_NOISE):
            raise InputError(
                f"epsilon = {target:g} requires less noise than {MIN_NOISE:g} times the clipping norm: "
                'choose a smaller epsilon, or trust = "none".'
            )
        cost_low = cost(low)
        if cost_low > target:
            return low, high
        if 0 < cost_high < cost_low:
            slope = min(math.log(cost_low / cost_high) / (low - high), -0.5)
        high, cost_high = low, cost_low


def lectures_gaussian_noise(epsilon: float, delta: float) -> float:
    """The textbook noise sqrt(2 ln(1.25/delta))/epsilon, in units of the L2 sensitivity: to compare only.

    Dwork and Roth 2014, Theorem A.1, whose proof needs epsilon <= 1; beyond, it gives too little noise.

    Raises:
        InputError: epsilon is not in (0, 1], or delta not in (0, 1).
    """
    _check_lectures(epsilon, delta)
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def lectures_dp_sgd_noise(epsilon: float, delta: float, records: int, steps: int) -> float:
    """The lectures' noise of single-example DP-SGD, in units of the clipping norm C: to compare only.

        sigma = 16 l sqrt(T ln(2/delta) ln(2.5 T/(delta n))) / (n epsilon)

    Each of T steps takes the gradient of one example, drawn uniformly with replacement from n, of norm at
    most l (the Lipschitz constant of its loss, or C where gradients are clipped), and adds Gaussian noise of
    standard deviation sigma in each coordinate to that one gradient. So sigma/l is our noise multiplier, at
    batch size 1. Bassily, Smith and Thakurta 2014 (Algorithm 1, T = n^2) step along n times the gradient
    and add n times such noise.

    It holds under replace-one, and so under zero-out, not under add-remove: n is public. The proof: a step
    with noise for (e, d), Dwork and Roth 2014, Theorem A.1 at sensitivity 2 l and e <= 1, costs
    (2e/n, d/n) since its example is secret; T of them cost epsilon = (4e/n) sqrt(2 T ln(2/delta)) by
    advanced composition, with half of delta for the steps. The condition e <= 1 is

        T >= n^2 epsilon^2/(32 ln(2/delta)).

    Where steps are fewer the formula is false, and by much: at T = 1, n = 10,000, epsilon = 1, delta = 1e-5
    it requires a noise of 0.01 C, which reveals the drawn example, and each example is drawn with probability
    10 delta.

    Args:
        epsilon: In (0, 1].
        delta: In (0, 1).
        records: n, at least 1.
        steps: T, at least n^2 epsilon^2/(32 ln(2/delta)).

    Raises:
        InputError: A value is out of the range of the proof.
    """
    _check_lectures(epsilon, delta)
    if records < 1 or steps < 1:
        raise InputError(f"{records} records, {steps} steps: must be at least 1.")
    least = math.ceil((records * epsilon) ** 2 / (32 * math.log(2 / delta)))
    if steps < least:
        raise InputError(
            f"{steps} steps: the lectures' formula is proved for at least n^2 epsilon^2/(32 ln(2/delta)) = "
            f"{least} steps, and gives too little noise for few; use the accountant's noise."
        )
    if delta * records >= 2 * steps:
        raise InputError(f"delta = {delta}: must be below 2 steps/records = {2 * steps / records:.3g}.")
    logarithms = math.log(2 / delta) * math.log(2.5 * steps / (delta * records))
    return 16 * math.sqrt(steps * logarithms) / (records * epsilon)


def _check_lectures(epsilon: float, delta: float) -> None:
    if not 0 < epsilon <= 1:
        raise InputError(
            f"epsilon = {epsilon}: the lectures' formula is proved for 0 < epsilon <= 1 only; "
            "use the analytic calibration."
        )
    if not 0 < delta < 1:
        raise InputError(f"delta = {delta}: must lie between 0 and 1.")
