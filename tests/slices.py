"""Which exhaustive tests a run has: all of them, none, or one slice. Each is in one slice, so that in `SLICES` runs, each
with the next slice, every test runs. Tests that are not marked are in every run.

`@pytest.mark.exhaustive` marks a test, or one of its cases. In every run stay, with `beyond=N`, the first N cases of a
test, and with `every=N` each N-th: where N divides no length of a grid, those are as unlike as can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from zlib import crc32

import pytest

SLICES = 24
LEFT_OUT = pytest.StashKey[int]()  # how many tests this process leaves to other slices


def slice_of(nodeid: str) -> int:
    """The slice of a test: the same in every run, process and place of the repository."""
    return crc32(nodeid.encode()) % SLICES


def exhaustive(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The marked tests, without the cases that are in every run."""
    marked, cases = set(), Counter[str]()
    for item in items:
        if mark := item.get_closest_marker("exhaustive"):
            name = item.nodeid.split("[")[0]
            case, cases[name] = cases[name], cases[name] + 1
            every = mark.kwargs.get("every")
            if case >= mark.kwargs.get("beyond", 0) and not (every and case % every == 0):
                marked.add(item)
    return marked


def chosen(text: str) -> str | int:
    """The value of `--slice`: any number is taken modulo `SLICES`, so that a count of commits is one."""
    return text if text in ("all", "none") else int(text) % SLICES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slice",
        type=chosen,
        default="all",
        metavar="NUMBER",
        help=f"of the tests marked exhaustive, run the slice with this number modulo {SLICES}; or all, or none of them",
    )


@pytest.hookimpl(tryfirst=True)  # cases are counted before -k and -m leave out some
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("slice")
    if wanted == "all":
        return
    left_out = {item for item in exhaustive(items) if slice_of(item.nodeid) != wanted}
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends the count from a worker of pytest-xdist, which collects, to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Takes the count from a worker: the same from each, since each collects all tests."""
    if "left_out" in getattr(node, "workeroutput", {}):
        node.config.stash[LEFT_OUT] = node.workeroutput["left_out"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    wanted, count = config.getoption("slice"), config.stash.get(LEFT_OUT, 0)
    if wanted == "all":
        return
    run = "no slice" if wanted == "none" else f"slice {wanted} of 0 to {SLICES - 1}"
    terminalreporter.write_line(
        f"Exhaustive tests: {run}; {count:,} left to other slices (make test-all: all)."
    )
