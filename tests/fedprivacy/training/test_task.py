"""The batches of a chunk of clients."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import Batches, PoissonBatches, ShuffledBatches
from fedprivacy.training.task import LocalTraining, Task, size_class, size_classes


def task(batches: Batches, streams: Streams, round: int = 0) -> Task:
    records, options = [np.arange(7), np.arange(7, 9)], LocalTraining(batches, 0.1)
    x, y = torch.zeros(9, 1), torch.zeros(9, dtype=torch.int64)
    sent = np.zeros(2, np.float32)
    return Task(nn.Linear(1, 1), sent, x, y, records, np.arange(2), options, streams, round)


def test_every_record_is_used_once_an_epoch_and_batches_are_reshuffled() -> None:
    index, used, steps = task(ShuffledBatches(3, 2), Streams(11)).batches(secret=False)
    assert steps.tolist() == [12, 3]
    assert index.shape == (2, 12, 2)
    first, second = (np.sort(index[row][used[row]]) for row in (0, 1))
    assert np.array_equal(first, np.repeat(np.arange(7), 3))
    assert np.array_equal(second, np.repeat([7, 8], 3))
    epochs = index[0].reshape(3, 4, 2)
    assert not np.array_equal(epochs[0], epochs[1])
    assert set(index[1].reshape(-1)) == {7, 8}


def test_what_is_accounted_for_is_drawn_anew_in_each_run_and_round() -> None:
    """Two runs on the same seed may share the order of an epoch, but not a draw that amplifies both."""
    sampler, runs = PoissonBatches(40, rate=0.5), [Streams(11, "one"), Streams(11, "other")]

    def used(streams: Streams, *, secret: bool, round: int = 0) -> np.ndarray:
        index, counted, _ = task(sampler, streams, round).batches(secret=secret)
        present = np.zeros((2, 40, 9), dtype=np.bool_)
        np.put_along_axis(present, index, counted, axis=2)  # padding comes last only where nothing is drawn
        return present

    assert np.array_equal(*(used(run, secret=False) for run in runs))
    assert np.array_equal(*(used(runs[0], secret=True) for _ in range(2)))
    for other in (used(runs[1], secret=True), used(runs[0], secret=True, round=1)):
        agree = (other[0, :, :7] == used(runs[0], secret=True)[0, :, :7]).mean()
        assert abs(agree - 0.5) < 5 * 0.5 / np.sqrt(280)  # of 280 coins; false alarms: 1e-6


def test_size_classes_are_four_between_powers_of_two() -> None:
    counts = np.arange(1, 5000)
    classes = size_classes(counts)
    assert classes.tolist() == [size_class(count) for count in counts.tolist()]
    assert (classes >= counts).all()
    assert (np.diff(classes) >= 0).all()
    assert np.unique(classes[counts > 512]).tolist()[:6] == [640, 768, 896, 1024, 1280, 1536]
    assert (classes[:8] == counts[:8]).all()
