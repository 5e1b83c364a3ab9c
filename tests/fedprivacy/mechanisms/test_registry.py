"""The registry; that each of its mechanisms keeps its claim is `test_claims.py`."""

from __future__ import annotations

import doctest

import pytest

from fedprivacy.mechanisms import bits, catalogue, categories, coins, local, registry
from fedprivacy.mechanisms.registry import REGISTRY, title


def test_it_holds_what_a_client_may_do_to_an_update_and_no_heuristic() -> None:
    assert {name: local.local_class(name).name for name in local.LOCAL} == {
        name: name for name in local.LOCAL
    }
    assert set(local.LOCAL) <= set(REGISTRY)
    assert catalogue.ClipOnly.name not in REGISTRY


def test_titles_are_told_apart_and_an_unknown_name_stays_as_it_is() -> None:
    titles = [title(name) for name in REGISTRY]
    assert len(set(titles)) == len(titles)
    assert title("no-such-mechanism") == "no-such-mechanism"


@pytest.mark.parametrize("module", [bits, categories, coins, local, registry])
def test_the_examples_of_the_docstrings_hold(module) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
