"""The scattering transform, against numbers of another implementation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import torch

from fedprivacy.models import scattering
from fedprivacy.models.partial_training import frozen_part
from fedprivacy.models.scattering import Scattering

# By kymatio 0.3.0 (`ScatteringTorch2D(J=2, shape=(side, side))`) on the image of `image`: a channel, its sum, and
# its value in row 0, column 1.
KYMATIO = {
    8: [
        *((0, 1.75134, 0.453045), (1, 0.26875, 0.075676), (6, 0.21498, 0.055114), (9, 0.09068, 0.02567)),
        *((16, 0.10943, 0.033056), (17, 0.02053, 0.004927), (30, 0.0194, 0.006962), (52, 0.0244, 0.004367)),
        (80, 0.0164, 0.006239),
    ],
    11: [
        *((0, 1.83147, 0.479498), (1, 0.22022, 0.05169), (6, 0.21481, 0.054094), (9, 0.14644, 0.025731)),
        *((16, 0.15067, 0.035536), (17, 0.01433, 0.004166), (30, 0.01074, 0.002424), (52, 0.0257, 0.005456)),
        (80, 0.02798, 0.006809),
    ],
    28: [
        *((0, 24.24076, 0.57827), (1, 2.87851, 0.057484), (6, 3.02569, 0.068802), (9, 1.29077, 0.02791)),
        *((16, 1.41524, 0.042109), (17, 0.24099, 0.007266), (30, 0.17169, 0.005771), (52, 0.34178, 0.009703)),
        (80, 0.34526, 0.005177),
    ],
}


def image(side: int) -> torch.Tensor:
    number = torch.arange(side * side).reshape(1, 1, side, side)
    return ((137 * number**2 + 3100 * number) % 10007).float() / 10007


@pytest.mark.parametrize("side", KYMATIO)
def test_the_coefficients_are_those_of_kymatio(side: int) -> None:
    coefficients = Scattering(side)(image(side))
    assert coefficients.shape == (1, 81, side // 4, side // 4)
    for channel, total, value in KYMATIO[side]:
        assert float(coefficients[0, channel].sum()) == pytest.approx(total, rel=1e-3)
        assert float(coefficients[0, channel, 0, 1]) == pytest.approx(value, rel=1e-3)


def test_another_fourier_transform_gives_the_same_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, signs of zeros included, since the plan has their digest."""
    sides = (8, 28, 32)
    digests = [frozen_part(Scattering(side)).digest for side in sides]
    for name in ("fft", "ifft", "fft2"):
        monkeypatch.setattr(np.fft, name, getattr(scipy.fft, name))
    scattering._filters.cache_clear()
    assert [frozen_part(Scattering(side)).digest for side in sides] == digests
    scattering._filters.cache_clear()


def test_an_even_surface_has_no_edges() -> None:
    coefficients = Scattering(12)(torch.full((1, 1, 12, 12), 0.7))
    torch.testing.assert_close(coefficients[:, 0], torch.full((1, 3, 3), 0.7))
    assert float(coefficients[:, 1:].abs().max()) < 1e-5


def test_a_striped_image_answers_in_the_direction_of_its_stripes() -> None:
    stripes = torch.arange(28).remainder(4).lt(2).float().expand(1, 1, 28, 28)
    fine = Scattering(28)(torch.cat([stripes, stripes.mT]))[:, 1:9].mean((2, 3))
    across, along = (int(channel) for channel in fine.argmax(dim=1))
    assert abs(across - along) == 4  # of eight directions in half a turn


def test_each_colour_is_filtered_by_itself() -> None:
    colours = torch.from_numpy(np.random.default_rng(0).random((2, 3, 9, 9), np.float32))
    transform = Scattering(9)
    apart = torch.cat([transform(colours[:, [colour]]) for colour in range(3)], dim=1)
    torch.testing.assert_close(transform(colours), apart)


def test_more_images_than_a_block_are_each_transformed() -> None:
    images = torch.rand(70, 1, 8, 8)
    transform = Scattering(8)
    torch.testing.assert_close(transform(images)[69:], transform(images[69:]))


def test_sizes_alone_need_no_filters() -> None:
    with torch.device("meta"):
        sizes = Scattering(28)
    shapes = {name: value.shape for name, value in sizes.named_buffers()}
    assert all(value.is_meta for value in sizes.buffers())
    assert shapes == {name: value.shape for name, value in Scattering(28).named_buffers()}
