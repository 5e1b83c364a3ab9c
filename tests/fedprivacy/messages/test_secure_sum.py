"""Requests for steps of a secure sum: what they hold is what was sent, or they are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.messages.secure_sum import StepReply, SumRequest, new_run, round_name
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.secure_sum.transcript import Phase

WEIGHTS = np.arange(4, dtype=np.float32)


@pytest.fixture
def request_for(make_scenario) -> Callable[..., SumRequest]:
    plan = plan_of(make_scenario())

    def make(phase: Phase = Phase.SHARES, **changes: object) -> SumRequest:
        weights = WEIGHTS if phase is Phase.INPUTS else None
        name = round_name("0" * 32, 2, WEIGHTS)
        request = SumRequest(phase, 2, name, 1, 4, 10**30, plan, b"bytes", weights)
        return replace(request, **changes)  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize("phase", list(Phase))
def test_a_request_is_read_as_it_was_written(request_for: Callable[..., SumRequest], phase: Phase) -> None:
    request = request_for(phase)
    read = SumRequest.of(*request.parts())
    assert read.form == request.form
    assert replace(read, weights=None) == replace(request, weights=None)
    if phase is Phase.INPUTS:
        np.testing.assert_array_equal(read.training().weights, WEIGHTS)
        assert (read.training().round, read.training().host, read.training().observe) == (2, 1, "sum")
        assert read.training().clients.tolist() == [4]
    else:
        with pytest.raises(ValueError, match="only the phase of inputs"):
            read.training()


WRONG = {
    "no phase": {"phase": 9},
    "a phase that is no number": {"phase": "keys"},
    "another round": {"round": 3},
    "a name of its own": {"round_id": "a run, round 2"},
    "a client below 0": {"client": -1},
    "no message": {"message": None},
    "a message as text": {"message": "bytes"},
    "a message by its length": {"message": 5},
    "a seed that is none": {"seed": "x"},
    "no plan": {"plan": "{}"},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_request_is_refused(request_for: Callable[..., SumRequest], wrong: str) -> None:
    arrays, values = request_for().parts()
    with pytest.raises(InputError, match=r"not a (request of a secure sum|privacy plan)"):
        SumRequest.of(arrays, values | WRONG[wrong])
    for missing in values:
        with pytest.raises(InputError, match="not a request of a secure sum"):
            SumRequest.of(arrays, {key: value for key, value in values.items() if key != missing})


def test_a_model_is_that_of_the_rounds_name_and_for_inputs_alone(
    request_for: Callable[..., SumRequest],
) -> None:
    values = request_for(Phase.INPUTS).parts()[1]
    other = WEIGHTS.copy()
    other[3] = np.nextafter(other[3], np.float32(9))
    for weights in (other, WEIGHTS.astype(np.float64), WEIGHTS[:3], WEIGHTS.reshape(2, 2)):
        with pytest.raises(InputError, match="its model is not that of the round"):
            SumRequest.of({"weights": weights}, values)
    with pytest.raises(InputError, match="for the phase of inputs, and for no other"):
        SumRequest.of({}, values)
    with pytest.raises(InputError, match="for the phase of inputs, and for no other"):
        SumRequest.of({"weights": WEIGHTS}, request_for(Phase.KEYS).parts()[1])


def test_the_bytes_of_two_requests_differ_where_any_value_does(
    request_for: Callable[..., SumRequest],
) -> None:
    plan = request_for().plan
    requests = [
        request_for(),
        request_for(Phase.KEYS),
        request_for(Phase.INPUTS),
        request_for(Phase.INPUTS, weights=-WEIGHTS),
        request_for(host=2),
        request_for(client=5),
        request_for(seed=1),
        request_for(message=b"byte"),
        request_for(round=3),
        request_for(round_id="another"),
        request_for(plan=replace(plan, rounds=plan.rounds + 1)),
    ]
    assert len({request.form for request in requests}) == len(requests)


def test_runs_have_names_of_their_own() -> None:
    assert len({round_name(new_run(), 0, WEIGHTS) for _ in range(10)}) == 10


def test_a_reply_is_read_as_it_was_written_or_is_none() -> None:
    for reply in (StepReply(b"bytes"), StepReply(b"", refused=True)):
        assert StepReply.of(*reply.parts()) == reply
    for values in ({}, {"message": b""}, {"message": "text", "refused": False}, {"refused": True}):
        with pytest.raises(FedPrivacyError, match="not the reply to a step"):
            StepReply.of({}, values)
