"""Records out of the first linear layer: exact if alone, whatever the step, the clipping or the loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.reconstruction.analytic import FirstLayer, rebuild_record
from fedprivacy.attacks.reconstruction.inverting import LocalSteps, label_of
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.scenario.model import Cnn, Logistic, Mlp

MODELS = [Logistic(name="logistic"), Mlp(name="mlp", hidden=(20,)), Mlp(name="mlp", hidden=(9, 7))]
X = torch.from_numpy(np.random.default_rng(1).random((3, 8, 8)).astype(np.float32))
Y = torch.tensor([4, 2, 2])


def update_of(module: nn.Module, records: slice, local: LocalSteps) -> np.ndarray:
    weights = torch.from_numpy(flat_weights(module))
    return local.update(module, weights, X[records], Y[records]).detach().double().numpy()


@pytest.mark.parametrize("options", MODELS)
@pytest.mark.parametrize("local", [LocalSteps(1, 0.3), LocalSteps(4, 0.01)])
def test_one_record_is_rebuilt_exactly_though_clipped(options: Mlp, local: LocalSteps) -> None:
    module = build(options, (8, 8), 10, seed=3)
    update = update_of(module, slice(0, 1), local)
    clipped = clip(torch.from_numpy(update)[None], 1e-3)[0][0].numpy()
    for seen in (update, clipped):
        assert np.allclose(rebuild_record(seen, FirstLayer.of(module)), X[0].flatten(), atol=1e-4)
    assert label_of(update, 10) == 4


def test_several_records_give_a_mean_and_an_empty_update_gives_black() -> None:
    module = build(MODELS[0], (8, 8), 10, seed=3)
    layer = FirstLayer.of(module)
    rebuilt = rebuild_record(update_of(module, slice(0, 3), LocalSteps()), layer)
    assert not any(np.allclose(rebuilt, x.flatten(), atol=0.05) for x in X)
    assert (rebuild_record(np.zeros(650), layer) == 0).all()


def test_models_without_a_first_linear_layer_are_refused() -> None:
    with pytest.raises(InputError, match="not linear"):
        FirstLayer.of(build(Cnn(name="cnn", channels=(4,)), (8, 8), 10, seed=0))
    with pytest.raises(InputError, match="no bias"):
        FirstLayer.of(nn.Sequential(nn.Linear(4, 3, bias=False)))
    with pytest.raises(InputError, match="needs a model that is trained whole, and bias is frozen"):
        FirstLayer.of(_without_bias())


def _without_bias() -> nn.Module:
    layer = nn.Linear(4, 3)
    layer.bias.requires_grad_(False)
    return layer
