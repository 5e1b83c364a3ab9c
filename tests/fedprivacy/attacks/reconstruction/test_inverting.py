"""Pictures out of a CNN's update, after one local step and after several; noise hides them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from fedprivacy.attacks.reconstruction.inverting import (
    Inversion,
    LocalSteps,
    check_last_biases,
    label_of,
    total_variation,
)
from fedprivacy.attacks.reconstruction.similarity import similarity
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.scenario.model import Cnn

DIGITS = load_digits()
PICTURES = DIGITS.data / 16.0
CNN = Cnn(name="cnn", channels=(16,), hidden=(32,), activation="tanh")
SEARCH = Inversion(steps=300)


def rebuilt(local: LocalSteps, places: list[int], noise: float = 0.0):
    module = build(CNN, (64,), 10, seed=2)
    weights = torch.from_numpy(flat_weights(module))
    x = torch.from_numpy(PICTURES[places].astype(np.float32))
    y = torch.from_numpy(DIGITS.target[places]).long()
    update = local.update(module, weights, x, y).detach()
    seen = clip(update[None], 1e-2)[0][0].numpy()
    if len(places) == 1:
        assert label_of(seen, 10) == int(y[0])
    if noise:
        seen = Gaussian(1e-2, noise).randomise(seen, np.random.default_rng(0))
    guesses = SEARCH.rebuild(
        module, weights, torch.from_numpy(seen), y, (64,), local, np.random.default_rng(5)
    )
    return similarity(PICTURES[places], guesses, np.delete(PICTURES, places, axis=0))


@pytest.mark.exhaustive
@pytest.mark.parametrize("local", [LocalSteps(1, 0.1), LocalSteps(4, 0.1)])
def test_a_record_of_a_cnn_is_rebuilt(local: LocalSteps) -> None:
    measured = rebuilt(local, [11])
    assert measured.rebuilt.all()
    assert measured.psnr[0] > measured.wrong_psnr[0] + 6


def test_noise_of_the_clipping_norm_hides_it() -> None:
    measured = rebuilt(LocalSteps(1, 0.1), [11], noise=1.0)
    assert not measured.rebuilt.any()
    assert measured.psnr[0] < measured.wrong_psnr[0]


def test_local_steps_are_plain_descent() -> None:
    module = build(CNN, (64,), 10, seed=2)
    x, y = torch.from_numpy(PICTURES[:3].astype(np.float32)), torch.tensor([0, 1, 2])
    sent = flat_weights(module)
    update = LocalSteps(3, 0.2).update(module, torch.from_numpy(sent), x, y)
    for _ in range(3):
        module.zero_grad()
        torch.nn.functional.cross_entropy(module(x), y).backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.2 * parameter.grad
    assert np.allclose(flat_weights(module) - sent, update.detach().numpy(), atol=1e-6)


def test_total_variation_by_hand_and_records_that_are_no_images() -> None:
    image = torch.zeros(1, 2, 2, 1)
    image[0, 0, 0, 0] = 1.0
    assert float(total_variation(image)) == 1.0
    with pytest.raises(InputError, match="no square images"):
        SEARCH.rebuild(
            build(CNN, (64,), 10, seed=2),
            torch.zeros(1),
            torch.zeros(1),
            torch.tensor([0]),
            (63,),
            LocalSteps(),
            np.random.default_rng(0),
        )


def test_a_model_whose_last_biases_are_not_trained_is_refused() -> None:
    """The last numbers of its update are of another layer, and name no label."""
    module = build(CNN, (8, 8), 10, seed=1)
    check_last_biases(module, 10)
    module[-1].bias.requires_grad_(False)
    with pytest.raises(InputError, match=r"the last parameter, 7\.bias, is frozen"):
        check_last_biases(module, 10)
    with pytest.raises(InputError, match="weight, is no such bias"):
        check_last_biases(torch.nn.Linear(10, 10, bias=False), 10)


def test_the_label_follows_from_the_biases_beside_known_labels() -> None:
    """Two records of a model that knows nothing: label 2 is known, and the biases of 2 and 0 rise."""
    rise = np.bincount([2, 0], minlength=4) - 2 / 4
    update = np.concatenate([np.zeros(5), 0.1 * rise])
    assert label_of(update, 4, np.array([2])) == 0
    assert label_of(0.01 * update, 4, np.array([0])) == 2
    assert label_of(np.concatenate([np.zeros(5), [-0.1, -0.1, 0.3, -0.1]]), 4) == 2
