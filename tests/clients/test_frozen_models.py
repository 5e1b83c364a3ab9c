"""Clients train a part of a model: as if the frozen part's outputs were their records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from clients.fleet import Fleet
from clients.request_validation import vet
from clients.training_handler import answer
from fedprivacy.errors import InputError, Refusal
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.population.clients import population
from fedprivacy.training.features import encode
from fedprivacy.training.model_spec import ModelSpec

FROZEN = "model={name='mlp', hidden=[7], activation='tanh', freeze=['1.*']}"
RECORDS = "privacy={trust='%s', unit='example', adjacency='add-remove', clipping_norm=0.5, noise_multiplier=1.0, delta=1e-5}"  # fmt: skip
POISSON = "training={batches='poisson', rate=0.5, steps=%d, learning_rate=0.5}"
WAYS = {
    "client": ("training={learning_rate=0.5, epochs=3, batch_size=2, momentum=0.5}",),
    "records, local": (RECORDS % "local", POISSON % 3),
    "records, central": (RECORDS % "central", POISSON % 1),
    "adversarial": ("training={learning_rate=0.5, epochs=2, adversarial=1.0}", "data.public_fraction=0.2"),
    "opacus": (RECORDS % "local", POISSON.replace("0.5}", "0.5, trainer='opacus'}") % 2),
}


def updates(fleet: Fleet, observe: str = "each") -> np.ndarray:
    weights = flat_weights(fleet.model.build(3))
    clients = np.arange(fleet.plan.population)
    return answer(fleet, None, TrainRequest(0, 0, 0, clients, weights, fleet.plan, observe))[0].updates


def on_features(fleet: Fleet) -> Fleet:
    """The same clients with the outputs of the frozen layers as records, and the head as their model."""
    module = fleet.module
    encoder, head = nn.Sequential(*list(module)[:3]), nn.Sequential(*list(module)[3:])
    data = fleet.people.dataset
    features = replace(data, x=encode(encoder, torch.from_numpy(data.x)).numpy())
    people = replace(fleet.people, dataset=features)

    def build(seed: int) -> nn.Module:
        return nn.Sequential(*list(fleet.model.build(seed))[3:])

    return replace(fleet, people=people, model=ModelSpec(build), module=head)


@pytest.mark.parametrize("way", WAYS)
def test_a_frozen_encoder_is_the_same_as_records_of_its_outputs(make_scenario, way: str) -> None:
    fleet = Fleet.of(make_scenario(FROZEN, *WAYS[way]))
    whole, head = updates(fleet), updates(on_features(fleet))
    assert whole.shape == (fleet.plan.population, 7 * 2 + 2)
    assert np.array_equal(whole, head)
    assert np.unique(whole, axis=0).shape == whole.shape


@pytest.mark.parametrize("way", ["client", "records, central", "opacus"])
def test_frozen_layers_anywhere_stay_where_they_are(make_scenario, way: str) -> None:
    """The update is that of the whole model, projected: for one step of full batches and no clipping."""
    one_step = {
        "client": ("training={learning_rate=0.5}", "privacy={trust='none'}"),
        "records, central": (
            RECORDS.replace("0.5", "1e6") % "central",
            POISSON.replace("rate=0.5", "rate=1.0") % 1,
        ),
        "opacus": (
            (RECORDS % "local").replace("0.5", "10.0").replace("1.0", "1e-4"),
            POISSON.replace("rate=0.5", "rate=1.0").replace("=0.5}", "=0.5, trainer='opacus'}") % 1,
        ),
    }
    wide = "model={name='mlp', hidden=[7], activation='tanh'%s}"
    whole = Fleet.of(make_scenario(wide % "", *one_step[way]))
    middle = Fleet.of(make_scenario(wide % ", freeze=['3.*']", *one_step[way]))
    assert middle.features is None
    assert middle.parameters == 35
    module = whole.module
    for name, value in middle.module.named_parameters():
        module.get_parameter(name).data.copy_(value.data)
    sent = flat_weights(module)

    def of(fleet: Fleet, weights: np.ndarray) -> np.ndarray:
        request = TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, "each")
        return answer(fleet, None, request)[0].updates

    expected, found = of(whole, sent)[:, :35], of(middle, sent[:35])
    assert np.abs(expected).max() > 1e-2
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=3e-3 if way == "opacus" else 1e-5)


def test_a_fleet_with_the_same_records_encodes_none_again(make_scenario) -> None:
    """As each round and branch of an attack has one, with streams of its own."""
    fleet = Fleet.of(make_scenario(FROZEN))
    first = fleet.inputs([np.arange(5)])
    other = replace(fleet, streams=replace(fleet.streams, run="other"), alone=False)
    assert other.features is fleet.features
    assert other.inputs([np.arange(2)]).data_ptr() == first.data_ptr()
    data = fleet.people.dataset
    people = replace(fleet.people, dataset=replace(data, x=data.x + np.float32(1.0)))
    changed = replace(fleet, people=people)
    assert changed.features is not fleet.features
    assert not torch.equal(changed.inputs([np.arange(2)])[:2], first[:2])
    assert replace(fleet, module=fleet.model.build(9)).head is not fleet.head


LORA = "model={name='mlp', hidden=[7], activation='tanh', lora={rank=2, alpha=4.0}}"


def plain_loop(fleet: Fleet, client: int, sent: np.ndarray) -> np.ndarray:
    """Local training as any PyTorch user would write it, of the parameters that require a gradient."""
    module, rows = fleet.model.build(3), fleet.people.partition.records(client)
    x, y = fleet.x[rows], fleet.y[rows]
    trained = [value for value in module.parameters() if value.requires_grad]
    nn.utils.vector_to_parameters(torch.from_numpy(sent.copy()), trained)
    optimizer = torch.optim.SGD(module.parameters(), 0.5, momentum=0.5)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        optimizer.step()
    return flat_weights(module) - sent


@pytest.mark.parametrize("model", [FROZEN, LORA])
def test_an_update_is_that_of_a_plain_loop(make_scenario, model: str) -> None:
    ways = ("training={learning_rate=0.5, epochs=4, momentum=0.5}", "privacy={trust='none'}")
    fleet = Fleet.of(make_scenario(model, *ways))
    sent = flat_weights(fleet.model.build(3)) + np.float32(0.3)
    request = TrainRequest(0, 0, 0, np.arange(12), sent, fleet.plan, "each")
    expected = np.stack([plain_loop(fleet, client, sent) for client in range(12)])
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(answer(fleet, None, request)[0].updates, expected, atol=1e-6)


ALONE = "data={name='synthetic', records=12, test_records=50, features=4, partition='one-per-example'}"
SHORT = (RECORDS % "central").replace("clipping_norm=0.5", "clipping_norm=0.01")
ONE_STEP = POISSON.replace("=0.5", "=1.0") % 1


@pytest.mark.parametrize("model", [FROZEN, FROZEN.replace("1.*", "3.*"), LORA])
@pytest.mark.parametrize("ways", [("privacy.clipping_norm=0.01",), (SHORT, ONE_STEP)])
def test_the_trained_part_alone_is_clipped(make_scenario, model: str, ways: tuple[str, ...]) -> None:
    """One step on one record each: the norm is C, where clipping the whole gradient would leave less."""
    found = updates(Fleet.of(make_scenario(model, ALONE, *ways)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.01, rtol=1e-5)


def test_opacus_clips_the_trained_part_alone(make_scenario) -> None:
    little = "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=0.01, noise_multiplier=1e-4, delta=1e-5}"  # fmt: skip
    step = ONE_STEP.replace("}", ", trainer='opacus'}")
    for model in (FROZEN, LORA):
        found = updates(Fleet.of(make_scenario(model, ALONE, little, step)))
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.01, rtol=3e-3)


def test_opacus_refuses_trained_weights_around_an_adapter(make_scenario) -> None:
    model = LORA.replace("}}", "}, trainable=['3.bias']}")
    with pytest.raises(
        InputError, match='Opacus takes no layer within a trained one, and "3" has an adapter'
    ):
        Fleet.of(make_scenario(model, *WAYS["opacus"]))


def test_frozen_values_are_those_of_seed_0_at_every_seed(make_scenario) -> None:
    spec = Fleet.of(make_scenario(FROZEN)).model
    one, other = spec.build(1), spec.build(2)
    assert torch.equal(one[1].weight, other[1].weight)
    assert not torch.equal(one[3].weight, other[3].weight)
    assert not one[1].weight.requires_grad


NOISE = "privacy={trust='local', mechanism='%s', adjacency='replace-one', clipping_norm=1.0, epsilon=8.0, delta=1e-3}"  # fmt: skip
SHARES = "privacy={trust='distributed', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-3}"


@pytest.mark.parametrize("privacy", [NOISE % "auto", NOISE % "privunit", NOISE % "sqkr", SHARES])
def test_noise_is_that_of_the_bare_head(make_scenario, privacy: str) -> None:
    """Chosen and calibrated for its 16 parameters, and drawn for them."""
    fleet = Fleet.of(make_scenario(FROZEN, privacy))
    bare = Fleet.of(make_scenario("model.name=logistic", "data.features=7", privacy))
    assert fleet.plan.mechanism == bare.plan.mechanism
    assert getattr(fleet.plan.mechanism, "dimension", 16) == 16
    head = replace(on_features(fleet), plan=bare.plan)
    observe = "sum" if fleet.plan.shares else "each"
    noisy = updates(fleet, observe)
    assert np.array_equal(noisy, updates(head, observe))
    free = Fleet.of(make_scenario(FROZEN, "privacy={trust='none', clipping_norm=1.0}"))
    assert noisy.shape[-1] == fleet.plan.answer_length(16)
    if fleet.plan.shares is None:
        assert (np.abs(noisy - updates(free)).min(axis=0) > 0).all()


def test_a_plan_with_other_frozen_weights_is_refused(make_scenario) -> None:
    asked = make_scenario(FROZEN)
    fleet = Fleet.of(asked)
    part = fleet.plan.frozen
    assert part == FrozenPart(part.digest, 35, 16)
    other = replace(fleet.plan, frozen=replace(part, digest="0" * 32))
    request = TrainRequest(0, 0, 0, np.arange(3), flat_weights(fleet.module), other, "sum")
    with pytest.raises(Refusal, match=rf"another plan \(frozen: requested .*0000.*, agreed .*{part.digest}"):
        vet(fleet, request, [0], "sum")
    with pytest.raises(InputError, match=r"its frozen weights are not those of the plan \(here: digest"):
        Fleet.of(asked, population(asked.data), other)
    with pytest.raises(InputError, match="here: no frozen weights; in the plan: digest"):
        Fleet.of(make_scenario("model={name='mlp', hidden=[7]}"), population(asked.data), fleet.plan)
