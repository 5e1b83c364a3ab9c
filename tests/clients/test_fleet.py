"""Where clients are trained, and how that is said."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clients.chunk_training import client_chunks
from clients.fleet import Fleet
from clients.training_handler import answer
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import flat_weights
from server.sampling import chunks


def test_a_gpu_that_is_not_there_is_an_error_of_the_scenario(make_scenario, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        InputError, match=r'training\.device = "cuda": torch finds no GPU here. Set device = "cpu"'
    ):
        Fleet.of(make_scenario("training.device=cuda"))


def test_dp_sgd_is_computed_on_the_cpu(make_scenario) -> None:
    with pytest.raises(ScenarioError, match=r"training\.device.*DP-SGD is computed on the CPU"):
        make_scenario("training.device=cuda", "privacy.unit=example")


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ((), "layer by layer (with 5 records: 1 formed), calls of 16 clients of mean size, on cpu"),
        (
            ('model={name="mlp", hidden=[500]}', "data.features=900"),
            "layer by layer (with 5 records: 1 factored, 3 ",
        ),
    ],
)
def test_a_run_says_how_its_clients_are_trained(make_scenario, words, way: str) -> None:
    assert Fleet.of(make_scenario(*words)).way.startswith(way)


EXAMPLE = (
    "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-5}",
    "training={batches='poisson', rate=0.5, steps=2, learning_rate=0.5}",
)
CODE = "model={name='code', factory='benchmarks.faulty:make', options={harm='raise', mark='none'}}"
POISSON = ("sampling.name=poisson", "sampling.rate=1.0")


@pytest.mark.parametrize(
    ("words", "dense"),
    [
        (("sampling.name=all",), True),
        (("sampling.name=all", "federation.hosts=10"), True),
        (POISSON, True),
        (("sampling.name=fixed", "sampling.cohort=1000"), True),
        (("sampling.name=fixed", "sampling.cohort=999"), False),
        (('sampling={name="separated", cohort=1000, separation=1}',), True),
        ((*POISSON, "federation.chunk_size=256"), True),
        ((*POISSON, "federation.chunk_size=255"), False),
        ((*POISSON, "federation.chunk_size=10"), False),
        ((*POISSON, "federation.hosts=10"), False),
        ((*POISSON, "data.partition=dirichlet", "data.alpha=1.0"), False),
    ],
)
def test_larger_calls_have_few_empty_places(make_scenario, words, dense: bool) -> None:
    scenario = make_scenario(
        "privacy.delta=1e-5",
        "data.clients=1000",
        "data.records=20000",
        "data.features=100",
        'model={name="mlp", hidden=[2500]}',
        "federation.chunk_size=1024",
        *words,
    )
    fleet, cohort = Fleet.of(scenario), np.arange(1000)
    assert fleet.dense == dense
    if scenario.data.partition != "iid":
        return
    shape = fleet.shape(20)
    assert shape.places == (55 if dense else 13)
    federation = scenario.federation
    messages = chunks(cohort, hosts=federation.hosts, size=federation.chunk_size)
    calls = sum(len(client_chunks(fleet, message.clients, "sum")) for message in messages)
    if scenario.sampling.name != "all":
        assert calls * shape.places < 1400, "trained places of 1000 clients"


@pytest.mark.parametrize(
    ("overrides", "places"),
    [
        (("federation.chunk_size=1",), 1),
        (("federation.hosts=40",), 1),
        (("federation.chunk_size=1", *EXAMPLE), 1),
        (("federation.chunk_size=2",), 64),
        (("federation.hosts=39",), 64),
        (("federation.chunk_size=1", "training.adversarial=1.0", "data.public_fraction=0.1"), 64),
        (("federation.chunk_size=1", CODE), 64),
    ],
)
def test_clients_with_messages_of_their_own_are_trained_without_copies(
    make_scenario, overrides, places: int
) -> None:
    """Not where a client alone is trained in another way, to other bits."""
    scenario = make_scenario("data.clients=40", "data.records=400", "sampling.name=all", *overrides)
    fleet = Fleet.of(scenario, allow_code=True)
    assert fleet.shape(8).places == places


@pytest.mark.parametrize("overrides", [(), EXAMPLE])
def test_a_client_alone_has_the_bits_that_it_has_beside_others(make_scenario, overrides) -> None:
    """So that results of attacks do not depend on how a cohort was cut into messages."""
    updates = []
    for chunk_size in (1, 40):
        scenario = make_scenario(
            "data.clients=40", "data.records=400", f"federation.chunk_size={chunk_size}", *overrides
        )
        fleet = Fleet.of(scenario)
        weights = flat_weights(fleet.model.build(3))
        request = TrainRequest(0, 0, 0, np.array([17]), weights, fleet.plan, "sum")
        updates.append(answer(fleet, None, request)[0].updates)
    # A run is cut in one way, so other kernels that differ in the last digits break no promise.
    same_kernels = torch.backends.cpu.get_cpu_capability() != "AVX512"
    assert np.array_equal(*updates) if same_kernels else np.allclose(*updates, atol=1e-6)
