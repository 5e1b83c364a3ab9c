"""Accounts for objective perturbation: the privacy loss of its density in closed form.

In sums: theta(b) minimises sum_i phi(x_i.theta, y_i) + (Lambda/2)||theta||^2 + b.theta with Lambda = m
lambda. At the *exact* minimum b(theta; D) = -(sum_i phi'_i x_i + Lambda theta) is one-to-one and Lipschitz
both ways, so that theta has the density nu(b(theta; D)) det(H(theta; D) + Lambda I), H the Hessian of the sum
(almost everywhere, which covers losses whose phi'' has jumps). Two neighbours differ in two factors, at each
theta:

- the determinant: phi'' x x' is of rank one, so that adding a record multiplies it by 1 + a, 0 <= a <=
  beta/Lambda, and replacing one by (1 + a)/(1 + a'). Either way at most ln(1 + beta/Lambda) of privacy loss
  (Chaudhuri et al. 2011 charge twice that for replace-one);
- the density of b, which moves by the vector g, the change of the sum of gradients, of norm at most G = L, or
  2 L.

With nu(b) proportional to exp(-||b||/s) the second costs G/s at most. With nu = N(0, sigma^2 I) it costs
b.g/sigma^2 + ||g||^2/(2 sigma^2), where g depends on b through theta, but lies on the fixed line of x (or in
the plane of x and x'): |b.g| <= G sigma R, where R is the norm of a standard normal vector in that line (or
plane). So

    delta(epsilon) <= E (1 - exp(epsilon' - mu R - mu^2/2))_+

with mu = G/sigma and epsilon' = epsilon - ln(1 + beta/Lambda). On the line that is twice the delta of a
Gaussian release (compare Redberg, Koskela and Wang 2023). Kifer, Smith and Thakurta 2012 have sigma =
L sqrt(8 ln(2/delta) + 4 epsilon)/epsilon, which is more.
"""

from __future__ import annotations

import math

import scipy
from scipy.special import log_ndtr

from fedprivacy.accounting.gaussian import gaussian_delta
from fedprivacy.errors import InputError

_LEAST_LOG, _MOST_LOG = math.log(1e-12), math.log(1e4)


def tilted_delta(epsilon: float, mu: float, directions: int) -> float:
    """delta at `epsilon`, which is what the determinant has left, of a linear term of Gaussian noise.

    Args:
        epsilon: epsilon', at least 0.
        mu: G/sigma, above 0.
        directions: 1 where the change of the gradient lies on a known line, 2 in a known plane.
    """
    start = epsilon / mu - mu / 2  # R beyond which the loss exceeds epsilon', if positive
    if start >= 0 and directions == 1:
        return 2 * gaussian_delta(epsilon, mu)
    # e^epsilon' exp(-mu r - mu^2/2) times the density at r is that at r + mu; in logarithms, for large
    # epsilon'.
    beyond = math.exp(epsilon + float(log_ndtr(-max(start, 0.0) - mu)))
    if directions == 1:
        return 1 - 2 * beyond
    plane = mu * math.sqrt(2 * math.pi) * beyond
    return plane if start >= 0 else 1 - math.exp(epsilon - mu**2 / 2) + plane


def tilted_mu(epsilon: float, delta: float, directions: int) -> float:
    """The largest mu, rounded down, with `tilted_delta` at most delta.

    Raises:
        InputError: No noise gives this delta.
    """

    def excess(log_mu: float) -> float:
        estimate = tilted_delta(epsilon, math.exp(log_mu), directions)
        return (math.log(estimate) if estimate > 0 else -1e3) - math.log(delta)

    if excess(_LEAST_LOG) > 0:
        raise InputError(
            f"epsilon = {epsilon:g} at delta = {delta:g}: no noise is enough; take a larger delta."
        )
    root = scipy.optimize.brentq(excess, _LEAST_LOG, _MOST_LOG, xtol=1e-12)
    mu = math.exp(root)
    # As much below delta as rounding may have left of it.
    while tilted_delta(epsilon, mu, directions) > delta * (1 - 1e-8):
        mu *= 1 - 1e-9
    return mu
