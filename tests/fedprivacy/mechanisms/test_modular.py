"""Residues of integers: sums commute with reduction, and small integers come back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedprivacy.mechanisms.modular import LEAST_BITS, MOST_BITS, ModularSum, centre, reduce_modulo

BITS = st.integers(LEAST_BITS, MOST_BITS)
INTEGERS = st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=6)


@given(INTEGERS, BITS)
def test_the_sum_of_residues_is_the_residue_of_the_sum(values: list[int], bits: int) -> None:
    messages = [reduce_modulo(np.array([value]), bits) for value in values]
    assert all(0 <= message[0] < 2**bits for message in messages)
    running = ModularSum(1, bits)
    for message in messages:
        running.add(message)
    assert running.total[0] == sum(values) % 2**bits


@given(BITS, st.data())
def test_integers_within_the_modulus_come_back(bits: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    assert centre(reduce_modulo(np.array([value]), bits), bits)[0] == value


def test_the_next_integer_wraps() -> None:
    assert centre(reduce_modulo(np.array([127, 128, -129]), 8), 8).tolist() == [127, -128, 127]
