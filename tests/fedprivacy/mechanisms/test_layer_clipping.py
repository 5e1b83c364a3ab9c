"""Clipping by layer: the bound of each layer and of the whole, and a ledger that does not change."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from clients.chunk_training import ChunkTrainer
from clients.fleet import Fleet
from clients.privacy import privatise
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.layer_clipping import LayerClipping
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.training.model_spec import model_spec
from fedprivacy.training.updates import Stack

NAMED = [("0.weight", 6), ("0.bias", 2), ("2.weight", 16)]
MLP = ["model={name='mlp', hidden=[3]}", "server.rounds=2"]


def test_parameters_of_a_module_are_one_layer_and_squares_add_up_to_one() -> None:
    for how, shares in (("equal", [0.5, 0.5]), ("by-size", [8 / 24, 16 / 24])):
        layers = LayerClipping.of(NAMED, how)
        assert layers.lengths == (8, 16)
        assert np.square(layers.shares) == pytest.approx(shares)
    with pytest.raises(InputError, match="one layer"):
        LayerClipping.of(NAMED[:2], "equal")


@pytest.mark.parametrize("how", ["equal", "by-size"])
@pytest.mark.parametrize("norm", [1e-3, 1.0, 50.0])
def test_each_part_and_the_whole_stay_within_their_bounds(how: str, norm: float) -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.standard_normal((40, 24)) * 10.0 ** rng.uniform(-4, 4, (40, 1)))
    layers = LayerClipping.of(NAMED, how)
    clipped = layers.clip(rows.float(), norm)
    for part, whole, share in zip(
        clipped.split((8, 16), dim=1), rows.float().double().split((8, 16), dim=1), layers.shares, strict=True
    ):
        lengths, before = part.norm(dim=1), whole.norm(dim=1)
        assert (lengths <= share * norm * (1 + 1e-12)).all()
        short = before <= share * norm
        assert torch.equal(part[short], whole[short])  # nothing else changes
        assert torch.allclose(lengths[~short], torch.tensor(share * norm, dtype=torch.float64))
    assert (clipped.norm(dim=1) <= norm * (1 + 1e-12)).all()


def test_rows_that_are_not_finite_stay_so_and_zeros_stay_zeros() -> None:
    rows = torch.zeros((4, 24))
    rows[1, 0], rows[2, 20], rows[3, 5] = torch.nan, torch.inf, -torch.inf
    clipped = LayerClipping.of(NAMED, "equal").clip(rows, 1.0)
    assert torch.isfinite(clipped).all(dim=1).tolist() == [True, False, False, False]
    assert not clipped[0].any()


def request_of(fleet: Fleet, observe: str) -> TrainRequest:
    weights = np.random.default_rng(0).standard_normal(fleet.parameters).astype(np.float32)
    return TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, observe)


@pytest.mark.parametrize("observe", ["sum", "each"])
def test_what_leaves_a_client_is_clipped_by_layer_and_as_a_whole(make_scenario, observe: str) -> None:
    small = ["privacy.clipping_norm=0.01", f"federation.observe={observe}"]
    plain, fleet = (
        Fleet.of(make_scenario(*MLP, *small, *more)) for more in ([], ["privacy.clipping_layers=equal"])
    )
    assert fleet.layers is not None
    assert fleet.layers.lengths == (4 * 3 + 3, 3 * 2 + 2)
    clients = np.arange(12)
    updates = ChunkTrainer(plain, request_of(plain, observe)).trained(clients).updates.stack()
    expected = []
    for part in updates.double().split(fleet.layers.lengths, dim=1):
        lengths = part.norm(dim=1, keepdim=True)
        expected.append(part * torch.clamp(0.01 / np.sqrt(2) / lengths, max=1))
    rows = torch.cat(expected, dim=1).numpy()
    part = ChunkTrainer(fleet, request_of(fleet, observe)).train(clients)
    assert np.allclose(part.private, rows if observe == "each" else rows.sum(axis=0), rtol=1e-4, atol=1e-8)
    other = ChunkTrainer(plain, request_of(plain, observe)).train(clients)
    assert not np.allclose(part.private, other.private, rtol=1e-2)


def test_an_update_that_moves_one_client_moves_the_sum_by_the_norm_at_most(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(*MLP, "privacy.clipping_layers=by-size"))
    assert fleet.layers is not None
    rng, clients = np.random.default_rng(1), np.arange(12)
    rows = torch.from_numpy(rng.standard_normal((12, fleet.parameters)) * 100)
    sums = []
    for change in (1.0, 0.0, -1.0):
        rows[3] *= change or 0.0
        clipped = Stack(fleet.layers.clip(rows.clone(), 1.0))
        total, _ = privatise(clipped, clients, fleet.plan, fleet.streams, round=0, observe="sum")
        sums.append(total)
        if change == 0.0:
            rows[3] = 100.0
    assert np.linalg.norm(sums[0] - sums[1]) <= 1.0
    assert 1.0 < np.linalg.norm(sums[0] - sums[2]) <= 2.0


def test_a_client_has_the_same_bits_alone_and_among_others(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(*MLP, "privacy.clipping_layers=equal", "federation.observe=each"))
    together = ChunkTrainer(fleet, request_of(fleet, "each")).train(np.arange(12)).private
    alone = [
        ChunkTrainer(fleet, request_of(fleet, "each")).train(np.array([one])).private[0] for one in range(12)
    ]
    assert np.array_equal(together, np.array(alone))


@pytest.mark.parametrize("trust", ["central", "local", "distributed"])
def test_no_claim_changes(make_scenario, base_text: str, trial, trust: str) -> None:
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 8.0")
    changes = [*MLP, f"privacy.trust={trust}"]
    runs = [
        trial(make_scenario(*changes, *more, text=text)) for more in ([], ["privacy.clipping_layers=equal"])
    ]
    models = [run.play() for run in runs]
    assert not np.array_equal(*models)
    ledgers = [run.ledger.to_json() for run in runs]
    assert json.dumps(ledgers[0]) == json.dumps(ledgers[1])
    assert guarantees(ledgers[0]) == guarantees(ledgers[1])
    assert runs[0].fleet.plan == replace(runs[1].fleet.plan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["privacy.clipping_layers=equal"], "has one layer"),
        ([*MLP, "privacy.clipping_layers=equal", "privacy.unit=example"], "not gradients of records"),
        ([*MLP, "privacy.clipping_layers=equal", "privacy.clipping_quantile=0.5"], "clipped already"),
        ([*MLP, "privacy={trust='none', clipping_layers='equal'}"], "no norm of which layers"),
        ([*MLP, "privacy.clipping_layers=some"], "equal"),
        ([*MLP, "privacy.clipping_layers=equal", "training.shared=['1.*']"], "stay at each client"),
    ],
)
def test_what_cannot_be_clipped_by_layer_is_refused(make_scenario, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes)


def test_a_model_that_trains_one_layer_is_refused_where_its_plan_is_computed(make_scenario) -> None:
    scenario = make_scenario(*MLP, "privacy.clipping_layers=equal", "model.trainable=['3.*']")
    people = population(scenario.data)
    model = model_spec(scenario.model, people.features, people.dataset.classes)
    with pytest.raises(InputError, match="trains one layer"):
        plan_of(scenario, model)
