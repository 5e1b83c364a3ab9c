"""The lectures' formulas for noise, to compare with: each with the range in which it is proved."""

from __future__ import annotations

import math

from fedprivacy.errors import InputError


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
