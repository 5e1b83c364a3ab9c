"""Integers of b bits as bytes: nothing is lost and no bit is spare."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from fedprivacy.secure_sum.packing import BLOCK, pack, packed_size, unpack


@pytest.mark.parametrize("bits", [2, 7, 8, 13, 16, 28])
@pytest.mark.parametrize("dimension", [1, 7, 1000, BLOCK, BLOCK + 3])
def test_unpacking_gives_the_lower_bits_back(bits: int, dimension: int) -> None:
    words = np.frombuffer(secrets.token_bytes(4 * dimension), "<u4").astype(np.uint32)
    packed = pack(words, bits)
    assert len(packed) == packed_size(dimension, bits) == -(-dimension * bits // 8)
    np.testing.assert_array_equal(unpack(packed, dimension, bits), words % 2**bits)


def test_bits_stand_in_order() -> None:
    assert pack(np.array([1, 2, 3, 0x1F], np.uint32), 5) == bytes([0b00001_000, 0b10_00011_1, 0b1111_0000])


@pytest.mark.parametrize("change", [-1, 1])
def test_another_length_is_refused(change: int) -> None:
    with pytest.raises(ValueError, match="not 125"):
        unpack(bytes(125 + change), 100, 10)
