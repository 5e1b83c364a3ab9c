"""PSNR, the nearest wrong picture, and balls that no guess is in twice."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.reconstruction.similarity import EXACT, psnr, similarity
from fedprivacy.errors import InputError

STREAM = np.random.default_rng(0)
POOL = STREAM.random((60, 49))


def test_psnr_by_hand() -> None:
    assert psnr(np.array([0.01, 1.0, 0.0])).tolist() == pytest.approx([20.0, 0.0, EXACT])
    assert psnr(np.array([100.0]), peak=100.0)[0] == pytest.approx(20.0)


def test_the_original_itself_counts_and_a_mean_of_two_does_not() -> None:
    originals, wrong = POOL[:2], POOL[2:]
    measured = similarity(originals, np.vstack([originals[0], originals.mean(axis=0)]), wrong)
    assert measured.rebuilt.tolist() == [True, False]
    assert measured.psnr[0] == EXACT
    assert measured.guess.tolist() == [0, 1]
    distances = np.linalg.norm(wrong - originals[0], axis=1)
    assert measured.wrong[0] == distances.argmin()
    assert measured.wrong_psnr[0] == pytest.approx(-10 * np.log10(distances.min() ** 2 / 49))


@pytest.mark.exhaustive
def test_a_guess_counts_for_one_picture_at_most() -> None:
    guesses = STREAM.random((400, 49)) * 0.2 + POOL[STREAM.integers(60, size=400)] * 0.8
    hits = np.zeros(400, int)
    for place in range(60):
        for number, guess in enumerate(guesses):
            wrong = np.delete(POOL, place, axis=0)
            hits[number] += similarity(POOL[place][None], guess[None], wrong).rebuilt[0]
    assert hits.max() == 1
    assert hits.sum() > 20


def test_guesses_that_are_not_finite_are_black_and_others_are_cut() -> None:
    guesses = np.vstack([np.full(49, np.nan), np.where(POOL[0] > 0.5, 1e9, POOL[0])])
    measured = similarity(POOL[:1], guesses, POOL[1:])
    assert np.isfinite(measured.psnr).all()
    black = similarity(np.zeros((1, 49)), np.full((1, 49), np.inf), POOL)
    assert black.rebuilt.all()


@pytest.mark.parametrize(("guesses", "wrong"), [(POOL[:, :9], POOL), (POOL[:0], POOL), (POOL, POOL[:0])])
def test_pictures_of_another_size_or_none_are_refused(guesses: np.ndarray, wrong: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"same size|one of each"):
        similarity(POOL[:1], guesses, wrong)
