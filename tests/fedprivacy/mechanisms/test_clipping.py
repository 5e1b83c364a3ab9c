from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedprivacy.mechanisms.clipping import clip

ANY_FLOAT32 = hnp.arrays(
    np.float32,
    (3, 4),
    elements=st.floats(width=32, allow_nan=True, allow_infinity=True, allow_subnormal=True),
)


@settings(max_examples=300, deadline=None)
@given(updates=ANY_FLOAT32, norm=st.floats(1e-3, 1e3))
def test_no_update_whatever_it_holds_leaves_with_more_than_the_norm(updates: np.ndarray, norm: float) -> None:
    clipped, broken = clip(torch.from_numpy(updates), norm)
    assert torch.isfinite(clipped).all()
    assert (torch.linalg.vector_norm(clipped, dim=1) <= norm * (1 + 1e-12)).all()
    assert torch.equal(broken, torch.from_numpy(~np.isfinite(updates).all(axis=1)))
    assert (clipped[broken] == 0).all()


def test_small_updates_and_zeros_pass_unchanged_and_directions_are_kept() -> None:
    updates = torch.tensor([[0.3, 0.4], [0.0, 0.0], [3.0, 4.0]])
    clipped, broken = clip(updates, 1.0)
    assert torch.allclose(clipped, torch.tensor([[0.3, 0.4], [0.0, 0.0], [0.6, 0.8]], dtype=torch.float64))
    assert not broken.any()


def test_the_largest_float32_does_not_overflow_the_norm() -> None:
    huge = torch.full((1, 4), torch.finfo(torch.float32).max)
    assert torch.allclose(clip(huge, 1.0)[0], torch.full((1, 4), 0.5, dtype=torch.float64))


def test_without_a_norm_only_broken_updates_change() -> None:
    updates = torch.tensor([[100.0, 0.0], [float("nan"), 1.0]])
    clipped, broken = clip(updates, None)
    assert clipped.tolist() == [[100.0, 0.0], [0.0, 0.0]]
    assert broken.tolist() == [False, True]
