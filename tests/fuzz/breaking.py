"""Breaks what was whole, and says what reading it took: the parts that all fuzz tests share.

Examples are derandomized: the same each time, so that a failure comes again. What is measured is processor time
of this process and the address space that it may grow by.
"""

from __future__ import annotations

import copy
import json
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as some

from fedprivacy.errors import FedPrivacyError

SECONDS = 5.0  # of processor time for one example, on a slow machine; usual are milliseconds
MEMORY = 2**30  # bytes that reading may add to the address space


# With an eighth of its examples a test is in every run, with all examples it is exhaustive.
an_eighth_or_all = pytest.mark.parametrize(
    "part", [pytest.param(8, id="an eighth"), pytest.param(1, id="all", marks=pytest.mark.exhaustive)]
)


def fuzz(examples: int) -> settings:
    """So many examples, the same each time."""
    return settings(
        max_examples=examples, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],  # the first failure says enough
    )  # fmt: skip


class Tally:
    """How many examples there were, and how many were refused: where none is, nothing was broken."""

    def __init__(self) -> None:
        self.examples = self.refused = 0
        self.slowest = 0.0

    def read(self, read: Callable[..., Any], *given: Any) -> Any:
        """What a loader makes of something broken; None where it says so in one of our errors.

        Raises:
            AssertionError: it took too long.
            Exception: any that is not ours.
        """
        began, said = time.process_time(), None
        self.examples += 1
        try:
            with _ended_after(SECONDS):
                found = read(*given)
        except FedPrivacyError as error:
            self.refused += 1
            found, said = None, str(error)
        taken = time.process_time() - began
        self.slowest = max(self.slowest, taken)
        assert taken < SECONDS, f"took {taken:.1f} s of processor time"
        assert said is None or 0 < len(said) < 100_000, "an error that says nothing, or too much"
        return found


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Ends what takes more processor time."""

    def end(number: int, frame: object) -> None:
        raise AssertionError(f"took over {seconds:.0f} s of processor time")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def bounded() -> Iterator[None]:
    """Limits the address space of this process to a little more than it has."""
    if sys.platform != "linux":
        yield
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


# ------------------------------------------------------------------ bytes

_BITS = some.sampled_from(
    [b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"PK\x03\x04", b"\x80\x04", b"\n", b"'", b"{", b"9" * 12]
)


@some.composite
def broken_bytes(draw: Any, whole: bytes, most: int = 3) -> bytes:
    """Bytes that are cut, flipped, overwritten, taken out or repeated."""
    data = bytearray(whole)
    for _ in range(draw(some.integers(1, most))):
        at = draw(some.integers(0, max(0, len(data) - 1)))
        match draw(some.integers(0, 5)):
            case 0:
                del data[at:]
            case 1 if data:
                data[at] ^= 1 << draw(some.integers(0, 7))
            case 2:
                bits = draw(_BITS)
                data[at : at + len(bits)] = bits
            case 3:
                data[at:at] = draw(_BITS)
            case 4:
                del data[at : at + draw(some.integers(1, 64))]
            case _:
                data[at:at] = data[at : at + draw(some.integers(1, 64))]
    return bytes(data)


# ------------------------------------------------------------------ JSON

ODD = some.one_of(
    some.sampled_from(
        [
            None,
            True,
            False,
            "",
            "x",
            "\0",
            [],
            {},
            [[]],
            {"": {}},
            -1,
            0,
            1,
            2,
            10**6,
            10**9,
            10**15,
            2**63,
            10**30,
            1e-300,
            1e300,
        ]
    ),
    some.integers(-(10**6), 10**6),
    some.floats(allow_nan=True, allow_infinity=True),
    some.text(max_size=8),
)


def _deep(depth: int, pair: tuple[Any, str]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if pair[0] == "[" else {"event": value}
    return value


DEEP = some.builds(_deep, some.sampled_from([30, 100, 400]), some.sampled_from([("[", "]"), ("{", "}")]))


def places(document: Any) -> list[tuple[Any, ...]]:
    """The path of each value of a document."""
    found: list[tuple[Any, ...]] = []
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        found += [path] if path else []
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        waiting += [((*path, key), item) for key, item in items]
    return found


@some.composite
def broken_tree(draw: Any, document: Any, at: list[tuple[Any, ...]]) -> Any:
    """A document of which values are replaced, taken away, repeated, moved or nested.

    Args:
        document: Whole.
        at: Its `places`.
    """
    new = copy.deepcopy(document)
    for _ in range(draw(some.integers(1, 2))):
        *path, last = draw(some.sampled_from(at))
        try:
            holder = new
            for part in path:
                holder = holder[part]
            match draw(some.integers(0, 6)):
                case 0:
                    del holder[last]
                case 1:
                    holder[last] = draw(DEEP)
                case 2:
                    holder[last] = [holder[last]] * draw(some.sampled_from([1, 2, 30]))
                case 3 if isinstance(holder, dict):
                    holder[draw(some.text(max_size=4))] = holder.pop(last)
                case 4:
                    value = holder[last]
                    holder[last] = -value if isinstance(value, int | float) else str(value)
                case _:
                    holder[last] = draw(ODD)
        except (LookupError, TypeError):  # an earlier change has taken that place away
            continue
    return new


@some.composite
def broken_json(draw: Any, document: Any, at: list[tuple[Any, ...]]) -> bytes:
    """The JSON of a document with broken values, or broken JSON of it."""
    text = json.dumps(draw(broken_tree(document, at)))  # NaN and Infinity too
    if draw(some.integers(0, 4)) == 0:
        return bytes(draw(broken_bytes(text.encode())))
    return text.encode()


# ------------------------------------------------------------------ arrays

_SHAPES = some.sampled_from(
    [
        "(1000000000000,)",
        "(-1,)",
        "(2, 2)",
        "()",
        "(3",
        "(0, 1000000000000)",
        "(4,) * 9",
        "(99999999999999999999,)",
        "[4]",
        "(4,)",
    ]
)
_TYPES = some.sampled_from(
    [
        "'<f4'",
        "'<f8'",
        "'<i8'",
        "'|O'",
        "[('a', '<f8')]",
        "'<U1000000000'",
        "'|V0'",
        "'|S0'",
        "'<M8[ns]'",
        "'>f8'",
        "'|b1'",
        "__import__('os')",
        "'<c16'",
    ]
)


@some.composite
def broken_npy(draw: Any, whole: bytes) -> bytes:
    """A .npy file whose header says another shape or type, or whose bytes are broken."""
    # `whole` may be cut short already, where a broken message is broken once more: no header is left then.
    if len(whole) < 10 or draw(some.integers(0, 2)) == 0:
        return bytes(draw(broken_bytes(whole)))
    size = struct.unpack("<H", whole[8:10])[0]
    shape, kind = draw(_SHAPES), draw(_TYPES)
    order = draw(some.sampled_from(["False", "True", "1"]))
    header = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text = header.ljust(max(size, len(header)))[:-1] + "\n" if draw(some.booleans()) else header
    return whole[:8] + struct.pack("<H", len(text)) + text.encode() + whole[10 + size :]
