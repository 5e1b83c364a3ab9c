"""The wavelet scattering transform of images (Bruna and Mallat 2013), features that no data chose.

Morlet wavelets filter an image in `ORIENTATIONS` directions at `SCALES` scales; those of the larger scale
filter the moduli of the smaller one again; and all is averaged locally. Means, edges and pairs of edges
remain: 81 channels of a quarter of the image's side. The filters are those of the package kymatio (Andreux et
al. 2020) up to rounding: ours lie on a grid, so that every Fourier transform gives the same digest. Its
documented import fails with scipy 1.17, and it takes thirty times as long for one image by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.data.images import GRID, ORIENTATIONS, PADDING, SCALES, STRIDE

_BLOCK = 64  # images
Array = NDArray[np.float64]


class Scattering(nn.Module):
    """From square images, (batch, colours, side, side), to coefficients, (batch, 81 colours, out, out).

    Args:
        side: The side of the images, at least `SMALLEST` (`data.images`); `out` is its quarter, rounded down.
    """

    fine: Tensor
    coarse: Tensor
    average: Tensor
    average_coarse: Tensor

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side, padded = side, (side // STRIDE + 2) * STRIDE
        before = (padded - side) // 2
        self.padding = (before, padded - side - before) * 2
        for name, shape in _shapes(padded).items():
            # On the device "meta" the sizes alone matter.
            meta = torch.get_default_device().type == "meta"
            value = torch.empty(shape) if meta else torch.from_numpy(_filters(padded)[name]).float()
            self.register_buffer(name, value)

    def extra_repr(self) -> str:
        return f"side={self.side}, padding={PADDING}"

    def forward(self, images: Tensor) -> Tensor:
        # One image takes up to 3 MB on the way, at 28 x 28 pixels.
        return torch.cat([self._coefficients(block) for block in images.split(_BLOCK)])

    def _coefficients(self, images: Tensor) -> Tensor:
        padded = nn.functional.pad(images, self.padding, mode=PADDING)
        spectrum = torch.fft.fft2(padded)[:, :, None]
        first = torch.fft.ifft2(spectrum * self.fine).abs()
        first_coarse = _halved(spectrum * self.coarse).abs()
        second = _halved(torch.fft.fft2(first)[:, :, :, None] * self.coarse).abs().flatten(2, 3)
        parts = [
            _averaged(padded[:, :, None], self.average),
            _averaged(first, self.average),
            _averaged(first_coarse, self.average_coarse),
            _averaged(second, self.average_coarse),
        ]
        return torch.cat(parts, dim=2).flatten(1, 2)


def _shapes(padded: int) -> dict[str, tuple[int, ...]]:
    wavelets, outputs = (ORIENTATIONS, padded, padded), padded // STRIDE - 2
    return {
        "fine": wavelets,
        "coarse": wavelets,
        "average": (outputs, padded),
        "average_coarse": (outputs, padded // 2),
    }


@lru_cache(maxsize=2)
def _filters(padded: int) -> Mapping[str, Array]:
    turns = range(ORIENTATIONS)
    filters = {
        "fine": np.stack([_wavelet(padded, 0, turn) for turn in turns]),
        "coarse": np.stack([_wavelet(padded, 1, turn) for turn in turns]),
        "average": _average(padded, 0),
        "average_coarse": _average(padded, 1),
    }
    # Without the negative zeros, which have other bits.
    return {name: np.round(values / GRID) * GRID + 0.0 for name, values in filters.items()}


def _halved(spectrum: Tensor) -> Tensor:
    """Every second value, each way, of the signal with a spectrum: the spectrum's halves are averaged."""
    half = spectrum.shape[-1] // 2
    rows = spectrum[..., :half, :] + spectrum[..., half:, :]
    return torch.fft.ifft2((rows[..., :half] + rows[..., half:]) / 4)


def _averaged(signal: Tensor, average: Tensor) -> Tensor:
    return average @ signal @ average.T


def _wavelet(size: int, scale: int, turn: int) -> Array:
    """The spectrum of a Morlet wavelet, shape (size, size): a wave under an oblong bell, of mean zero."""
    width = 0.8 * 2.0**scale
    angle = (ORIENTATIONS // 2 - 1 - turn) * math.pi / ORIENTATIONS
    cos, sin = math.cos(angle), math.sin(angle)
    slant = 4.0 / ORIENTATIONS
    bell, wave = np.zeros((size, size)), np.zeros((size, size), complex)
    for row in range(-2, 3):  # copies around, as the discrete Fourier transform sees the plane
        for column in range(-2, 3):
            y, x = np.mgrid[row * size : (row + 1) * size, column * size : (column + 1) * size].astype(float)
            along, across = y * cos + x * sin, x * cos - y * sin
            each = np.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
            bell += each
            wave += each * np.exp(1j * 0.75 * math.pi / 2.0**scale * along)
    wave -= bell * (wave.sum() / bell.sum())
    spectrum: Array = np.fft.fft2(wave).real * (slant / (2 * math.pi * width**2))
    return spectrum


def _average(size: int, scale: int) -> Array:
    """Local averages under a Gaussian bell along one side, shape (size / 4 - 2, size / 2^scale).

    Args:
        size: The side of the padded image.
        scale: How often the signal was halved before.
    """
    width = 0.8 * 2.0 ** (SCALES - 1)
    bell = np.exp(-(np.arange(-2 * size, 3 * size) ** 2) / (2 * width**2)).reshape(5, size).sum(axis=0)
    spectrum = np.fft.fft(bell).real / math.sqrt(2 * math.pi * width**2)
    length = size >> scale
    low = np.concatenate([spectrum[: length // 2], spectrum[size - length // 2 :]])
    kernel = np.fft.ifft(low).real
    centres = np.arange(1, size // STRIDE - 1) * (STRIDE >> scale)  # the outermost are padding
    averages: Array = kernel[(centres[:, None] - np.arange(length)) % length]
    return averages
