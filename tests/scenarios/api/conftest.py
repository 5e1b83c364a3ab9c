"""People and small runs of the Python API."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedprivacy as fp


@pytest.fixture(scope="session")
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records, labels and users: 40 users with 5 records each."""
    stream = np.random.default_rng(1)
    x = stream.standard_normal((200, 3)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64), np.repeat([f"u{at}" for at in range(40)], 5)


@pytest.fixture(scope="session")
def patients() -> pd.DataFrame:
    """Patients of four hospitals, with texts, a missing value and a diagnosis."""
    stream = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "age": stream.integers(20, 90, 120),
            "sex": stream.choice(["f", "m"], 120),
            "hospital": np.repeat(["Ulm", "Bern", "Linz", "Graz"], 30),
        }
    )
    return table.assign(sick=np.where(table.age > 55, "yes", "no"))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of run directories, which no test changes."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def central(runs: Path, arrays: tuple) -> object:
    x, y, users = arrays
    return fp.run(fp.people(x, y, users=users), rounds=3, epsilon=2, out=runs, workers=1, progress=False)


@pytest.fixture(scope="session")
def distributed(runs: Path, arrays: tuple) -> object:
    x, y, users = arrays
    return fp.run(
        fp.people(x, y, users=users),
        trust="distributed",
        rounds=3,
        out=runs,
        workers=1,
        progress=False,
        set={"sampling.name": "all"},
    )


@pytest.fixture(scope="session")
def local(runs: Path, arrays: tuple) -> object:
    settings = {"sampling.name": "all"}
    x, y, users = arrays
    return fp.run(
        fp.people(x, y, users=users),
        trust="local",
        rounds=3,
        out=runs,
        workers=1,
        progress=False,
        set=settings,
    )
