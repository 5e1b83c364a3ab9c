"""Code books: every code is in its book, by brute force, and no code is longer than the clipping norm."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.encoded import EncodedStudent
from fedprivacy.mechanisms.encoding import Encoder

NORM = 0.7


def encoder(kind: str, dimension: int, kept: int = 2, norm: float = NORM, levels: int = 3) -> Encoder:
    kept = kept if kind == "top-k" else dimension
    return Encoder(kind, norm, kept, dimension, levels if kind == "levels" else 0)


def book(made: Encoder) -> set[tuple[int, ...]]:
    """Every code that there may be, in whole multiples of the size, or of the step."""
    if made.ternary:
        all_codes = itertools.product((-1, 0, 1), repeat=made.dimension)
        return {code for code in all_codes if sum(map(abs, code)) <= made.coordinates}
    most = made.levels**2 * made.dimension
    reach = range(-math.isqrt(most), math.isqrt(most) + 1)
    return {
        code for code in itertools.product(reach, repeat=made.dimension) if sum(x * x for x in code) <= most
    }


def updates(dimension: int, count: int = 2000) -> torch.Tensor:
    """Long and short ones, with zeros and equal coordinates among them, clipped."""
    stream = np.random.default_rng(dimension)
    drawn = stream.normal(size=(count, dimension)) * stream.choice([0.01, 0.3, 5.0], (count, 1))
    drawn *= stream.random((count, dimension)) < 0.8
    drawn[::3] = np.round(drawn[::3], 1)
    drawn[0] = 0.0
    return clip(torch.from_numpy(drawn.astype(np.float32)), NORM)[0]


@pytest.mark.parametrize("kind", ["signs", "top-k", "levels"])
@pytest.mark.parametrize("dimension", [2, 4])
def test_every_code_is_in_the_book_and_the_book_keeps_its_bounds(kind: str, dimension: int) -> None:
    made = encoder(kind, dimension)
    unit = made.size if made.ternary else made.step
    codes = made.encode(updates(dimension)).numpy()
    whole = np.rint(codes / unit)
    assert np.array_equal(whole * unit, codes)
    known = book(made)
    found = {tuple(map(int, code)) for code in whole}
    assert found <= known
    assert len(found) > len(known) / 10
    lengths = [math.sqrt(sum(x * x for x in code)) * unit for code in known]
    assert max(lengths) <= NORM * (1 + 1e-12)
    # Two codes: the number of coordinates that move by one size, and by two, as the account has it.
    if made.ternary:
        for one, other in itertools.product(known, repeat=2):
            moved = [abs(x - y) for x, y in zip(one, other, strict=True)]
            assert max(moved) <= 2
            assert moved.count(1) <= 2 * (made.coordinates - moved.count(2))


@given(st.floats(1e-9, 1e9), st.integers(1, 10**6))
def test_no_ternary_code_is_longer_than_the_norm_whatever_the_rounding(norm: float, kept: int) -> None:
    size = Encoder("top-k", norm, kept, 10**6).size
    assert kept * Fraction(size) ** 2 <= Fraction(norm) ** 2
    assert size * math.sqrt(kept) >= norm * (1 - 1e-14)


def test_levels_never_make_a_coordinate_longer() -> None:
    made = encoder("levels", 7, levels=5)
    steps = torch.arange(1, 15, dtype=torch.float64) * made.step
    near = torch.cat([steps, torch.nextafter(steps, steps * 0), -torch.nextafter(steps, steps * 2)])
    given_ = near.reshape(-1, 7)
    codes = made.encode(given_)
    assert bool((codes.abs() <= given_.abs()).all())
    assert bool((given_.abs() - codes.abs() < made.step * (1 + 1e-12)).all())
    assert bool((codes * given_ >= 0).all())


def test_what_a_code_is() -> None:
    update = torch.tensor([[0.3, -0.3, 0.0, -0.1, 0.3]], dtype=torch.float64)
    signs = encoder("signs", 5)
    assert np.allclose(signs.encode(update)[0], np.array([1, -1, 0, -1, 1]) * NORM / math.sqrt(5))
    kept = encoder("top-k", 5)  # of equal ones the first
    assert np.allclose(kept.encode(update)[0], np.array([1, -1, 0, 0, 0]) * NORM / math.sqrt(2))
    few = kept.encode(torch.tensor([[0.0, 0.2, 0.0, 0.0, 0.0]], dtype=torch.float64))
    assert np.count_nonzero(few) == 1
    for kind in ("signs", "top-k", "levels"):
        assert not encoder(kind, 5).encode(torch.zeros((2, 5), dtype=torch.float64)).any()


@pytest.mark.parametrize("kind", ["signs", "top-k", "levels"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 6), (5,)])
def test_updates_of_another_dimension_have_no_code(kind: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"must have shape \(clients, 5\)"):
        encoder(kind, 5).encode(torch.ones(shape, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["signs", "top-k", "levels"])
def test_a_code_hangs_on_its_own_update_alone(kind: str) -> None:
    made, several = encoder(kind, 6), updates(6, 50)
    alone = torch.cat([made.encode(row[None]) for row in several])
    assert torch.equal(made.encode(several), alone)


@pytest.mark.parametrize(
    "values",
    [("stars", 1.0, 3, 3, 0), ("signs", 1.0, 2, 3, 0), ("top-k", 1.0, 4, 3, 0), ("levels", 1.0, 3, 3, 0)],
)
def test_what_is_no_code_book_is_refused(values: tuple) -> None:
    with pytest.raises(InputError, match="encoding"):
        Encoder(*values)


def test_student_t_noise_that_is_none_is_refused() -> None:
    for degrees in (2.0, 1001.0):
        with pytest.raises(InputError, match="degrees"):
            EncodedStudent(1.0, 1.0, degrees, "signs", 3, 3)
    with pytest.raises(InputError, match="encoding"):
        EncodedStudent(1.0, 1.0, 9.0, "levels", 3, 3)
