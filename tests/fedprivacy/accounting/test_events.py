"""Events are stored as plain data, read back without trust, and flattened without changing their meaning."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.accounting.encoded_updates import EncodedStudentDpEvent
from fedprivacy.accounting.events import MAX_DEPTH, from_json, releases, to_json
from fedprivacy.accounting.integer_sums import DiscreteGaussianSumDpEvent, SkellamDpEvent
from fedprivacy.errors import InputError

GAUSSIAN = {"type": "GaussianDpEvent", "noise_multiplier": 4.0}
STUDENT = {
    "type": "EncodedStudentDpEvent",
    "noise_multiplier": 4.0,
    "degrees": 9.0,
    "coordinates": 3,
    "dimension": 7,
}
ALL_KINDS = [
    dp.NoOpDpEvent(),
    dp.NonPrivateDpEvent(),
    dp.UnsupportedDpEvent(),
    dp.GaussianDpEvent(4.0),
    dp.LaplaceDpEvent(2.0),
    dp.DiscreteLaplaceDpEvent(0.5, 2),
    dp.RandomizedResponseDpEvent(0.5, 2),
    EncodedStudentDpEvent(4.0, 9.0, 3, 7),
    SkellamDpEvent(900.0, 25, 8),
    DiscreteGaussianSumDpEvent(9.0, 100, 25, 8),
    dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 100),
    dp.ComposedDpEvent([dp.GaussianDpEvent(4.0), dp.NoOpDpEvent()]),
    dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(4.0)),
    dp.SampledWithReplacementDpEvent(10, 20, dp.GaussianDpEvent(4.0)),
    dp.SampledWithoutReplacementDpEvent(1000, 100, dp.GaussianDpEvent(4.0)),
    dp.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 150, 4.0),
    dp.SingleEpochTreeAggregationDpEvent(4.0, 8),
    dp.SingleEpochTreeAggregationDpEvent(4.0, [8, 4]),
    dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(4.0), 10.0, 1.0),
    dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(4.0), 10.0, math.inf),
]


@pytest.mark.parametrize("event", ALL_KINDS, ids=lambda event: type(event).__name__)
def test_an_event_survives_strict_json(event: dp.DpEvent) -> None:
    text = json.dumps(to_json(event), allow_nan=False)
    assert from_json(json.loads(text)) == event


def test_the_form_is_the_class_name_and_its_fields() -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(4.0)), 100)
    assert to_json(event) == {
        "type": "SelfComposedDpEvent",
        "count": 100,
        "event": {"type": "PoissonSampledDpEvent", "sampling_probability": 0.1, "event": GAUSSIAN},
    }


def test_numpy_numbers_are_stored_as_plain_ones() -> None:
    event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(np.float64(4.0)), np.int64(3))
    assert json.loads(json.dumps(to_json(event)))["count"] == 3


def nested(depth: int) -> dict[str, Any]:
    data: dict[str, Any] = GAUSSIAN
    for _ in range(depth - 1):
        data = {"type": "SelfComposedDpEvent", "count": 1, "event": data}
    return data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "must be an object"),
        ([GAUSSIAN], "must be an object"),
        ({}, "event.type"),
        ({"type": "os.system"}, "none of"),
        ({"type": "DpEvent"}, "none of"),
        ({"type": ["GaussianDpEvent"]}, "event.type"),
        ({"type": "GaussianDpEvent"}, "needs noise_multiplier"),
        ({**GAUSSIAN, "sigma": 1.0}, "no field 'sigma'"),
        ({**GAUSSIAN, 3: 1.0}, "no field 3"),
        ({"type": "GaussianDpEvent", "noise_multiplier": "4"}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": True}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": None}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": -1.0}, "at least 0"),
        ({"type": "GaussianDpEvent", "noise_multiplier": math.nan}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": math.inf}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": "infinity"}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": 10**5000}, "finite number"),
        ({"type": "GaussianDpEvent", "noise_multiplier": 1e-300}, "must be 0 or from"),
        ({"type": "SelfComposedDpEvent", "event": GAUSSIAN, "count": -1}, "event.count"),
        ({"type": "SelfComposedDpEvent", "event": GAUSSIAN, "count": 1.5}, "whole number"),
        ({"type": "SelfComposedDpEvent", "event": GAUSSIAN, "count": True}, "whole number"),
        ({"type": "SelfComposedDpEvent", "event": GAUSSIAN, "count": 10**10}, "whole number"),
        ({"type": "ComposedDpEvent", "events": GAUSSIAN}, "list of events"),
        ({"type": "ComposedDpEvent", "events": [GAUSSIAN, 7]}, r"event.events\[1\]: must be an object"),
        ({"type": "PoissonSampledDpEvent", "sampling_probability": 1.5, "event": GAUSSIAN}, "to 1"),
        (
            {"type": "PoissonSampledDpEvent", "sampling_probability": 1e-311, "event": GAUSSIAN},
            "must be 0 or",
        ),
        ({"type": "PoissonSampledDpEvent", "sampling_probability": 0.1, "event": None}, "event.event"),
        (
            {
                "type": "SampledWithoutReplacementDpEvent",
                "source_dataset_size": 10,
                "sample_size": 11,
                "event": GAUSSIAN,
            },
            "larger than source_dataset_size",
        ),
        ({**STUDENT, "degrees": 2.0}, "at least 3 and at most 1000"),
        ({**STUDENT, "coordinates": 8}, "larger than dimension"),
        ({**STUDENT, "dimension": 10**12}, "whole number"),
        (
            {"type": "SingleEpochTreeAggregationDpEvent", "noise_multiplier": 1.0, "step_counts": []},
            "step_counts",
        ),
        ({"type": "RepeatAndSelectDpEvent", "event": GAUSSIAN, "mean": 0.5, "shape": 1.0}, "event.mean"),
        (nested(MAX_DEPTH + 1), "deep"),
    ],
)
def test_malformed_data_is_refused_with_the_reason(data: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        from_json(data)


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert isinstance(from_json(nested(MAX_DEPTH)), dp.SelfComposedDpEvent)


def test_what_could_not_be_read_back_is_not_written() -> None:
    for event in (dp.GaussianDpEvent(-1.0), dp.GaussianDpEvent(math.nan), dp.ZCDpEvent(0.5)):
        with pytest.raises(InputError):
            to_json(event)
        with pytest.raises(InputError):
            releases(event, "replace-one")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "event", "events", "count", "noise_multiplier", "sampling_probability"]),
            inner | st.sampled_from([type(event).__name__ for event in ALL_KINDS]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_any_data_is_an_event_or_an_input_error(data: object) -> None:
    with suppress(InputError):
        event = from_json(data)
        assert from_json(to_json(event)) == event


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_good_record_with_one_value_damaged_is_never_another_error(data: st.DataObject) -> None:
    record = json.loads(json.dumps(to_json(data.draw(st.sampled_from(ALL_KINDS)))))
    part = record
    while isinstance(part.get("event"), dict) and data.draw(st.booleans()):
        part = part["event"]
    key = data.draw(st.sampled_from(sorted(part)))
    part[key] = data.draw(JSON)
    with suppress(InputError):
        releases(from_json(record), "replace-one")


POISSON = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(4.0))


@pytest.mark.parametrize(
    ("event", "flat"),
    [
        (dp.NoOpDpEvent(), {}),
        (dp.ComposedDpEvent([]), {}),
        (dp.SelfComposedDpEvent(POISSON, 0), {}),
        (dp.ComposedDpEvent([POISSON] * 7), {POISSON: 7}),
        (
            dp.SelfComposedDpEvent(
                dp.ComposedDpEvent([POISSON, dp.SelfComposedDpEvent(dp.LaplaceDpEvent(2.0), 3)]), 5
            ),
            {POISSON: 5, dp.LaplaceDpEvent(2.0): 15},
        ),
        (dp.PoissonSampledDpEvent(0.0, dp.NonPrivateDpEvent()), {}),
        (dp.PoissonSampledDpEvent(1.0, dp.GaussianDpEvent(4.0)), {dp.GaussianDpEvent(4.0): 1}),
        (dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(dp.GaussianDpEvent(4.0), 1)), {POISSON: 1}),
        (dp.PoissonSampledDpEvent(0.1, dp.NoOpDpEvent()), {}),
        (
            dp.SampledWithoutReplacementDpEvent(10, 10, dp.GaussianDpEvent(4.0)),
            {dp.GaussianDpEvent(4.0): 1},
        ),
        (dp.SampledWithoutReplacementDpEvent(10, 0, dp.NonPrivateDpEvent()), {}),
        (dp.RandomizedResponseDpEvent(1.0, 2), {}),
        (dp.RandomizedResponseDpEvent(0.0, 1), {}),
        (dp.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 0, 0.0), {}),
    ],
)
def test_an_event_is_flattened_to_its_releases(event: dp.DpEvent, flat: dict[dp.DpEvent, int]) -> None:
    assert dict(releases(event, "replace-one")) == flat


@pytest.mark.parametrize(
    "event",
    [
        dp.GaussianDpEvent(0.0),
        dp.LaplaceDpEvent(0.0),
        dp.RandomizedResponseDpEvent(0.0, 2),
        dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(0.0)),
        dp.SampledWithoutReplacementDpEvent(10, 5, dp.GaussianDpEvent(0.0)),
        dp.RepeatAndSelectDpEvent(dp.GaussianDpEvent(0.0), 2.0, 1.0),
        dp.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 10, 0.0),
        dp.SingleEpochTreeAggregationDpEvent(0.0, 8),
    ],
    ids=lambda event: type(event).__name__,
)
def test_no_noise_is_not_private(event: dp.DpEvent) -> None:
    assert dict(releases(event, "zero-out")) == {dp.NonPrivateDpEvent(): 1}


def test_a_fixed_sample_of_everybody_still_leaves_somebody_out_when_people_come_and_go() -> None:
    event = dp.SampledWithoutReplacementDpEvent(10, 10, dp.GaussianDpEvent(4.0))
    assert dict(releases(event, "add-remove")) == {event: 1}


def test_a_composition_is_the_same_key_whether_written_with_ints_or_floats() -> None:
    whole = releases(dp.ComposedDpEvent([dp.GaussianDpEvent(2), dp.GaussianDpEvent(2.0)]), "add-remove")
    assert whole == ((dp.GaussianDpEvent(2.0), 2),)
    assert all(isinstance(leaf.noise_multiplier, float) for leaf, _ in whole)
    assert hash(whole) is not None
