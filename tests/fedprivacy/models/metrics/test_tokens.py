"""Metrics of the next token: against torch, and where one is not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedprivacy.data.tasks import NEXT_TOKEN
from fedprivacy.models.losses import NextToken
from fedprivacy.models.metrics.registry import METRICS, measure
from fedprivacy.models.prediction import Predictions

ALL = [metric for metric in METRICS if NEXT_TOKEN in metric.tasks]


def test_perplexity_is_the_exponential_of_the_loss() -> None:
    stream = np.random.default_rng(0)
    outputs = torch.from_numpy(stream.normal(size=(20, 5, 4)))
    targets = stream.integers(0, 4, (20, 5))
    found = measure(ALL, [(Predictions.of_outputs(outputs, NEXT_TOKEN), targets)])
    loss = float(NextToken().losses(outputs, torch.from_numpy(targets)).mean())
    assert found["perplexity"] == pytest.approx(math.exp(loss))
    assert found["token_accuracy"] == (outputs.argmax(dim=2).numpy() == targets).mean()


def test_guessing_has_the_perplexity_of_the_number_of_tokens() -> None:
    outputs = Predictions.of_outputs(torch.zeros(3, 2, 7), NEXT_TOKEN)
    assert measure(ALL, [(outputs, np.ones((3, 2), np.int64))])["perplexity"] == pytest.approx(7)


@pytest.mark.parametrize("excluded", [0.0, np.nan])
def test_a_token_that_the_model_excludes_leaves_no_perplexity(excluded: float) -> None:
    table = np.full((2, 3, 2), 0.5)
    table[1, 2] = (excluded, 1.0)
    named = np.zeros((2, 3), np.int64)
    named[1, 2] = 1
    found = measure(ALL, [(Predictions(named, table), np.zeros((2, 3), np.int64))])
    assert found == {"token_accuracy": 5 / 6, "perplexity": None}
