"""The Hadamard matrix as it is drawn from and counted with, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from fedprivacy.mechanisms.categories import HadamardResponse
from fedprivacy.mechanisms.hadamard import parity, walsh_hadamard


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_entries_and_transform_are_those_of_the_matrix(size: int) -> None:
    matrix = hadamard(size)
    rows, columns = np.indices((size, size), dtype=np.int32)
    assert (1 - 2 * parity(rows & columns) == matrix).all()
    vector = np.random.default_rng(1).integers(-100, 100, size)
    assert (walsh_hadamard(vector) == matrix @ vector).all()
    assert walsh_hadamard(vector).dtype == vector.dtype


def test_parity_counts_every_bit_of_a_number() -> None:
    numbers = np.random.default_rng(1).integers(0, 2**31 - 1, 1000).astype(np.int32)
    assert parity(numbers).tolist() == [number.bit_count() % 2 for number in numbers.tolist()]


def test_support_is_how_many_reports_agree_with_a_column() -> None:
    oracle = HadamardResponse(6, 1.0)
    reports = np.arange(2 * oracle.size, dtype=np.int32).repeat(np.arange(2 * oracle.size))
    rows, told = reports // 2, reports % 2
    agree = (hadamard(8)[rows] < 0) == told[:, None]
    assert oracle.support(reports).tolist() == agree.sum(axis=0)[:6].tolist()
