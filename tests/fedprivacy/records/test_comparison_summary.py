"""The finding where units of privacy are compared: like with like, and what the change of unit costs."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.records.comparison_summary import finding
from fedprivacy.records.seed_statistics import interval

CLASSES = [{"class": 0, "accuracy": 0.5, "records": 40}, {"class": 1, "accuracy": 0.5, "records": 60}]


def cell(trust: str, unit: str, epsilon: float | None, mean: float, **more: Any) -> dict[str, Any]:
    accuracies = [mean - 0.01, mean, mean + 0.01]
    return {
        "trust": trust, "unit": unit, "asked": None, "mechanism": "gaussian", "epsilon": epsilon,
        "seeds": [1, 2, 3], "accuracies": accuracies, "accuracy": interval(accuracies), "per_class": CLASSES,
        "population": 1200, **more,
    }  # fmt: skip


def cells(client: float = 0.7) -> list[dict[str, Any]]:
    return [
        cell("none", "example", None, 0.95),
        *(cell(trust, "client", e, client + 0.01 * e - (trust == "local") * 0.02) for trust in ("central", "local") for e in (1.0, 8.0)),
        *(cell(trust, "example", e, 0.8 + 0.01 * e - (trust == "local") * 0.1) for trust in ("central", "local") for e in (1.0, 8.0)),
    ]  # fmt: skip


def test_trust_models_are_compared_within_a_unit_and_units_within_a_trust_model() -> None:
    assert finding(cells()) == (
        "With unit client not having to trust the server (local) costs 2.0 points at epsilon 8 (76.0 % against "
        "78.0 % under central; 95 % interval 2.0 to 2.0 over 3 paired seeds). "
        "With unit example not having to trust the server (local) costs 10.0 points at epsilon 8 (78.0 % against "
        "88.0 % under central; 95 % interval 10.0 to 10.0). "
        "Protecting a client and not a record alone (central) costs 10.0 points at epsilon 8 (78.0 % against "
        "88.0 % with unit example; 95 % interval 10.0 to 10.0). "
        "Protecting a client and not a record alone (local) costs 2.0 points at epsilon 8 (76.0 % against 78.0 % "
        "with unit example; 95 % interval 2.0 to 2.0). Without any noise the model reaches 95.0 %."
    )


def test_of_one_unit_the_sentence_is_the_one_that_stood_there_before_units_were_compared() -> None:
    one = [one for one in cells() if one["unit"] == "example"]
    before = [{key: value for key, value in cell.items() if key != "unit"} for cell in one]
    assert finding(one) == finding(before)
    assert finding(one).startswith("Not having to trust the server (local) costs 10.0 points at epsilon 1 (")


def test_a_unit_of_which_no_model_learned_anything_is_called_so() -> None:
    found = finding(cells(client=0.5))  # the most frequent class has 60 %
    assert found.startswith(
        "With unit client (1,200 clients) no epsilon here gives a model that is more accurate than naming the most "
        "frequent class every time (60.0 %). With unit example not having"
    )
    assert "Protecting a client and not a record alone (central) costs 30.0 points" in found
    unsure = cells(client=0.52)  # at epsilon 8 60 %, and not a bit more
    unsure[2].update(accuracies=[0.5, 0.6, 0.75], accuracy=interval([0.5, 0.6, 0.75]))
    assert "gives a model that can be told to be more accurate than naming" in finding(unsure)
    assert "no epsilon" not in finding(cells(client=0.65))


@pytest.mark.parametrize("missing", ["per_class", "population"])
def test_without_what_it_would_need_nothing_is_called_hopeless(missing: str) -> None:
    found = finding([{**one, missing: None} for one in cells(client=0.5)])
    assert ("no epsilon here gives" in found) == (missing == "population")
    assert "1,200" not in found or missing != "population"


def test_local_mechanisms_stand_with_the_unit_that_has_them() -> None:
    some = [one for one in cells() if (one["trust"], one["unit"]) != ("local", "client")]
    some += [
        cell("local", "client", 8.0, mean, asked=asked, mechanism=ran)
        for asked, ran, mean in (("auto", "privunit", 0.76), ("gaussian", "gaussian", 0.7))
    ]
    found = finding(some)
    assert "With unit client not having to trust the server (local, PrivUnitG) costs 2.0 points" in found
    assert "At epsilon 8 the best local mechanism is PrivUnitG (chosen by auto): it reaches 76.0 %" in found
    assert "(local) costs 2.0 points at epsilon 8 (76.0 % against 78.0 % with unit example" in found


def test_where_units_share_no_epsilon_nothing_is_said_of_their_change() -> None:
    apart = [
        one for one in cells() if (one["unit"], one["epsilon"]) not in (("client", 1.0), ("example", 8.0))
    ]
    assert "Protecting" not in finding(apart)
    assert finding([]) == "No cell of the comparison has finished."
