"""The frozen part that a stored plan states: what follows from the scenario must be there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.plan.from_scenario import plan_of, stored_plan

MLP = "model={name='mlp', hidden=[7], %s}"
SHARES = "privacy={trust='distributed', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-3}"
CHOICES = ["freeze=['1.*']", "trainable=['3.*']", "lora={rank=2, alpha=4.0}"]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("mechanism", ["privacy.noise_multiplier=1.0", SHARES])
def test_a_stored_part_has_the_sizes_of_the_model(make_scenario, choice: str, mechanism: str) -> None:
    scenario = make_scenario(MLP % choice, mechanism)
    plan = plan_of(scenario)
    part = plan.frozen
    assert part is not None
    assert stored_plan(scenario, plan) == plan
    with pytest.raises(InputError, match=r"plan\.frozen: missing"):
        stored_plan(scenario, replace(plan, frozen=None))
    for change in (
        {"trained": part.trained + 1},
        {"frozen": part.frozen + 1},
        {"buffers": part.buffers + 1},
    ):
        with pytest.raises(InputError, match=r"plan\.frozen(\.trained: is|: has)"):
            stored_plan(scenario, replace(plan, frozen=replace(part, **change)))


@pytest.mark.parametrize("choice", CHOICES)
def test_records_of_a_file_leave_the_sizes_open(make_scenario, tmp_path: Path, choice: str) -> None:
    """But not whether there is a part, nor the length of an update."""
    path = tmp_path / "data.npz"
    x, y = np.zeros((24, 5), np.float32), np.arange(24) % 2
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
    data = f"data={{name='npz', path='{path}', partition='iid', clients=12}}"
    scenario = make_scenario(data, MLP % choice, SHARES)
    plan = plan_of(scenario)
    path.unlink()
    assert stored_plan(scenario, plan) == plan
    with pytest.raises(InputError, match=r"plan\.frozen: missing"):
        stored_plan(scenario, replace(plan, frozen=None))
    longer = replace(plan.frozen, trained=plan.frozen.trained + 1)
    with pytest.raises(InputError, match=r"plan\.frozen\.trained: is"):
        stored_plan(scenario, replace(plan, frozen=longer))


@pytest.mark.parametrize("choice", ["hidden=[7]", "trainable=['*']"])
def test_a_model_by_name_that_is_trained_whole_has_none(make_scenario, choice: str) -> None:
    scenario = make_scenario("model={name='mlp', hidden=[7]}" if "hidden" in choice else MLP % choice)
    plan = plan_of(scenario)
    assert plan.frozen is None
    assert stored_plan(scenario, plan) == plan
    with pytest.raises(InputError, match=r"plan\.frozen: the scenario's model has no frozen parameters"):
        stored_plan(scenario, replace(plan, frozen=FrozenPart("0" * 32, 0, 51)))


def test_the_words_count_buffers_apart() -> None:
    assert FrozenPart("d", 0, 5).words is None
    assert FrozenPart("d", 0, 5, "f").words == "The model starts with weights of a file (digest f)."
    found = FrozenPart("d", 1_000, 5, None, 12).words
    assert found is not None
    assert found.startswith("5 of 1,005 parameters are trained, beside 12 values of buffers. The rest of the")
