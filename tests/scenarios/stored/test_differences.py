"""Two stored results beside each other; guarantees on other terms are not compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import fedprivacy as fp
from fedprivacy.errors import InputError
from fedprivacy.verification.verify import checked_document
from scenarios.stored import differences
from scenarios.stored.differences import _cells, _guarantees, _verdict, difference


def verdict(stored: dict[str, Path], first: str, second: str, observer: str = "outsider") -> str:
    return difference(stored[first], stored[second])["guarantees"][observer]["verdict"]


@pytest.mark.exhaustive
def test_settings_that_differ(stored: dict[str, Path]) -> None:
    document = difference(stored["plain"], stored["weaker"])
    assert document["settings"] == {"privacy.epsilon": [2.0, 8.0]}
    assert document["results"]["kind"] == ["run", "run"]


def test_a_smaller_epsilon_on_the_same_terms_is_stronger(stored: dict[str, Path]) -> None:
    assert verdict(stored, "plain", "weaker") == "the first is stronger"
    assert verdict(stored, "weaker", "plain") == "the second is stronger"
    assert verdict(stored, "plain", "again") == "the same epsilon"


@pytest.mark.parametrize(("other", "term"), [("other-delta", "delta"), ("other-adjacency", "adjacency")])
def test_an_equal_epsilon_on_other_terms_is_not_compared(
    stored: dict[str, Path], other: str, term: str
) -> None:
    text = verdict(stored, "plain", other)
    assert "not comparable" in text
    assert term in text


@pytest.mark.parametrize("epsilon", [None, 0.5, 100.0])
@pytest.mark.parametrize("changes", [{"unit": "example"}, {"unit": "example", "delta": 1e-6}])
def test_an_epsilon_of_another_unit_is_not_compared(
    stored: dict[str, Path], changes: dict[str, Any], epsilon: float | None
) -> None:
    stated = guarantee(stored["plain"])
    other = {**stated, **changes, "epsilon": epsilon or stated["epsilon"]}
    for pair in ((stated, other), (other, stated)):
        assert _verdict(*pair).startswith(f"not comparable: they differ in {' and '.join(changes)}")


def guarantee(path: Path) -> dict[str, Any]:
    """Against outsiders."""
    return dict(json.loads((path / "run.json").read_text())["privacy"]["guarantees"][2])


def test_a_smaller_epsilon_is_stronger_only_where_it_assumes_no_more(stored: dict[str, Path]) -> None:
    stated = guarantee(stored["plain"])
    less, more = {**stated, "assumptions": stated["assumptions"][1:]}, {**stated}
    other = {**stated, "assumptions": ["the moon is full"]}
    assert _verdict({**less, "epsilon": 1.0}, {**more, "epsilon": 2.0}) == "the first is stronger"
    assert _verdict({**more, "epsilon": 2.0}, {**less, "epsilon": 1.0}) == "the second is stronger"
    weaker = "a smaller epsilon in the first, under other assumptions"
    assert _verdict({**more, "epsilon": 1.0}, {**less, "epsilon": 2.0}) == weaker
    assert _verdict({**other, "epsilon": 1.0}, {**more, "epsilon": 2.0}) == weaker
    assert _verdict(more, less) == _verdict(less, more) == "the same epsilon, under other assumptions"
    compared = _guarantees({"outsider": other}, {"outsider": stated})["outsider"]
    assert compared["assumptions"] == [["the moon is full"], stated["assumptions"]]


def marked(path: Path, monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """Lets the record of a run mark further paths operator-only."""

    def checked(folder: Path) -> dict[str, Any]:
        document = checked_document(folder)
        more = paths if folder == path else ()
        return {**document, "operator_only": [*document["operator_only"], *more]}

    monkeypatch.setattr(differences, "checked_document", checked)


@pytest.mark.parametrize("side", ["plain", "weaker"])
def test_what_either_record_marks_operator_only_is_shown_of_neither(
    stored: dict[str, Path], monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    marked(stored[side], monkeypatch, "scenario.privacy.epsilon", "final.accuracy", "privacy.guarantees")
    document = difference(stored["plain"], stored["weaker"])
    assert document["settings"] == {"privacy.epsilon": ["differs, not shown"] * 2}
    assert document["results"]["accuracy"] == [None, None]
    assert document["guarantees"] == {}


def test_two_comparisons_are_compared_cell_by_cell(stored: dict[str, Path]) -> None:
    document = difference(stored["compare"], stored["compare"])
    none, central = document["cells"]
    assert none["cell"]["trust"] == "none"
    assert (central["cell"]["trust"], central["cell"]["unit"], central["cell"]["epsilon"]) == (
        "central",
        "client",
        2,
    )
    cells = json.loads((stored["compare"] / "run.json").read_text())["cells"]
    assert central["results"] == {"accuracy": [cells[1]["accuracy"]["mean"]] * 2}
    assert central["guarantees"]["outsider"]["verdict"] == "the same epsilon"
    assert none["guarantees"]["outsider"]["verdict"] == "no guarantee in either"
    assert difference(stored["plain"], stored["compare"])["cells"] == []


def test_cells_of_one_comparison_alone_have_no_verdict() -> None:
    cell = {"trust": "central", "unit": "client", "mechanism": "gaussian", "epsilon": 2.0}
    both = {**cell, "accuracy": {"mean": 0.5}, "guarantees": []}
    other = {**both, "unit": "example"}
    first, second = _cells([{"kind": "compare", "cells": [each]} for each in (both, other)])
    assert (first["results"], second["results"]) == ({"accuracy": [0.5, None]}, {"accuracy": [None, 0.5]})
    assert first["guarantees"] == {}


def test_surveys_are_compared_query_by_query(stored: dict[str, Path]) -> None:
    document = difference(stored["survey"], stored["survey"])
    (query,) = json.loads((stored["survey"] / "run.json").read_text())["queries"]
    assert document["results"][query["name"]] == [query["estimate"]] * 2


def test_results_without_a_guarantee(stored: dict[str, Path]) -> None:
    assert verdict(stored, "plain", "none") == "only the first has a guarantee"
    assert verdict(stored, "none", "none") == "no guarantee in either"
    assert verdict(stored, "plain", "weaker", "server") == "no guarantee in either"
    assert "each of its cells" in verdict(stored, "plain", "compare")


def test_a_seed_is_not_shown(stored: dict[str, Path]) -> None:
    document = difference(stored["plain"], stored["again"])
    assert document["settings"] == dict.fromkeys(["seed", "compare.seeds"], ["differs, not shown"] * 2)
    assert "77" not in json.dumps(document["settings"])


def test_a_record_that_contradicts_itself_is_refused(stored: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(stored["plain"], tmp_path / "changed"))
    document = json.loads((path / "run.json").read_text())
    for each in document["privacy"]["guarantees"]:
        each["epsilon"] = None if each["epsilon"] is None else 0.1
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"run\.json"):
        difference(path, stored["plain"])
    with pytest.raises(InputError):
        difference(stored["plain"], tmp_path)


def test_a_private_number_of_clients_is_not_shown(tmp_path: Path) -> None:
    """Under add-remove a record marks it, and it is shown of neither record, public in the other or not."""
    paths = {}
    for adjacency, clients in (("add-remove", 4321), ("replace-one", 1234)):
        settings = {
            "privacy.trust": "central", "privacy.adjacency": adjacency, "data.clients": clients,
            "compare.trusts": ["central"], "compare.clients": [10],
        }  # fmt: skip
        paths[adjacency] = fp.ask("star-wars-survey", set=settings, out=tmp_path, progress=False).path
    for pair in (("add-remove", "replace-one"), ("replace-one", "add-remove")):
        document = difference(*(paths[name] for name in pair))
        assert document["settings"]["data.clients"] == ["differs, not shown"] * 2
        settings = json.dumps(document["settings"])
        assert "4321" not in settings
        assert "1234" not in settings


def test_the_analyst_behind_a_shuffler_is_compared_too() -> None:
    terms = {"delta": 1e-6, "unit": "client", "adjacency": "replace-one", "assumptions": []}
    stated = [
        {name: {"epsilon": epsilon, **terms} for name in ("server", "analyst")} for epsilon in (1.0, 2.0)
    ]
    compared = _guarantees(*stated)
    assert list(compared) == ["server", "analyst"]
    assert compared["analyst"]["verdict"] == "the first is stronger"
