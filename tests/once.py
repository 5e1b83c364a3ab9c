"""Documents that one process makes for all that run tests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


def once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], dict[str, dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """The documents by `make`, which take a while: the first process makes them, the others wait and read."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    stored = folder.with_suffix(".json")
    with FileLock(folder.with_suffix(".lock")):
        if not stored.exists():
            folder.mkdir()
            stored.write_text(json.dumps(make(folder)))
    documents: dict[str, dict[str, Any]] = json.loads(stored.read_text())
    return documents
