"""The shapes of records that are square images."""

from __future__ import annotations

import math
from collections.abc import Sequence

Image = tuple[int, int]  # channels and side of a square image

# Of the scattering transform (`models.scattering`) and its normalisation. A change of these, or of how the
# features are computed or ordered, is another version (`scenario.model.FEATURES`).
SCALES, ORIENTATIONS = 2, 8
PADDING = "reflect"  # beyond the border
GRID = 2.0**-20  # to which filters are rounded: the digest has no rounding noise of a Fourier transform
GROUP = 3  # channels that are normalised together, as in Tramer and Boneh 2021
EPSILON = 1e-5  # added to the variance of a group
STRIDE = 2**SCALES  # pixels that one output stands for, each way
CHANNELS = 1 + SCALES * ORIENTATIONS + math.comb(SCALES, 2) * ORIENTATIONS**2  # of one colour
SMALLEST = 2 * STRIDE  # the side of an image: reflection at its border needs as much


def square_image(features: Sequence[int]) -> Image | None:
    """The channels and the side of the square images that records of a shape are, if they are.

    Args:
        features: (side x side,) for grey images laid flat, (side, side), or with the channels, 1 or 3,
            last. A flat record with three channels leaves their order open, so it is no image.
    """
    if len(features) == 1:
        side = math.isqrt(features[0])
        return (1, side) if side * side == features[0] else None
    if len(features) not in (2, 3) or features[0] != features[1]:
        return None
    channels = features[2] if len(features) == 3 else 1
    return (channels, features[0]) if channels in (1, 3) else None


def scattered(image: Image) -> Image:
    """The channels and the side of the scattering coefficients of an image."""
    channels, side = image
    return CHANNELS * channels, side // STRIDE
