from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import TrainReply, TrainRequest
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling

PLAN = Plan("central", "client", "replace-one", 10, 2, AllSampling(), Gaussian(1.0, 1.0), 1e-3)
REQUEST = TrainRequest(1, 0, 2, np.arange(3), np.zeros(4, np.float32), PLAN, "sum")


def test_a_request_survives_its_parts() -> None:
    again = TrainRequest.of(*REQUEST.parts())
    assert again.plan == PLAN
    assert (again.round, again.host, again.chunk, again.observe) == (1, 0, 2, "sum")
    assert np.array_equal(again.clients, REQUEST.clients)


@pytest.mark.parametrize(
    ("arrays", "values"),
    [
        ({"weights": np.zeros(4)}, {}),
        ({"clients": np.zeros((2, 2), np.int64)}, {}),
        ({}, {"plan": "{}"}),
        ({}, {"plan": "not JSON"}),
        ({}, {"round": "one"}),
        ({}, {"observe": "all"}),
    ],
)
def test_damaged_requests_are_input_errors(arrays: dict, values: dict) -> None:
    whole_arrays, whole_values = REQUEST.parts()
    with pytest.raises(InputError, match="not a"):
        TrainRequest.of(whole_arrays | arrays, whole_values | values)


@pytest.mark.parametrize(
    ("updates", "observe"),
    [
        (np.zeros(5), "sum"),
        (np.zeros(4, np.float32), "sum"),
        (np.zeros((2, 4)), "each"),
        (np.zeros(4), "each"),
    ],
)
def test_replies_of_the_wrong_shape_are_errors(updates: np.ndarray, observe: str) -> None:
    parts = TrainReply(updates, np.arange(3)).parts()
    with pytest.raises(FedPrivacyError, match="not a training reply"):
        TrainReply.of(*parts, parameters=4, observe=observe)


def test_a_reply_survives_its_parts() -> None:
    reply = TrainReply(
        np.ones(4), np.arange(3), 2, Faults({"not_finite": 1, "raised": 1}, "client 5: broken")
    )
    again = TrainReply.of(*reply.parts(), parameters=4, observe="sum")
    assert (again.refused, again.faults) == (2, Faults({"not_finite": 1, "raised": 1}, "client 5: broken"))
