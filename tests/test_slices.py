"""The choice of exhaustive tests: all slices together are all tests, and each exhaustive test is in one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.slices import SLICES

TESTS = """
import pytest

def test_always(): pass

@pytest.mark.exhaustive
def test_whole(): pass

@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("case", range(30))
def test_first(case): pass

@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("case", range(30))
def test_each_seventh(case): pass

@pytest.mark.parametrize("case", ["plain", pytest.param("more", marks=pytest.mark.exhaustive)])
def test_one_case(case): pass
"""
EVERY = {
    *("test_always", "test_first[0]", "test_first[1]", "test_one_case[plain]"),
    *(f"test_each_seventh[{case}]" for case in range(0, 30, 7)),
}


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Collects the tests above, with options, and gives the names of those that would run, and what is printed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take their time
    pytester.makeini("[pytest]\nmarkers = exhaustive\naddopts = --strict-markers -p tests.slices")
    pytester.makepyfile(test_it=TESTS)

    def names(*options: str, how: tuple[str, ...] = ("--collect-only", "-q")) -> tuple[set[str], str]:
        printed = pytester.runpytest_inprocess(*how, *options).stdout.str()
        return set(re.findall(r"test_it\.py::(\S+)", printed)), printed

    return names


def test_all_slices_are_all_tests_and_each_exhaustive_one_is_in_one_of_them(run) -> None:
    every, _ = run()
    assert len(every) == 64
    assert run("--slice", "all")[0] == every
    slices = [run("--slice", str(number))[0] for number in range(SLICES)]
    assert all(names >= EVERY for names in slices)
    apart = [name for names in slices for name in names - EVERY]
    assert sorted(apart) == sorted(every - EVERY)
    assert len({len(names) for names in slices} - {len(EVERY)}) > 1


def test_a_slice_is_taken_modulo_their_number_and_the_rest_is_counted(run) -> None:
    names, printed = run("--slice", str(5 * SLICES + 3))
    assert names == run("--slice", "3")[0]
    assert f"slice 3 of 0 to {SLICES - 1}; {64 - len(names)} left to other slices" in printed


def test_no_slice_leaves_what_is_in_every_run(run) -> None:
    names, printed = run("--slice", "none")
    assert names == EVERY
    assert f"no slice; {64 - len(EVERY)} left to other slices" in printed


def test_a_selection_counts_cases_before_it_leaves_out_some(run) -> None:
    assert run("--slice", "none", "-k", "test_first")[0] == {"test_first[0]", "test_first[1]"}


def test_workers_tell_how_many_are_left_out(run) -> None:
    names, printed = run("--slice", "none", how=("-v", "-p", "xdist.plugin", "--numprocesses", "2"))
    assert names == EVERY
    assert f"no slice; {64 - len(EVERY)} left to other slices" in printed


def test_contributing_states_the_number_of_slices() -> None:
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    assert f"one slice of {SLICES}:" in text
    assert f"commits modulo {SLICES}," in text


def test_a_slice_that_is_no_number_is_refused(run, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--slice", "last")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--slice" in result.stderr.str()
