"""Similarity of rebuilt pictures and originals: PSNR, beside the nearest wrong picture.

A picture counts as rebuilt if a guess lies within half the distance from it to the nearest other picture of a
pool, which is a PSNR of 6 dB above the nearest wrong picture. Balls of these radii are disjoint, so each
guess counts for one picture of the pool at most: a mean of two pictures counts for neither, and by chance m
guesses are right with probability m / pool at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError

Pictures = NDArray[np.float64]  # shape (pictures, pixels)
EXACT = 100.0  # dB; the PSNR of equal pictures, and the most that float32 leaves
_NUMBERS = 2**24  # of distances in memory at once


@dataclass(frozen=True)
class Similarity:
    """The similarity of each original to the guesses.

    Args:
        guess: The number of the nearest guess, shape (originals,).
        psnr: Its PSNR in dB, shape (originals,).
        wrong: The number of the nearest wrong picture, shape (originals,).
        wrong_psnr: Its PSNR in dB: the level of chance, shape (originals,).
        rebuilt: Whether the guess is within half the distance of that picture, shape (originals,).
    """

    guess: NDArray[np.int64]
    psnr: NDArray[np.float64]
    wrong: NDArray[np.int64]
    wrong_psnr: NDArray[np.float64]
    rebuilt: NDArray[np.bool_]


def similarity(originals: Pictures, guesses: Pictures, wrong: Pictures, peak: float = 1.0) -> Similarity:
    """Compares originals with guesses and with wrong pictures.

    Args:
        originals: Shape (originals, pixels).
        guesses: The attacker's pictures; those that are not finite count as black, shape (guesses, pixels).
        wrong: Pictures that are none of the originals, shape (wrong, pixels).
        peak: The largest value of a pixel, the smallest being 0.

    Raises:
        InputError: the pictures differ in size, or there are no guesses or no wrong pictures.
    """
    if {pictures.shape[1:] for pictures in (guesses, wrong)} != {originals.shape[1:]}:
        raise InputError(
            f"pictures of {guesses.shape[1:]} and {wrong.shape[1:]} pixels beside originals of "
            f"{originals.shape[1:]}: all must have the same size."
        )
    if not len(guesses) or not len(wrong):
        raise InputError("guesses and wrong pictures: needs one of each at least.")
    sane = np.where(np.isfinite(guesses).all(axis=1, keepdims=True), guesses, 0.0).clip(0.0, peak)
    guess, distances = _nearest(originals, sane)
    nearest, wrong_distances = _nearest(originals, wrong)
    pixels = originals.shape[1]
    return Similarity(
        guess,
        psnr(distances**2 / pixels, peak),
        nearest,
        psnr(wrong_distances**2 / pixels, peak),
        distances < wrong_distances / 2,
    )


def psnr(mean_squared_error: NDArray[np.float64], peak: float = 1.0) -> NDArray[np.float64]:
    """The peak signal-to-noise ratio in dB, at most `EXACT`: 10 log10(peak^2 / mean squared error).

    Args:
        mean_squared_error: By picture, at least 0.
        peak: The largest value of a pixel.
    """
    least = peak**2 * 10 ** (-EXACT / 10)
    return 10 * np.log10(peak**2 / np.maximum(mean_squared_error, least))


def _nearest(pictures: Pictures, others: Pictures) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest of the others to each picture, and its distance."""
    places = np.empty(len(pictures), np.int64)
    squares = (others**2).sum(axis=1)
    rows = max(1, _NUMBERS // len(others))
    for start in range(0, len(pictures), rows):
        block = slice(start, start + rows)
        places[block] = (squares - 2 * pictures[block] @ others.T).argmin(axis=1)
    # Anew from the difference: the expanded square rounds small distances away.
    return places, np.sqrt(((pictures - others[places]) ** 2).sum(axis=1))
