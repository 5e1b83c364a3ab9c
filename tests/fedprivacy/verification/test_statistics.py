"""What is promised of counts that clients' own noise is in is computed again from the stored counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.statistics_comparison import compare
from scenarios.experiments.statistics_run import ask

TEXT = """
name = "asked"
[data]
name = "categories"
clients = 60
categories = {categories}
exponent = 1.0
[queries.where]
kind = "histogram"
[privacy]
trust = "local"
epsilon = 1.0
delta = 1e-6
[compare]
trusts = ["local"]
epsilons = [1.0]
repeats = 2
"""


def edited(folder: Path, edit: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    file = folder / "run.json"
    text = file.read_text()
    document = json.loads(text)
    edit(document["cells"][0]["queries"][0] if "cells" in document else document["queries"][0])
    file.write_text(json.dumps(document))
    try:
        return checked_document(folder)
    finally:
        file.write_text(text)


def bounded(at_most: float, query: dict[str, Any]) -> None:
    query["bound"]["at_most"] = at_most


def test_a_histogram_keeps_what_its_counts_promise(make_statistics, tmp_path: Path) -> None:
    folder = Path(ask(make_statistics(text=TEXT.format(categories=4)), tmp_path)["path"])
    assert checked_document(folder) == json.loads((folder / "run.json").read_text())
    for edit, key in (
        (lambda query: query["bound"].update(at_most=query["bound"]["at_most"] / 10), "bound.at_most"),
        (lambda query: query["bound"].update(probability=0.99), "bound.probability"),
        (lambda query: query.update(bound=None), "bound"),
        (lambda query: query["low"].__setitem__(0, 0.0), "low[0]"),
        (lambda query: query["estimate"].__setitem__(1, query["estimate"][1] + 0.5), "estimate[1]"),
        (lambda query: query.update(estimate=query["estimate"][:3]), "estimate: has 3 entries"),
        (lambda query: query.update(estimate="all"), "estimate: is no list of counts"),
        (lambda query: query.update(answered=61), "answered"),
        (lambda query: query.update(answered=30), "estimate[0]"),  # whole counts of so many are others
    ):
        with pytest.raises(InputError, match=rf"run\.json: queries\[0\]\.{re.escape(key)}"):
            edited(folder, edit)


@pytest.mark.parametrize("categories", [4, 300])
def test_a_histogram_of_a_comparison_keeps_what_its_counts_promise(
    categories: int, make_statistics, tmp_path: Path
) -> None:
    """Of 300 categories 200 counts are kept, and the promise is bounded from both sides."""
    text = TEXT.format(categories=categories)
    folder = Path(compare(make_statistics(text=text), tmp_path, workers=1)["path"])
    assert checked_document(folder) == json.loads((folder / "run.json").read_text())
    for bound in (1.0, 500.0):
        with pytest.raises(InputError, match=r"cells\[0\]\.queries\[0\]\.bound\.at_most: says"):
            edited(folder, partial(bounded, bound))
    with pytest.raises(InputError, match=r"queries\[0\]\.answer\.high\[2\]: says"):
        edited(folder, lambda query: query["answer"]["high"].__setitem__(2, 0.0))
