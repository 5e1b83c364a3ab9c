from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.forecast.answer import answer, forecast, highest, levelled_off, unreachable
from fedprivacy.forecast.curve import Curve
from fedprivacy.forecast.law import Law
from fedprivacy.forecast.question import Question

X = (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
TRUTH = Law(0.1, 0.95, 200.0, 1.2)


def curve(x: tuple[float, ...] = X) -> Curve:
    """Repeats that hardly differ, around the truth."""
    means = TRUTH.accuracy(np.array(x))
    rows = tuple((float(mean) - 0.001, float(mean) + 0.001) for mean in means)
    return Curve(x, rows, 0.1, 0.97, 10**6, seed=1)


def clients(target: float) -> Question:
    return Question(("local",), target_accuracy=target, epsilon=4.0)


def test_within_the_data_the_answer_is_the_law_rounded_up() -> None:
    result = answer(curve(), clients(0.5))
    needed = float(TRUTH.inverse(0.5))
    assert result["verdict"] == "measured"
    assert result["value"] == int(result["value"])
    assert needed <= result["value"] <= 1.02 * needed + 1
    assert result["low"] <= result["value"] <= result["high"] <= 1.1 * needed


def test_the_least_number_may_suffice() -> None:
    result = answer(curve(), clients(0.11))
    assert (result["verdict"], result["value"]) == ("least", 10.0)


def test_up_to_four_times_beyond_the_data_it_is_extrapolated() -> None:
    result = answer(curve(), clients(0.85))
    assert 320 < float(TRUTH.inverse(0.85)) < 1280
    assert (result["verdict"], result["limit"]) == ("extrapolated", 1280.0)
    assert result["low"] <= result["value"] <= 1280


def test_an_end_beyond_the_limit_has_no_number() -> None:
    noisy = replace(curve(), records=60)
    result = answer(noisy, clients(0.85))
    assert result["high"] is None


def test_farther_it_is_no_number_at_all() -> None:
    result = answer(curve(), clients(0.93))
    assert float(TRUTH.inverse(0.93)) > 1280
    assert result == {
        "verdict": "beyond", "value": None, "low": None, "high": None, "largest": 320.0, "limit": 1280.0,
    }  # fmt: skip


def test_what_the_law_did_not_predict_is_not_extrapolated() -> None:
    odd = replace(curve(), accuracies=(*curve().accuracies[:-1], (0.5, 0.501)))
    assert not odd.held_out.agrees
    result = answer(odd, clients(0.85))
    assert (result["verdict"], result["limit"]) == ("beyond", 320.0)


def test_where_accuracy_without_noise_still_grows_nothing_is_extrapolated() -> None:
    growing = replace(curve(), levelled_off=False)
    result = answer(growing, clients(0.85))
    assert (result["verdict"], result["limit"]) == ("beyond", 320.0)
    assert levelled_off([0.95, 0.97], [0.94, 0.95])
    assert not levelled_off([0.76, 0.77], [0.7, 0.72])


def test_the_least_epsilon_is_never_extrapolated() -> None:
    by_epsilon = Question(("local",), target_accuracy=0.5, clients=50)
    result = answer(curve(), by_epsilon)
    assert result["limit"] == 320.0
    assert float(TRUTH.inverse(0.5)) <= result["value"] <= 1.02 * float(TRUTH.inverse(0.5))
    assert result["value"] == float(f"{result['value']:.3g}")
    assert answer(curve(), replace(by_epsilon, target_accuracy=0.85))["verdict"] == "beyond"


@pytest.mark.parametrize(("wanted", "verdict"), [(100, "measured"), (1000, "extrapolated"), (1281, "beyond")])
def test_the_accuracy_at_a_number_of_clients(wanted: int, verdict: str) -> None:
    result = answer(curve(), Question(("local",), epsilon=4.0, clients=wanted))
    assert result["verdict"] == verdict
    if verdict == "beyond":
        assert result["value"] is None
    else:
        assert result["value"] == pytest.approx(float(TRUTH.accuracy(float(wanted))), abs=0.02)
        assert result["low"] <= result["value"] <= result["high"]


def test_a_target_above_the_accuracy_without_noise_is_out_of_reach() -> None:
    base, interval = [0.8, 0.82], {"mean": 0.81, "low": 0.8, "high": 0.82}
    assert unreachable(clients(0.9), base, 10_000, interval)
    assert not unreachable(clients(0.815), base, 10_000, interval)
    # Few development records leave it open.
    assert not unreachable(clients(0.9), base, 50, interval)
    assert highest([1.0, 1.0], 100, {"high": 1.0}) == 1.0
    assert not unreachable(Question(("local",), epsilon=1.0, clients=9), base, 10_000, interval)


def test_a_forecast_draws_the_law_as_far_as_it_may_go() -> None:
    result = forecast(curve(), clients(0.5))
    assert result["drawn"][0]["x"] == 10.0
    assert result["drawn"][-1]["x"] == pytest.approx(1280.0)
    assert all(point["low"] <= point["accuracy"] <= point["high"] for point in result["drawn"])
    assert result["law"]["extrapolates"] is result["held_out"]["agrees"] is True
