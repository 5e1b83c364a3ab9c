"""A headless Chromium, and documents of real runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_documents import BARE, GAME, PRIVATE
from chromium import NAMES, Browser
from each_kind import documents_of_each_kind

from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.replay import replay
from tests.once import once


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is installed")
    started = Browser(program)
    yield started
    started.close()


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Attacks on two runs without noise, and on one with; their folders hold the pages."""

    def make(folder: Path) -> dict[str, dict[str, Any]]:
        bare = AttackScenario.from_text(GAME + BARE, overrides=["game.repeats=2"])
        private = AttackScenario.from_text(GAME + PRIVATE)
        return {
            "bare": replay(bare, folder, workers=1, command="fedprivacy attack --seed 3"),
            "private": replay(private, folder, workers=1),
        }

    return once(tmp_path_factory, "attacked", make)


@pytest.fixture(scope="session")
def answered(
    tmp_path_factory: pytest.TempPathFactory, make_scenario: Any, make_statistics: Any, documents: Any
) -> dict[str, dict[str, Any]]:
    """A document of each kind, by its name in `KINDS`."""

    def make(folder: Path) -> dict[str, dict[str, Any]]:
        return documents_of_each_kind(folder, make_scenario, make_statistics, documents)

    return once(tmp_path_factory, "answered", make)
