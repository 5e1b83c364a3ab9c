"""The answer that a measured curve gives, and how far it may be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.forecast.curve import LEAST_POINTS, MOST_GAIN, Curve
from fedprivacy.forecast.question import Question

DRAWN = 40  # points of the law for the chart


def forecast(curve: Curve, question: Question) -> dict[str, Any]:
    """The law of a curve with its checks, the answer, and points of the law to draw.

    Args:
        curve: The measured curve, of at least `LEAST_POINTS` numbers.
        question: What is unknown.
    """
    law, held_out = curve.law, curve.held_out
    return {
        "law": {
            "floor": law.floor,
            "ceiling": law.ceiling,
            "half": law.half,
            "slope": law.slope,
            "fit_error": curve.fit_error,
            "misfit": curve.misfit,
            "fall": curve.fall,
            "extrapolates": curve.follows_the_law,
        },
        "held_out": {**vars(held_out), "agrees": held_out.agrees},
        "answer": answer(curve, question),
        "drawn": _drawn(curve, question),
    }


def answer(curve: Curve, question: Question) -> dict[str, Any]:
    """The verdict, the value and its 95 % interval.

    The verdict is "measured" between the least and the largest number; "least" where the least suffices;
    "extrapolated" up to `Curve.limit`; "beyond" where the curve gives no answer. A None at an end of the
    interval lies beyond `limit`.
    """
    least, largest = curve.x[0], curve.x[-1]
    limit = curve.limit if question.axis == "clients" else largest
    if question.unknown == "accuracy":
        x = float(question.clients or 0)
        value, low, high = curve.accuracy(x)
        if x > limit:
            return _answer("beyond", None, None, None, largest, limit)
        return _answer("extrapolated" if x > largest else "measured", value, low, high, largest, limit)
    value, low, high = curve.needed(question.target_accuracy or 0.0)
    low, high, value = (_rounded(max(each, least), question.axis) for each in (low, high, value))
    if value > limit:
        return _answer("beyond", None, None, None, largest, limit)
    verdict = "extrapolated" if value > largest else "least" if value <= least else "measured"
    return _answer(verdict, value, low, None if high > limit else high, largest, limit)


def unreachable(
    question: Question, accuracies: Sequence[float], records: float, interval: Mapping[str, float | None]
) -> bool:
    """Whether the wanted accuracy lies above what is reached without any noise by the clients here.

    More clients bring more records, so this is out of reach only where the number of clients is given.

    Args:
        question: What is unknown.
        accuracies: Of repeats without noise, with all clients.
        records: The development records that they are measured on.
        interval: The interval of their mean over repeats.
    """
    return question.target_accuracy is not None and question.target_accuracy > highest(
        accuracies, records, interval
    )


def highest(accuracies: Sequence[float], records: float, interval: Mapping[str, float | None]) -> float:
    """The largest accuracy without noise that the repeats and the development records leave possible."""
    mean = sum(accuracies) / len(accuracies)
    over_records = 1.96 * math.sqrt(max(mean * (1 - mean), 0.0) / records)
    over_repeats = (interval["high"] or mean) - mean
    return min(1.0, mean + math.hypot(over_records, over_repeats))


def levelled_off(accuracies: Sequence[float], of_half: Sequence[float]) -> bool:
    """Whether accuracy without noise hardly grows with more clients, so that it bounds that of more.

    Args:
        accuracies: Of repeats without noise, with all clients.
        of_half: Of repeats with half of them.
    """
    return sum(accuracies) / len(accuracies) - sum(of_half) / len(of_half) <= MOST_GAIN


def enough_points(grid: Sequence[float]) -> bool:
    """Whether there are as many numbers as the law needs."""
    return len(grid) >= LEAST_POINTS


def _answer(
    verdict: str, value: float | None, low: float | None, high: float | None, largest: float, limit: float
) -> dict[str, Any]:
    return {
        "verdict": verdict, "value": value, "low": low, "high": high, "largest": largest, "limit": limit,
    }  # fmt: skip


def _rounded(value: float, axis: str) -> float:
    """Whole clients, and an epsilon of three digits, both rounded up."""
    if not math.isfinite(value):
        return value
    if axis == "clients":
        return float(math.ceil(value - 1e-9))
    digit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / digit - 1e-9) * digit:.3g}")


def _drawn(curve: Curve, question: Question) -> list[dict[str, float]]:
    """The law with its interval, from the least number to as far as it may go."""
    end = curve.limit if question.axis == "clients" else curve.x[-1]
    ratio = (end / curve.x[0]) ** (1 / (DRAWN - 1))
    points = []
    for place in range(DRAWN):
        x = curve.x[0] * ratio**place
        value, low, high = curve.accuracy(x)
        points.append({"x": x, "accuracy": value, "low": low, "high": high})
    return points
