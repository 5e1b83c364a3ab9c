"""Masks: keystreams of AES, which cancel in the sum and hide all else."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fedprivacy.secure_sum.masks import add_shared, keystream, reduce_words


def test_a_keystream_is_aes_of_a_counter_from_zero() -> None:
    key = bytes(range(32))
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = encryptor.update(b"".join(counter.to_bytes(16, "big") for counter in range(3)))
    assert keystream(key, 11).tolist() == np.frombuffer(blocks, "<u4")[:11].tolist()


@pytest.mark.parametrize("clients", [2, 3, 4])
def test_masked_messages_are_exactly_uniform_given_their_sum(clients: int) -> None:
    """All masks of a ring of 4 elements: each messages with the right sum come up equally often."""
    pairs = list(combinations(range(clients), 2))
    inputs = np.arange(1, clients + 1, dtype=np.uint32)
    counts: Counter[tuple[int, ...]] = Counter()
    for masks in product(range(4), repeat=len(pairs)):
        words = inputs.copy()
        for (first, second), mask in zip(pairs, masks, strict=True):
            mask_word = np.array([mask], np.uint32)
            add_shared(words[first : first + 1], first, second, mask_word)
            add_shared(words[second : second + 1], second, first, mask_word)
        counts[tuple(reduce_words(words, 2).tolist())] += 1
    assert all(sum(each) % 4 == inputs.sum() % 4 for each in counts)
    assert len(counts) == 4 ** (clients - 1)
    assert set(counts.values()) == {4 ** (len(pairs) - clients + 1)}
