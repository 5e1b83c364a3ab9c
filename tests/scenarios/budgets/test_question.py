"""The pattern of every budget: what each question says at least, and what it refuses, all at once."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields
from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.mechanisms.registry import REGISTRY
from scenarios.budgets.answers import CategoriesQuestion, RandomizedResponseQuestion
from scenarios.budgets.command_options import COMMANDS
from scenarios.budgets.compose import ComposeQuestion
from scenarios.budgets.dp_sgd import DpSgdQuestion
from scenarios.budgets.gaussian import GaussianQuestion
from scenarios.budgets.group import GroupQuestion
from scenarios.budgets.noise import GeometricQuestion, LaplaceQuestion, NormQuestion
from scenarios.budgets.question import Question, Range
from scenarios.budgets.selection import ExponentialQuestion, NoisyMaxQuestion
from scenarios.budgets.shuffle import ShuffleQuestion
from scenarios.budgets.tuning import TuningQuestion

# Each question with the options that it cannot do without.
QUESTIONS: list[tuple[type[Question], dict[str, Any]]] = [
    (GaussianQuestion, {}),
    (DpSgdQuestion, {"records": 1000, "batch_size": 10, "steps": 50}),
    (ComposeQuestion, {"rounds": 3}),
    (GroupQuestion, {"size": 3}),
    (ShuffleQuestion, {"clients": 1000}),
    (TuningQuestion, {"candidates": 10}),
    (RandomizedResponseQuestion, {}),
    (CategoriesQuestion, {"items": 10}),
    (LaplaceQuestion, {"count": True}),
    (GeometricQuestion, {"histogram": True}),
    (NormQuestion, {"dimension": 4}),
    (ExponentialQuestion, {}),
    (NoisyMaxQuestion, {}),
]


def test_every_command_names_the_question_that_answers_it() -> None:
    named = {options.mechanism: f"scenarios.budgets.{options.question}" for options in COMMANDS}
    assert named == {kind.mechanism: f"{kind.__module__}.{kind.__qualname__}" for kind, _ in QUESTIONS}


@pytest.mark.parametrize(("kind", "needed"), QUESTIONS)
def test_every_answer_names_epsilon_delta_unit_adjacency_and_accountant(kind, needed: dict[str, Any]) -> None:
    document = kind(**needed, epsilon=1.0).document()
    assert (document["schema"], document["kind"], document["mechanism"]) == (1, "budget", kind.mechanism)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    for part in ("epsilon = ", "delta = ", document["unit"], document["adjacency"], "accountant "):
        assert part in document["words"]
    assert document["accountant"].split()[0] in document["words"]
    assert document["words"].endswith((".", ")."))
    assert "\n" not in document["words"]


@pytest.mark.parametrize(("kind", "needed"), QUESTIONS)
def test_every_answer_names_its_observers_and_the_delta_of_each_epsilon(kind, needed: dict[str, Any]) -> None:
    several = {"rounds": 3} if "rounds" in {field.name for field in fields(kind)} else {}
    for words in (kind(**needed, epsilon=1.0).document()["words"],
                  kind(**(needed | several), epsilon=1.0).document()["words"]):  # fmt: skip
        assert re.search("[Ii]t holds against (those who|whoever)|[Aa]gainst whoever sees", words)
        figures = re.findall(r"epsilon (?:=|is) [\d.,e-]*\d(.{10})", words)
        assert figures
        assert set(figures) == {" at delta "}


@pytest.mark.parametrize(("kind", "needed"), QUESTIONS)
def test_every_question_names_all_mistakes_at_once(kind, needed: dict[str, Any]) -> None:
    with pytest.raises(InputError) as none_given:
        kind(**needed).document()
    assert "give exactly one" in str(none_given.value)
    with pytest.raises(InputError) as wrong:
        kind(**needed, epsilon=math.nan, delta=2.0).document()
    first, second = str(wrong.value).splitlines()
    assert first.startswith("--epsilon nan: must be ")
    assert second.startswith("--delta 2.0: must be ")


def test_every_registered_mechanism_of_statistics_has_its_budget() -> None:
    """The mechanisms of vectors have theirs in a scenario's `privacy`, Gaussian noise both; banded noise is `gaussian`.

    The generalised exponential mechanism costs what the plain one does; its error is that of its sensitivities.
    """
    asked = {kind.mechanism for kind, _ in QUESTIONS}
    renamed = {"discrete-laplace": "geometric", "exponential-mechanism": "exponential"}
    others = {*LOCAL, "generalised-exponential", "banded-gaussian"} - {"gaussian"}
    others |= {"adaptive-gaussian", "encoded-gaussian", "encoded-student-t"} | {
        "skellam",
        "discrete-gaussian",
    }
    oracles = {"k-ary-randomized-response", "hadamard-response", "oue", "sue"}
    for name in REGISTRY.keys() - others:
        assert renamed.get(name, "categories" if name in oracles else name) in asked


@pytest.mark.parametrize(
    ("allowed", "words", "inside", "outside"),
    [
        (Range(1, 10), "from 1 to 10", [1, 10], [0, 11, math.nan]),
        (Range(0, 1, above=True), "above 0 and at most 1", [1e-9, 1], [0, 1.1]),
        (Range(0, 1, below=True), "at least 0 and below 1", [0, 0.9], [1, -1]),
        (Range(0, 1, above=True, below=True), "between 0 and 1", [0.5], [0, 1]),
    ],
)
def test_a_range_says_what_it_allows(
    allowed: Range, words: str, inside: list[float], outside: list[float]
) -> None:
    assert allowed.words == words
    assert all(value in allowed for value in inside)
    assert not any(value in allowed for value in outside)
