"""Imprints on MNIST: records alone in a bin are rebuilt, clipping changes nothing, noise hides all."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.attacks.reconstruction import imprint
from fedprivacy.attacks.reconstruction.analytic import FirstLayer
from fedprivacy.attacks.reconstruction.similarity import similarity
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights, unflatten
from fedprivacy.scenario.model import Cnn, Mlp
from tests.imprint_module import ImprintModule

BINS, PUBLIC, NORM = 128, 10_000, 1.0
MODEL = Mlp(name="mlp", hidden=(BINS,))
Sample = tuple[np.ndarray, np.ndarray, np.ndarray]


@lru_cache(maxsize=1)
def sample(path: Path) -> Sample:
    """Pictures and labels, the first public, and the edges of the bins of these."""
    with np.load(path) as stored:
        x, y = stored["x_train"].reshape(-1, 784), stored["y_train"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(x))[:20_000]
    pictures = x[order] / 255.0
    return pictures, y[order], imprint.quantiles(pictures[:PUBLIC], BINS)


@pytest.fixture
def mnist(real_data) -> Sample:
    return sample(real_data("mnist.npz"))


def update_of(module: nn.Module, weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    at = torch.from_numpy(weights).requires_grad_(True)
    logits = functional_call(module, unflatten(module, at), torch.from_numpy(x.astype(np.float32)))
    loss = nn.functional.cross_entropy(logits, torch.from_numpy(y))
    return -torch.autograd.grad(loss, at)[0].numpy()


def shares(
    mnist: Sample, batch: int, clipping_norm: float | None, noise: float
) -> tuple[float, float, float]:
    """The shares of records that are rebuilt, of others that are, and of records alone in their bin."""
    pictures, labels, edges = mnist
    module = build(MODEL, (784,), 10, seed=1)
    weights, layer = imprint.imprinted(flat_weights(module), module, edges), FirstLayer.of(module)
    rebuilt, others, alone, batches = 0, 0, 0, 1280 // batch
    for number in range(batches):
        places = PUBLIC + batch * number + np.arange(batch)
        update = update_of(module, weights, pictures[places], labels[places])
        seen = clip(torch.from_numpy(update)[None], clipping_norm)[0][0].numpy()
        if noise:
            seen = Gaussian(NORM, noise).randomise(seen, np.random.default_rng(number))
        guesses = imprint.rebuild_records(seen, layer)
        wrong = pictures[:1500]
        rebuilt += similarity(pictures[places], guesses, wrong).rebuilt.sum()
        others += similarity(pictures[places + 5000], guesses, wrong).rebuilt.sum()
        filled = np.bincount(np.searchsorted(edges, pictures[places].mean(axis=1)))
        alone += (filled == 1).sum()
    return rebuilt / 1280, others / 1280, alone / 1280


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("batch", "expected"), [(64, 0.610), (8, 0.947)])
@pytest.mark.parametrize("clipping_norm", [None, NORM])
def test_records_alone_in_their_bin_are_rebuilt_clipped_or_not(
    mnist: Sample, batch: int, expected: float, clipping_norm: float | None
) -> None:
    """A standard deviation of 1,280 records is 1.4 points."""
    rebuilt, others, alone = shares(mnist, batch, clipping_norm, 0.0)
    assert (1 - 1 / BINS) ** (batch - 1) == pytest.approx(expected, abs=6e-4)
    assert rebuilt == pytest.approx(expected, abs=0.03)
    assert rebuilt == pytest.approx(alone, abs=0.005)
    assert others == 0


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_noise_that_guarantees_nothing_hides_them_all(mnist: Sample, noise: float) -> None:
    assert shares(mnist, 64, NORM, noise)[0] == 0
    loss = epsilon(Gaussian(NORM, 0.05).event(), 1e-5, "zero-out").epsilon
    assert loss == pytest.approx(280, abs=10)


def digits() -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(4)
    return stream.random((500, 64)) * stream.random((500, 1)), stream.integers(10, size=500)


def test_the_architecture_in_front_of_a_cnn_rebuilds_too() -> None:
    pictures, labels = digits()
    rest = build(Cnn(name="cnn", channels=(4,), hidden=(8,)), (8, 8), 10, seed=0)
    module = ImprintModule(rest, (8, 8), imprint.quantiles(pictures[:300], 64))
    update = update_of(module, module.weights, pictures[300:304].reshape(-1, 8, 8), labels[300:304])
    guesses = imprint.rebuild_records(update.astype(float), module.layer)
    assert similarity(pictures[300:304], guesses, pictures[:300]).rebuilt.mean() >= 0.75


def test_quantiles_have_equal_mass_and_the_lowest_bin_takes_all_that_are_darker() -> None:
    pictures, _ = digits()
    edges = imprint.quantiles(pictures, 20)
    assert (np.diff(edges) > 0).all()
    counts = np.bincount(np.searchsorted(edges, pictures.mean(axis=1), side="right") - 1, minlength=20)
    assert counts.tolist() == [25] * 20
    assert edges[0] <= 0
    with pytest.raises(InputError, match="there are 500 public pictures"):
        imprint.quantiles(pictures, 501)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (Mlp(name="mlp", hidden=(BINS, 10), activation="tanh"), "with a ReLU"),
        (Mlp(name="mlp", hidden=(100,)), "needs a first layer of 128 outputs, and it has 100"),
    ],
)
def test_a_model_that_cannot_take_an_imprint_is_refused(options: Mlp, reason: str) -> None:
    module = build(options, (784,), 10, seed=0)
    with pytest.raises(InputError, match=reason):
        imprint.imprinted(flat_weights(module), module, np.arange(BINS) / BINS)


def test_the_layers_behind_stay() -> None:
    module = build(Mlp(name="mlp", hidden=(16, 5)), (64,), 10, seed=0)
    before = flat_weights(module)
    sent = imprint.imprinted(before, module, np.arange(16) / 16)
    behind = 16 * 65 + 5 * 16
    assert np.array_equal(sent[behind:], before[behind:])
    assert not np.isclose(sent[:behind], before[:behind]).all()
