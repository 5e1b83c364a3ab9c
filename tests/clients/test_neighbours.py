"""What else is in a run changes no bit of a client's clipped update, and a sum moves by the sensitivity at most.

Sensitivities take each client's update as its own: what one client changes in a sum is its own part, which
clipping bounds. Where the rounding of one depended on who else is there, training at the edge of stability
would amplify a last digit to a whole update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from own_bits import bits_of_each

from benchmarks.faulty import TRIGGER
from clients.chunk_training import ChunkTrainer, client_chunks
from clients.fleet import Fleet
from clients.training_handler import answer
from clients.worker_pool import WorkerPool
from fedprivacy.data.datasets import Dataset
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import flat_weights
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from server.sampling import chunks

POOL = 240  # records of a client at most
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]
EDGE = (
    "data.clients=60",
    "data.records=1200",
    "model={name='mlp', hidden=[32]}",
    "training={learning_rate=4.0, epochs=100}",
)


def people(sizes: Sequence[int], features: int, classes: int, public: int = 0) -> Population:
    """Clients of these sizes, and public records; each has records of its own, whatever sizes others have."""
    x, y = [], []
    for client, size in enumerate((public, *sizes)):
        stream = np.random.default_rng(client)
        x.append(stream.standard_normal((POOL, features)).astype(np.float32)[:size])
        y.append(stream.integers(0, classes, POOL)[:size])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = Dataset(np.concatenate(x), np.concatenate(y), x[1], y[1], classes)
    return Population(data, Partition(public + np.arange(offsets[-1]), offsets, np.arange(public)))


def updates(fleet: Fleet, clients: Sequence[int], observe: str) -> np.ndarray:
    """The clipped updates, or their sum, of some clients in one message."""
    weights = flat_weights(fleet.model.build(3))
    request = TrainRequest(0, 0, 0, np.array(clients), weights, fleet.plan, observe)
    return answer(fleet, None, request)[0].updates


@pytest.mark.parametrize("device", DEVICES)
def test_at_the_edge_of_stability_neighbours_stay_where_they_are(make_scenario, device: str) -> None:
    """One client's 20 records become 200: no other update moves, and the sum by 2C at most.

    It comes before others of its message: cut in the order of clients, the last would be in a call of its own.
    """
    asked = make_scenario(*EDGE, f"training.device={device}")
    fleets = [Fleet.of(asked, people([20] * 30 + [last] + [20] * 29, 64, 10)) for last in (20, 200)]
    one, other = (updates(fleet, range(60), "each") for fleet in fleets)
    assert np.flatnonzero((one != other).any(axis=1)).tolist() == [30]
    one, other = (updates(fleet, range(60), "sum") for fleet in fleets)
    assert 0.1 < np.linalg.norm(one - other) <= 2.0


def test_one_client_more_changes_no_bit(make_scenario) -> None:
    """Of two, three, nine or sixteen: calls are as large for all of them."""
    found = []
    for clients in (2, 3, 9, 16):
        asked = make_scenario(*EDGE[2:], f"data.clients={clients}", "data.records=1200")
        fleet = Fleet.of(asked, people([20] * clients, 64, 10))
        fleet = replace(fleet, plan=replace(fleet.plan, mechanism=None, trust="none"))
        found.append((fleet.shape(20), updates(fleet, range(2), "each").tobytes()))
    assert found == found[:1] * 4


FEATURES, CLASSES, CLIENTS = 64, 3, 9
MODELS = {
    "logistic": "model={name='logistic'}",
    "mlp": "model={name='mlp', hidden=[11]}",
    "wide": "model={name='mlp', hidden=[200], activation='tanh'}",
    "cnn": "model={name='cnn', channels=[2], kernel_size=3, hidden=[5]}",
    "narrow": "model={name='mlp', hidden=[7], activation='tanh'}",
    "frozen": "model={name='mlp', hidden=[11], freeze=['1.*']}",
    "frozen-cnn": "model={name='cnn', channels=[2], kernel_size=3, hidden=[5], freeze=['1.*', '5.*']}",
    "frozen-head": "model={name='mlp', hidden=[7], activation='tanh', freeze=['3.*']}",
    "adapters": "model={name='mlp', hidden=[11], lora={rank=3, alpha=6.0}, trainable=['3.bias']}",
    "code": "model={name='code', factory='benchmarks.faulty:make', options={harm='raise', mark='none'}}",
    "killer": "model={name='code', factory='benchmarks.faulty:make', options={harm='kill', mark='none'}}",
}
EXAMPLE = (
    "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-5}"
)
RECORDS = "batches='poisson', rate=0.5, learning_rate=0.5"
TRAINING = {
    "whole": ("training={learning_rate=2.0, epochs=12}",),
    "batches": ("training={learning_rate=1.0, epochs=3, batch_size=5, momentum=0.9}",),
    "pulled": ("training={learning_rate=0.5, epochs=2, batch_size=7, weight_decay=0.1, proximal=0.5}",),
    "drawn": ("training={batches='with-replacement', steps=4, batch_size=3, learning_rate=1.0}",),
    "rare": ("training={batches='poisson', rate=0.1, steps=2, learning_rate=2.0}",),
    "adversarial": ("training={learning_rate=1.0, epochs=4, adversarial=2.0, adversarial_first=2}",),
    "example": (EXAMPLE, f"training={{{RECORDS}, steps=4, momentum=0.5}}"),
    "sums": (EXAMPLE.replace("local", "central"), f"training={{{RECORDS}, steps=1}}"),
    "opacus": (EXAMPLE, f"training={{{RECORDS}, steps=2, trainer='opacus'}}"),
}
# Each model, way to train, cut (hosts, chunk size), number of workers and way to look occurs with several of
# each other; the first case of each model is in every run of the tests. "parts" is what a sum is made of, in this process; "each" the updates that nodes reply with.
CASES = [
    ("logistic", "whole", (1, 9), 1, "parts"),
    ("logistic", "batches", (3, 2), 2, "each"),
    ("logistic", "sums", (1, 4), 1, "each"),
    ("logistic", "opacus", (3, 9), 2, "each"),
    ("mlp", "whole", (3, 9), 2, "each"),
    ("mlp", "pulled", (1, 9), 1, "parts"),
    ("mlp", "adversarial", (1, 4), 1, "parts"),
    ("mlp", "example", (1, 9), 1, "each"),
    ("wide", "whole", (1, 4), 1, "parts"),
    ("wide", "drawn", (1, 9), 2, "each"),
    ("wide", "example", (3, 9), 2, "each"),
    ("cnn", "batches", (1, 9), 1, "parts"),
    ("cnn", "drawn", (3, 9), 1, "parts"),
    ("cnn", "sums", (1, 9), 2, "each"),
    ("narrow", "rare", (1, 9), 1, "each"),
    ("narrow", "whole", (1, 4), 1, "parts"),
    ("frozen", "whole", (1, 9), 2, "each"),
    ("frozen", "example", (3, 9), 2, "each"),
    ("frozen-cnn", "sums", (1, 9), 2, "each"),
    ("adapters", "rare", (3, 2), 1, "parts"),
    ("adapters", "example", (1, 9), 2, "each"),
    ("frozen-head", "batches", (1, 4), 1, "parts"),
    ("code", "pulled", (1, 9), 1, "parts"),
    ("code", "adversarial", (3, 9), 2, "each"),
    ("code", "opacus", (1, 4), 1, "each"),
    ("killer", "whole", (1, 9), 2, "each"),
    ("killer", "example", (1, 4), 2, "each"),
]
FIRST = {case[0]: case for case in reversed(CASES)}.values()
SIZES = some.sampled_from([1, 3, 6, 7, 19, 20, 60])


def fleet_of(make_scenario, sizes: Sequence[int], cut: tuple[int, int], *overrides: str) -> Fleet:
    hosts, chunk = cut
    data = f"data={{name='digits', partition='iid', clients={CLIENTS}, public_fraction=0.1}}"
    asked = make_scenario(data, f"federation={{hosts={hosts}, chunk_size={chunk}}}", *overrides)
    return Fleet.of(asked, people(sizes, FEATURES, CLASSES, public=12), allow_code=True)


def harmed(fleet: Fleet, client: int, model: str) -> Fleet:
    """A client's first record kills who trains on it, or has no such class, so that its call raises."""
    data, record = fleet.people.dataset, fleet.people.partition.records(client)[0]
    x, y = data.x.copy(), data.y.copy()
    if model == "killer":
        x[record, 0] = TRIGGER
    else:
        y[record] = 99
    return replace(fleet, people=replace(fleet.people, dataset=replace(data, x=x, y=y)))


def bits_of(fleet: Fleet, cohort: Sequence[int], cut: tuple[int, int], workers: int, look: str) -> dict:
    """All bits of each client of a cohort that answers, however it was cut into messages."""
    weights, (hosts, size), observe = (
        flat_weights(fleet.model.build(3)),
        cut,
        "each" if look == "each" else "sum",
    )
    bits: dict[int, list[bytes]] = {}
    with WorkerPool(workers) as pool:
        for chunk in chunks(np.array(cohort), hosts=hosts, size=size):
            request = TrainRequest(0, chunk.host, chunk.number, chunk.clients, weights, fleet.plan, observe)
            if look == "each":
                reply, _ = answer(fleet, None, request, range(hosts), pool)
                rows = [[row.tobytes()] for row in reply.updates]
                bits |= dict(zip(reply.clients.tolist(), rows, strict=True))
                continue
            for piece in client_chunks(fleet, request.clients, "sum"):
                rows = bits_of_each(ChunkTrainer(fleet, request).trained(piece).updates)
                bits |= dict(zip(piece.tolist(), rows, strict=True))
    return bits


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("model", "training", "cut", "workers", "look"),
    [pytest.param(*case, marks=[] if case in FIRST else pytest.mark.exhaustive) for case in CASES],
)
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    kept=some.sampled_from([6, 19, 20]),
    sizes=some.lists(SIZES, min_size=CLIENTS - 1, max_size=CLIENTS - 1),
    others=some.lists(SIZES, min_size=CLIENTS - 1, max_size=CLIENTS - 1),
    place=some.integers(0, CLIENTS - 1),
    cohort=some.sets(some.integers(0, CLIENTS - 1), min_size=3),
    broken=some.integers(0, CLIENTS - 1),
    recut=some.sampled_from([(1, 9), (3, 2), (2, 4)]),
)
def test_what_else_is_in_a_run_changes_no_bit_of_an_update(
    make_scenario,
    model: str,
    training: str,
    cut,
    workers: int,
    look: str,
    device: str,
    kept,
    sizes,
    others,
    place,
    cohort,
    broken,
    recut,
) -> None:
    """Other sizes beside it, a part of the cohort, one that raises or dies, other messages: the same bits."""
    of_examples = training in ("example", "sums", "opacus")
    if device == "cuda" and (of_examples or workers > 1 or model == "killer"):
        pytest.skip("DP-SGD and worker processes are on the CPU")
    if training == "opacus":
        pytest.importorskip("opacus")
    # One that has everybody's size: alone in a class it would share no call.
    sizes, others = [kept, *sizes[1:]], [kept, *others[1:]]
    asked = (MODELS[model], *TRAINING[training], *(() if of_examples else (f"training.device={device}",)))
    here, there = (
        fleet_of(make_scenario, [*own[:place], kept, *own[place:]], cut_so, *asked)
        for own, cut_so in ((sizes, cut), (others, recut))
    )
    there = replace(there, streams=here.streams)  # noise is keyed by the data: of this run the same
    if broken != place:
        there = harmed(there, broken, model)
    whole = bits_of(here, range(CLIENTS), cut, 1, look)
    fewer = bits_of(there, sorted(cohort | {place, broken}), recut, workers, look)
    assert whole[place] == fewer[place]
