"""The registry; that each of its mechanisms keeps its claim is `test_claims.py`."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from fedprivacy.mechanisms import bits, catalogue, categories, coins, local, registry
from fedprivacy.mechanisms.registry import HEURISTICS, REGISTRY, title

ROOT = Path(__file__).parents[3]


def test_it_holds_what_a_client_may_do_to_an_update_and_no_heuristic() -> None:
    assert {name: local.local_class(name).name for name in local.LOCAL} == {
        name: name for name in local.LOCAL
    }
    assert set(local.LOCAL) <= set(REGISTRY)
    assert catalogue.ClipOnly.name not in REGISTRY
    assert catalogue.ClipOnly.name in HEURISTICS
    assert set(catalogue.MECHANISMS) == {
        catalogue.ClipOnly.name,
        *registry.family("local update", "central update"),
    }


def test_titles_are_told_apart_and_an_unknown_name_stays_as_it_is() -> None:
    titles = [title(name) for name in REGISTRY]
    assert len(set(titles)) == len(titles)
    assert title("no-such-mechanism") == "no-such-mechanism"


@pytest.mark.parametrize("module", [bits, categories, coins, local, registry])
def test_the_examples_of_the_docstrings_hold(module) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# A file with one mechanism of each family that other rooms choose from, and its lines of the registry.
TOYS = """
from dataclasses import dataclass
from typing import ClassVar
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.kary import KaryRandomizedResponse

class ToyUpdate(Gaussian):
    name: ClassVar[str] = "toy-update"
    title: ClassVar[str] = "toy update"

class ToyServer(Gaussian):
    name: ClassVar[str] = "toy-server"
    title: ClassVar[str] = "toy server"

class ToyOracle(KaryRandomizedResponse):
    name: ClassVar[str] = "toy-oracle"
    title: ClassVar[str] = "toy oracle"
    procedure: ClassVar[str] = "each client names its category"
"""
USED = """
import sys
import fedprivacy.mechanisms
from fedprivacy.mechanisms.registry import REGISTRY, Entry, title

fedprivacy.mechanisms.__path__.append(sys.argv[1])
REGISTRY["toy-update"] = Entry("local update", "toys:ToyUpdate")
REGISTRY["toy-server"] = Entry("central update", "toys:ToyServer")
REGISTRY["toy-oracle"] = Entry("category", "toys:ToyOracle")

from fedprivacy.scenario.loading import load
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.report.statistics.figures import DOES
from fedprivacy.statistics.plan import plan_of as statistics_plan_of
from scenarios.authoring.catalogue import find

assert title("toy-oracle") == "toy oracle"
local = ["privacy.trust=local", "privacy.epsilon=4.0"]
plan = plan_of(load(find("digits"), [*local, "privacy.mechanism=toy-update"]), 650)
assert plan.mechanism.name == "toy-update"
assert Plan.from_json(plan.to_json()) == plan
data = plan.to_json()
assert Plan.from_json({**data, "mechanism": {**data["mechanism"], "name": "toy-server"}}).mechanism.name == "toy-server"

names = load(find("first-names"), ["privacy.trust=local", "queries.names.local=toy-oracle"])
assert [query.mechanism.name for query in statistics_plan_of(names).asks] == ["toy-oracle"]
assert DOES["local", "toy-oracle"] == "each client names its category"
"""


def test_a_new_mechanism_is_one_file_and_one_line(tmp_path: Path) -> None:
    """What scenarios accept, plans calibrate and read back, and pages describe follows from the registry."""
    (tmp_path / "toys.py").write_text(TOYS)
    done = subprocess.run(
        [sys.executable, "-c", USED, str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
