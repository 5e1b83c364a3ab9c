from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.forecast.design_effect import design_effect


def test_records_of_a_client_that_are_alike_count_as_few() -> None:
    sizes = np.full(40, 10)
    alike = np.repeat(np.arange(40) % 2 == 0, 10)
    assert design_effect(alike, sizes) == pytest.approx(10, rel=0.15)
    independent = np.random.default_rng(1).random(400) < 0.7
    assert design_effect(independent, sizes) < 2
    assert design_effect(alike[:50], sizes[:5]) > design_effect(alike, sizes)  # few clients


def test_one_record_a_client_is_independent() -> None:
    assert design_effect(np.array([True, False, True]), np.ones(3, dtype=np.int64)) == 1.0
    assert design_effect(np.ones(9, dtype=bool), np.array([4, 5])) == 1.0
