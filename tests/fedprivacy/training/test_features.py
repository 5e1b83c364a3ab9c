"""The features of a frozen encoder: each record's by itself, and once."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import Tensor, nn

from fedprivacy.training.features import Features, encode


class Counted(nn.Linear):
    """An encoder that counts its calls, and raises on records with a negative number."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if bool((x < 0).any()):
            raise ValueError("negative")
        return super().forward(x)


def encoder() -> Counted:
    torch.manual_seed(1)
    return Counted(5, 3)


def test_the_features_of_a_record_depend_on_that_record_alone() -> None:
    x = torch.rand(40, 5)
    every = encode(encoder(), x)
    assert torch.equal(encode(encoder(), x[[7, 3]]), every[[7, 3]])
    assert encode(None, x) is x


def test_each_record_is_encoded_once_and_when_its_client_trains() -> None:
    made, x = encoder(), torch.rand(10, 5)
    features = Features(made, x)
    made.calls = 0
    for records in ([[0, 1], [4]], [[1, 4]], [[4, 9]]):
        values = features.of([np.array(rows) for rows in records])
    assert made.calls == 4
    assert torch.equal(values[[0, 1, 4, 9]], encode(made, x[[0, 1, 4, 9]]))
    assert not values[[2, 3, 5]].any()


def test_forked_processes_share_them() -> None:
    made, x = encoder(), torch.rand(10, 5)
    features = Features(made, x)
    if (child := os.fork()) == 0:
        features.of([np.arange(10)])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    made.calls = 0
    assert torch.equal(features.of([np.arange(10)]), encode(encoder(), x))
    assert made.calls == 0


def test_a_record_that_breaks_the_encoder_has_no_features_and_others_do() -> None:
    x = torch.rand(3, 5)
    x[1, 0] = -1.0
    values = Features(encoder(), x).of([np.arange(3)])
    assert values.isnan().all(dim=1).tolist() == [False, True, False]
