"""Edits of stored statistics: each is refused, or changes nothing that is printed as a guarantee."""

from __future__ import annotations

from pathlib import Path

import pytest
from edits import hold

from scenarios.experiments.statistics_comparison import compare
from scenarios.experiments.statistics_run import ask

TWO = """
name = "asked"
[data]
name = "categories"
clients = 60
categories = 3
exponent = 1.0
[queries.seen]
kind = "mean-of-bits"
[queries.mode]
kind = "most-common"
[privacy]
"""
LOCAL = 'trust = "local"\nepsilon = 1.0\ndelta = 1e-6\nshuffled = true\n'
CENTRAL = 'trust = "central"\nepsilon = 1.0\nadjacency = "add-remove"\n'
COMPARED = '[compare]\ntrusts = ["none", "central"]\nepsilons = [1.0]\nrepeats = 2\n'
# Answers, their intervals, true values and errors; of what a mechanism promises, how exact it is.
SETTINGS = "the data, and how clients were spread over hosts"
ANSWERS = r"(cells\[\d+\]\.)?queries(\[\d+\].*)?"


@pytest.mark.parametrize("privacy", [LOCAL, CENTRAL])
def test_an_edited_run_is_refused_or_promises_the_same(privacy: str, make_statistics, tmp_path: Path) -> None:
    folder = Path(ask(make_statistics(text=TWO + privacy), tmp_path)["path"])
    assert hold(folder, results={"answers": "answers", "settings": SETTINGS}, measured=ANSWERS).refused > 500


def test_an_edited_comparison_is_refused_or_promises_the_same(make_statistics, tmp_path: Path) -> None:
    folder = Path(compare(make_statistics(text=TWO + CENTRAL + COMPARED), tmp_path, workers=1)["path"])
    assert (
        hold(
            folder,
            results={"errors": "errors", "settings": SETTINGS, "queries": "the settings of queries"},
            measured=ANSWERS,
        ).refused
        > 500
    )
