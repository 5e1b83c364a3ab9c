"""A folder of stored results of several kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedprivacy as fp

QUIET = {"progress": False, "workers": 1}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs at two deltas, units and trust models, a comparison and a survey; no test changes them."""
    return tmp_path_factory.mktemp("stored")


@pytest.fixture(scope="session")
def stored(folder: Path) -> dict[str, Path]:
    small = {"rounds": 1, "out": folder, **QUIET}
    results = {
        "plain": fp.run("digits", **small),
        "again": fp.run("digits", **{**small, "seed": 77}),
        "weaker": fp.run("digits", epsilon=8, **small),
        "other-delta": fp.run("digits", delta=1e-6, **small),
        "other-adjacency": fp.run("digits", adjacency="zero-out", **small),
        "none": fp.run("digits", trust="none", set={"sampling.name": "all"}, **small),
        "compare": fp.compare("digits", trusts=["none", "central"], epsilons=[2], seeds=[1], **small),
        "survey": fp.ask("star-wars-survey", out=folder, progress=False),
    }
    return {name: result.path for name, result in results.items()}
