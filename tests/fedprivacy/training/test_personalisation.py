"""Personal models are those of plain SGD from each client's own weights, and of each update's own part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from fedprivacy.models.by_name import flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario import Mlp
from fedprivacy.scenario.training import ShuffledTraining
from fedprivacy.training.cohort import train_cohort
from fedprivacy.training.model_spec import model_spec
from fedprivacy.training.personalisation import MODES, Partial
from fedprivacy.training.task import LocalTraining, Task

SPEC = model_spec(Mlp(name="mlp", hidden=(5,)), (4,), 3, shared=["1.*"])
WHOLE = SPEC.of_client(SPEC.build(0))
SIZES = [5, 1, 7]
PROXIMAL = 0.8


def task(**options: float) -> Task:
    """Three clients, each with a full batch a step, so that a loop by hand needs no draws."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((13, 4)).astype(np.float32))
    y = torch.from_numpy(rng.integers(0, 3, 13))
    records = np.split(np.arange(13), np.cumsum(SIZES)[:-1])
    training = LocalTraining(ShuffledBatches(3, None), 0.3, **options)
    sent = flat_weights(WHOLE) + np.float32(0.1)
    return Task(WHOLE, sent, x, y, records, np.arange(3), training, Streams(1), 2)


def starts() -> np.ndarray:
    rng = np.random.default_rng(1)
    return (flat_weights(WHOLE) + rng.normal(0, 0.3, (3, len(flat_weights(WHOLE))))).astype(np.float32)


def by_hand(work: Task, start: np.ndarray, client: int, steps: int = 3, proximal: float = 0.0) -> np.ndarray:
    """A client's weights after full-batch steps of plain SGD, pulled to the weights that were sent."""
    weights = torch.tensor(start)
    shapes = [value.shape for value in WHOLE.parameters()]
    names = [name for name, _ in WHOLE.named_parameters()]
    rows = torch.from_numpy(work.records[client])
    for _ in range(steps):
        weights = weights.detach().requires_grad_(True)
        parts = weights.split([shape.numel() for shape in shapes])
        parameters = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        loss = cross_entropy(torch.func.functional_call(WHOLE, parameters, work.x[rows]), work.y[rows])
        [gradient] = torch.autograd.grad(loss, weights)
        weights = weights - 0.3 * (gradient + proximal * (weights - torch.tensor(work.weights)))
    return weights.detach().numpy()


def call(work: Task) -> tuple:
    return train_cohort(work), np.zeros(len(work.clients), np.int64)


@pytest.mark.parametrize("proximal", [0.0, PROXIMAL])
def test_clients_train_from_weights_of_their_own(proximal: float) -> None:
    work = replace(task(proximal=proximal), starts=starts())
    moved = starts() + train_cohort(work).stack().numpy()
    for client in range(3):
        expected = by_hand(work, starts()[client], client, proximal=proximal)
        assert np.abs(moved[client] - expected).max() < 1e-5


def test_a_client_alone_in_its_call_trains_from_its_own_weights() -> None:
    from fedprivacy.training.task import Shape

    work = replace(task(), starts=starts()).at(
        np.array([2]), Shape(1, 8, 8, 8), task().positions(secret=False)
    )
    moved = starts()[2] + train_cohort(work).stack().numpy()[0]
    assert np.abs(moved - by_hand(task(), starts()[2], 2)).max() < 1e-5


def test_a_partial_update_has_the_shared_part_alone() -> None:
    partial = Partial.of(ShuffledTraining(personal="partial", shared=("1.*",)), SPEC, WHOLE)
    assert (partial.size, int(partial.shared.sum())) == (18, 25)
    whole = starts()
    sent = whole[0, partial.shared]
    kept = whole[:, ~partial.shared]
    work = replace(task(), weights=sent)
    updates, _, after = partial.train(work, kept, call)
    for client in range(3):
        start = np.empty(43, np.float32)
        start[partial.shared], start[~partial.shared] = sent, kept[client]
        expected = by_hand(replace(work, weights=start), start, client)
        got = sent + updates.stack()[client].numpy()
        assert np.abs(got - expected[partial.shared]).max() < 1e-5
        assert np.abs(after[client] - expected[~partial.shared]).max() < 1e-5
    assert updates.stack().shape == (3, 25)


def test_a_client_that_has_not_taken_part_has_the_public_start() -> None:
    """It is the same at every seed of a run, which its noise depends on."""
    partial = Partial.of(ShuffledTraining(personal="partial", shared=("1.*",)), SPEC, WHOLE)
    for seed in (0, 7):
        there = Partial.of(
            ShuffledTraining(personal="partial", shared=("1.*",)), SPEC, SPEC.of_client(SPEC.build(seed))
        )
        assert np.array_equal(there.initial(np.ones(25, np.float32)), partial.start)
    sent = np.arange(25, dtype=np.float32)
    assert np.array_equal(partial.common(sent)[partial.shared], sent)
    assert np.array_equal(partial.common(sent)[~partial.shared], partial.start)


def test_ditto_pulls_its_copy_to_the_sent_model() -> None:
    ditto = MODES["ditto"].of(ShuffledTraining(personal="ditto", personal_proximal=PROXIMAL), SPEC, WHOLE)
    after = ditto.train(task(), starts(), call)
    for client in range(3):
        expected = by_hand(task(), starts()[client], client, proximal=PROXIMAL)
        assert np.abs(after[client] - expected).max() < 1e-5


def test_fine_tuning_goes_through_the_records_after_the_run() -> None:
    tuning = MODES["fine-tune"].of(ShuffledTraining(personal="fine-tune", personal_epochs=6), SPEC, WHOLE)
    models = tuning.models(task(), np.zeros((3, 0), np.float32), call)
    for client in range(3):
        expected = by_hand(task(), task().weights, client, steps=6)
        assert np.abs(models[client] - expected).max() < 1e-5


def test_a_personal_part_that_breaks_stays_what_it_was() -> None:
    partial = Partial.of(ShuffledTraining(personal="partial", shared=("1.*",)), SPEC, WHOLE)
    work = replace(task(), weights=flat_weights(WHOLE)[partial.shared])
    work.x[0] = float("nan")  # of client 0
    kept = starts()[:, ~partial.shared]
    _, _, after = partial.train(work, kept, call)
    assert np.array_equal(after[0], kept[0])
    assert not np.array_equal(after[1], kept[1])
    assert np.isfinite(after).all()
