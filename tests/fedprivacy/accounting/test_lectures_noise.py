"""The lectures' formulas within their proofs and beyond."""

from __future__ import annotations

import math

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.accounting.lectures_noise import lectures_dp_sgd_noise, lectures_gaussian_noise
from fedprivacy.errors import InputError
from fedprivacy.sampling.batches import ReplacementBatches

DELTA = 1e-5


def test_the_lectures_formula_within_its_proof_wastes_noise_and_beyond_it_is_refused() -> None:
    assert lectures_gaussian_noise(1.0, DELTA) == pytest.approx(4.8448, abs=1e-4)
    for target in (0.1, 0.5, 1.0):
        lectures = lectures_gaussian_noise(target, DELTA)
        assert lectures > noise_multiplier(dp.GaussianDpEvent, target, DELTA, "add-remove")
        assert epsilon(dp.GaussianDpEvent(lectures), DELTA, "add-remove").epsilon <= target
    with pytest.raises(InputError, match="epsilon <= 1"):
        lectures_gaussian_noise(8.0, DELTA)
    with pytest.raises(InputError, match="delta"):
        lectures_gaussian_noise(1.0, 0.0)


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("target", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
@pytest.mark.parametrize("records", [100, 1000, 10_000])
def test_the_lectures_dp_sgd_noise_costs_less_than_it_says(records: int, delta: float, target: float) -> None:
    least = math.ceil((records * target) ** 2 / (32 * math.log(2 / delta)))
    for steps in (least, 30 * least, records**2):
        noise = lectures_dp_sgd_noise(target, delta, records, steps)
        event = ReplacementBatches(steps, 1).event(dp.GaussianDpEvent(noise), records)
        assert epsilon(event, delta, "replace-one").epsilon < target / 2


def test_the_lectures_dp_sgd_noise_is_refused_where_it_is_false() -> None:
    n, steps, delta = 1000, 5000, 1e-6
    expected = 16 * math.sqrt(steps * math.log(2 / delta) * math.log(2.5 * steps / (delta * n))) / (n * 0.5)
    assert lectures_dp_sgd_noise(0.5, delta, n, steps) == pytest.approx(expected)
    with pytest.raises(InputError, match=r"at least n\^2 epsilon\^2/\(32 ln\(2/delta\)\) = 256021 steps"):
        lectures_dp_sgd_noise(1.0, DELTA, 10_000, 1)
    # What the formula would say there: the one record that is drawn is plain to see.
    noise = 16 * math.sqrt(math.log(2 / DELTA) * math.log(2.5 / (DELTA * 10_000))) / 10_000
    event = ReplacementBatches(1, 1).event(dp.GaussianDpEvent(noise), 10_000)
    assert epsilon(event, DELTA, "replace-one").epsilon > 1000
    # Nor is that the looseness of an accountant: no other record is within 1 of this one with noise 0.01.
    seen = (1 - math.exp(1.0) * math.erfc(1 / noise / math.sqrt(2))) / 10_000
    assert seen > 9 * DELTA
    for wrong in ((2.0, DELTA, n, steps), (0.5, 0.0, n, steps), (0.5, delta, 0, steps), (0.5, 0.5, 100, 1)):
        with pytest.raises(InputError):
            lectures_dp_sgd_noise(*wrong)
