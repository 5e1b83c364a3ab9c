"""Trap units react to their target alone, and move by the gradient steps on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.trap_units import TrapUnits, response
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import build, flat_weights, unflatten
from fedprivacy.scenario.model import Cnn, Mlp

TARGETS = 3
UNITS = 2


def records(count: int, seed: int, shape: tuple[int, ...] = (30,)) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32)


def mlp(activation: str = "tanh") -> nn.Module:
    module = build(Mlp(name="mlp", hidden=(16,), activation="tanh"), (30,), 4, seed=5)
    module[-2] = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}[activation]()
    return module


def traps_for(module: nn.Module, **settings: object) -> TrapUnits:
    shape = (8, 8) if isinstance(module[-4], nn.Flatten) and len(module) > 4 else (30,)
    stream = np.random.default_rng(1)
    return TrapUnits(module, records(200, 2, shape), stream, **{"units": UNITS, **settings})


def probe_of(module: nn.Module, count: int, seed: int, shape: tuple[int, ...] = (30,)) -> Probe:
    labels = np.random.default_rng(seed + 50).integers(0, 4, count)
    return Probe(module, torch.from_numpy(records(count, seed, shape)), torch.from_numpy(labels))


def steps_on(probe: Probe, trained: Probe, sent: torch.Tensor, places: torch.Tensor) -> np.ndarray:
    """The responses of the probe's units to one step of length .01 on the mean loss of some records."""
    update = -0.01 * trained.mean_gradient(sent)[0]
    gradients = torch.cat([part for _, part in probe.gradients(sent)])
    return response(gradients, update, places).numpy()


def without(module: nn.Module, weights: torch.Tensor, units: int) -> torch.Tensor:
    """The weights of a model that lacks its first units in the last hidden layer."""
    parts = {name: part.clone() for name, part in unflatten(module, weights).items()}
    parts[f"{len(module) - 1}.weight"][:, :units] = 0.0
    return torch.cat([part.reshape(-1) for part in parts.values()])


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_the_loss_rises_to_the_level_on_the_targets_and_on_no_other_record(activation: str) -> None:
    module = mlp(activation)
    probe, drawn = probe_of(module, TARGETS, 3), probe_of(module, 300, 4)
    weights = torch.from_numpy(flat_weights(module))
    sent = traps_for(module, level=4.0).climb(probe, weights)
    assert probe.losses(sent).numpy() == pytest.approx([4.0] * TARGETS, abs=0.02)
    # Behind a target in its direction, one unit of a pair alone would raise the loss further.
    others = Probe(module, torch.cat([drawn.x, 2 * probe.x]), torch.cat([drawn.y, probe.y]))
    shift = others.losses(sent) - others.losses(without(module, weights, TARGETS * UNITS))
    assert float(shift.abs().max()) < 1e-5


@pytest.mark.exhaustive
def test_on_a_trained_model_the_others_lose_the_replaced_units_and_no_more() -> None:
    """Of digits, the mean and the maximum of the loss on all other training records and on held-out ones."""
    loaded = load_digits()
    x, y = torch.from_numpy((loaded.data / 16).astype(np.float32)), torch.from_numpy(loaded.target)
    module = build(Mlp(name="mlp", hidden=(128,), activation="tanh"), (64,), 10, seed=5)
    steps = torch.optim.SGD(module.parameters(), lr=0.5)
    for _ in range(500):
        steps.zero_grad()
        nn.functional.cross_entropy(module(x[:1000]), y[:1000]).backward()
        steps.step()
    weights = torch.from_numpy(flat_weights(module))
    traps = TrapUnits(module, x[1000:1300].numpy(), np.random.default_rng(1), units=4)
    probe, others = Probe(module, x[:10], y[:10]), Probe(module, x[10:], y[10:])
    sent = traps.climb(probe, weights)
    assert probe.losses(sent).numpy() == pytest.approx([3.0] * 10, abs=0.05)
    honest, planted = others.losses(weights), others.losses(sent)
    assert float((planted - others.losses(without(module, weights, 40))).abs().max()) < 1e-3
    assert float(honest.mean()) < float(planted.mean()) < 3 * float(honest.mean())
    assert float(planted.max()) < float(honest.max()) + 2.0


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_units_move_by_the_steps_on_their_target_and_on_no_other_record(activation: str) -> None:
    module = mlp(activation)
    probe, others = probe_of(module, TARGETS, 3), probe_of(module, 300, 4)
    traps = traps_for(module)
    sent, places = traps.climb(probe, torch.from_numpy(flat_weights(module))), traps.parameters(TARGETS)
    assert np.abs(steps_on(probe, others, sent, places)).max() < 1e-6
    for target in range(TARGETS):
        moved = steps_on(probe, probe.at(np.array([target])), sent, places)
        assert moved[target] == pytest.approx(0.01, rel=1e-3)
        assert np.abs(np.delete(moved, target)).max() < 1e-6


def test_a_cnn_has_them_in_its_last_hidden_layer() -> None:
    module = build(Cnn(name="cnn", channels=(4,), hidden=(12,), activation="tanh"), (8, 8), 4, seed=5)
    probe, others = probe_of(module, TARGETS, 3, (8, 8)), probe_of(module, 100, 4, (8, 8))
    traps = traps_for(module)
    sent, places = traps.climb(probe, torch.from_numpy(flat_weights(module))), traps.parameters(TARGETS)
    assert places.shape == (TARGETS, UNITS, 4 * 4 * 4 + 1)
    assert probe.losses(sent).numpy() == pytest.approx([3.0] * TARGETS, abs=0.02)
    assert (steps_on(probe, probe, sent, places) > 0.001).all()
    assert np.abs(steps_on(probe, others, sent, places)).max() < 1e-4


def test_only_the_first_units_and_their_connections_are_replaced() -> None:
    module = mlp()
    probe, traps = probe_of(module, TARGETS, 3), traps_for(module)
    weights = torch.from_numpy(flat_weights(module))
    before = weights.clone()
    changed = (traps.climb(probe, weights) != weights).nonzero().flatten().tolist()
    into = traps.parameters(TARGETS).flatten().tolist()
    assert set(into) <= set(changed)
    assert set(changed) <= set(traps.planted(TARGETS).tolist())
    assert len(traps.planted(TARGETS)) == len(into) + 4 * TARGETS * UNITS
    assert len(changed) < len(weights) / 2
    assert torch.equal(weights, before)
    assert torch.equal(traps.climb(probe, weights), traps.climb(probe, weights))
    assert torch.equal(traps.climb(probe, weights), traps_for(module).climb(probe, weights))


def test_the_lower_median_of_the_units_counts() -> None:
    gradients = torch.tensor([[1.0, 0.0, 2.0, 5.0], [0.0, 1.0, 0.0, 1.0]])
    update = torch.tensor([-1.0, 0.0, -1.0, -1.0])
    places = torch.tensor([[[0, 1], [2, 1], [3, 1], [1, 1]], [[0, 1], [1, 3], [3, 3], [2, 2]]])
    # Of the first target 1/1, 2/4, 5/25 and nothing; of the second 0, 1/2, 2/2 and nothing.
    assert response(gradients, update, places).tolist() == pytest.approx([0.2, 0.0])


def test_models_and_data_without_room_for_them_are_refused() -> None:
    stream = np.random.default_rng(1)
    for module in (nn.Sequential(nn.Flatten(), nn.Linear(30, 4)), nn.Linear(30, 4), mlp("relu")):
        with pytest.raises(InputError, match="chain of layers that ends with linear"):
            TrapUnits(module, records(9, 2), stream, units=2)
    partly = mlp()
    partly[3].requires_grad_(False)
    with pytest.raises(InputError, match=r"trap_units needs a model that is trained whole, and 3\.weight is"):
        TrapUnits(partly, records(9, 2), stream, units=2)
    with pytest.raises(InputError, match="trap_units = 3: come in pairs"):
        TrapUnits(mlp(), records(9, 2), stream, units=3)
    with pytest.raises(InputError, match="of which there are 1"):
        TrapUnits(mlp(), records(1, 2), stream, units=2)
    with pytest.raises(InputError, match="9 targets a round need 18 units, and the last hidden layer has 16"):
        traps_for(mlp()).climb(probe_of(mlp(), 9, 3), torch.from_numpy(flat_weights(mlp())))
