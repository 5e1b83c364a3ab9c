"""Edits of stored statistics: each is refused, or changes nothing that is printed as a guarantee."""

from __future__ import annotations

from pathlib import Path

import pytest
from edits import a_tenth_or_all, hold

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


RESULTS = {"answers": "answers", "settings": SETTINGS}


@pytest.fixture(scope="module")
def local_run(make_statistics, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which every edit is held; of the others those of what they share with it once."""
    return Path(ask(make_statistics(text=TWO + LOCAL), tmp_path_factory.mktemp("local"))["path"])


@a_tenth_or_all
def test_an_edited_run_is_refused_or_promises_the_same(every: int, local_run: Path) -> None:
    assert hold(local_run, results=RESULTS, measured=ANSWERS, every=every).refused > 500 // every


@pytest.mark.exhaustive
def test_an_edited_central_run_is_refused_or_promises_the_same(
    local_run: Path, make_statistics, tmp_path: Path
) -> None:
    folder = Path(ask(make_statistics(text=TWO + CENTRAL), tmp_path)["path"])
    assert hold(folder, results=RESULTS, measured=ANSWERS, like=local_run).refused > 200


@a_tenth_or_all
def test_an_edited_comparison_is_refused_or_promises_the_same(
    every: int, local_run: Path, make_statistics, tmp_path: Path
) -> None:
    folder = Path(compare(make_statistics(text=TWO + CENTRAL + COMPARED), tmp_path, workers=1)["path"])
    assert (
        hold(
            folder,
            results={"errors": "errors", "settings": SETTINGS, "queries": "the settings of queries"},
            measured=ANSWERS,
            like=local_run,
            every=every,
        ).refused
        > 300 // every
    )
