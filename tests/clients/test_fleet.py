"""Where clients are trained, and how that is said."""

from __future__ import annotations

import pytest
import torch

from clients.fleet import Fleet
from fedprivacy.errors import InputError, ScenarioError


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
