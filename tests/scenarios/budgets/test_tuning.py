"""`budget tuning`: what a choice on private data costs, beside what it saves."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from scenarios.budgets.gaussian import GaussianQuestion
from scenarios.budgets.tuning import TuningQuestion


def answered(**options: Any) -> dict[str, Any]:
    return TuningQuestion(**options).document()


def test_pure_candidates_cost_three_epsilon_by_random_stopping() -> None:
    found = answered(candidates=50, epsilon=0.2, delta=0.0)
    assert found["epsilon"] == pytest.approx(0.6)
    assert found["epsilon_of_all_candidates"] == pytest.approx(10.0)
    assert answered(candidates=50, epsilon=0.2, delta=0.0, law="logarithmic")["epsilon"] == pytest.approx(0.4)


def test_the_figures_are_those_of_the_page_on_sharp_edges() -> None:
    """Ten settings of one release at epsilon 2: 3.66 and 4.33, where all of them are 7.54."""
    noise = GaussianQuestion(epsilon=2.0).document()["noise_multiplier"]
    by_law = {
        law: answered(candidates=10, noise_multiplier=noise, law=law) for law in ("logarithmic", "geometric")
    }
    assert printed(by_law["logarithmic"]["epsilon"], 3) == "3.66"
    geometric = by_law["geometric"]
    keys = ("epsilon_of_one_candidate", "epsilon", "epsilon_of_all_candidates")
    assert [printed(geometric[key], 3) for key in keys] == ["2", "4.33", "7.54"]


def test_who_saves_nothing_is_told() -> None:
    assert "saves nothing" in answered(candidates=2, noise_multiplier=8.0)["words"]
    assert "saves nothing" not in answered(candidates=100, noise_multiplier=8.0)["words"]


def test_fewer_tries_cost_less_and_find_less() -> None:
    few, many = (answered(candidates=20, noise_multiplier=8.0, tries=tries) for tries in (5.0, 100.0))
    assert few["epsilon"] < many["epsilon"]
    assert few["chance_of_the_best"] < 0.3 < 0.7 < many["chance_of_the_best"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"candidates": 0}, "--candidates 0: must be from 1"),
        ({"candidates": 5, "tries": 0.5}, "--tries 0.5: must be from 1"),
        ({"candidates": 5, "law": "fixed"}, "--law fixed: must be one of logarithmic, geometric, poisson"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        answered(**options, noise_multiplier=2.0)
    with pytest.raises(InputError, match="--delta 0"):
        answered(candidates=5, noise_multiplier=2.0, delta=0.0)
