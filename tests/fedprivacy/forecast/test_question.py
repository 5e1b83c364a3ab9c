from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.forecast.question import Question, counts

TWO: dict[str, Any] = {"trusts": ("local",), "target_accuracy": 0.8, "epsilon": 4.0}


@pytest.mark.parametrize(
    ("given", "unknown", "axis"),
    [
        ({"target_accuracy": 0.8, "epsilon": 4.0}, "clients", "clients"),
        ({"target_accuracy": 0.8, "clients": 50}, "epsilon", "epsilon"),
        ({"epsilon": 4.0, "clients": 50}, "accuracy", "clients"),
    ],
)
def test_two_are_given_and_the_third_is_unknown(given: dict[str, Any], unknown: str, axis: str) -> None:
    question = Question(("local", "central"), **given)
    assert (question.unknown, question.axis) == (unknown, axis)
    assert Question.from_json(question.to_json()) == question


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": None}, "--epsilon and --clients are unknown. Give two of"),
        ({"clients": 50}, "nothing is unknown. Give two of --target-accuracy, --epsilon and --clients."),
        (
            {"target_accuracy": 80.0},
            "--target-accuracy 80: must be a share between 0 and 1. For 80 % write 0.8.",
        ),
        ({"target_accuracy": float("nan")}, "--target-accuracy nan: must be"),
        ({"epsilon": 0.0}, "--epsilon 0: must be a number above 0"),
        ({"epsilon": float("inf")}, "--epsilon inf: must be"),
        ({"epsilon": None, "clients": 1}, "--clients 1: must be 2 or more"),
        ({"repeats": 1}, "--repeats 1: must be 2 to 100"),
        (
            {"trusts": ("none",)},
            "--trust none: no trust model with an epsilon. Known are central, distributed",
        ),
        ({"trusts": ("locale",)}, "--trust locale: no trust model"),
        ({"trusts": ("local", "local")}, "--trust: name each trust model once"),
    ],
)
def test_other_questions_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace(".", r"\.").replace("(", r"\(")):
        Question(**{**TWO, **change})


def test_a_damaged_question_is_an_error() -> None:
    for fields in ({}, {"trusts": ["local"], "more": 1}):
        with pytest.raises(InputError, match="question: damaged"):
            Question.from_json(fields)


@pytest.mark.parametrize("available", [1, 4, 7, 12, 40, 500, 1149, 10**6])
def test_numbers_of_clients_rise_to_all_of_them(available: int) -> None:
    numbers = counts(available)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == available
    assert 1 <= numbers[0] <= max(1, available // 100)
    assert len(numbers) <= 8
    assert 30 in counts(1149, 30)
    assert counts(20, 30) == counts(20)
