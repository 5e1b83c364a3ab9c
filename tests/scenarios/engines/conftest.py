"""What tests of engines share: one Ray cluster, whose start takes seconds."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scenarios.engines.ray_cluster import Cluster, cluster


@pytest.fixture(scope="module")
def ray_room() -> Iterator[Cluster]:
    """Room for two workers of each of two grids: Ray starts a process for each CPU at once.

    It ends with a module: other tests fork, and Ray's threads in this process do not like that.
    """
    context = cluster(4)
    with careless():
        context.__enter__()
    yield Cluster(2)
    with careless():
        context.__exit__(None, None, None)


@contextmanager
def careless() -> Iterator[None]:
    """Ray leaves it to Python to close its files and to wait for its processes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()
