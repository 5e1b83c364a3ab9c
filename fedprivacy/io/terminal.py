"""Standard streams of the command: escaped output, and a clean exit when a disk is full.

`guard_streams` is called once, before anything is printed. From then on `print`, logging, warnings and
tracebacks of whatever module reach the terminal through `printable`; styles come from `io.console` alone.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from fedprivacy.errors import FedPrivacyError
from fedprivacy.io.escape import printable


class OutputError(FedPrivacyError):
    """Standard output cannot be written; empty where nobody reads it any more, as in `... | head`."""


class Guarded:
    """A text stream that takes our own styles, and whose failures are ours.

    Args:
        stream: Where it writes.
        essential: Whether a failure ends the command; else the text is lost silently.
    """

    def __init__(self, stream: TextIO, *, essential: bool) -> None:
        self._stream, self._essential = stream, essential

    def write(self, text: str) -> int:
        """Writes a text."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fail(error)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Writes the buffered text."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fail(self, error: OSError) -> None:
        """Discards the stream's remaining output, also at the interpreter's exit."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        if not self._essential:
            return
        if error.errno == errno.EPIPE:
            raise OutputError("") from None
        raise OutputError(
            f"standard output: {error.strerror}. Make room, or send it elsewhere; what was written to files "
            "is whole."
        ) from None


class Escaped(Guarded):
    """A text stream to which others' texts go: characters that act are written out.

    Args:
        stream: Where it writes.
        essential: As of `Guarded`.
    """

    def __init__(self, stream: TextIO, *, essential: bool) -> None:
        super().__init__(stream, essential=essential)
        self.rich_proxied_file = Guarded(stream, essential=essential)  # where rich writes its own styles

    def write(self, text: str) -> int:
        """Writes a text, escaped."""
        super().write(printable(text))
        return len(text)


def guard_streams() -> None:
    """Puts `Escaped` streams in the place of standard output and error, until the process ends.

    A stream that is closed, as by `>&-`, writes to nowhere. What an encoding lacks is written out.
    """
    _fill_standard()
    if not isinstance(sys.stdout, Escaped):
        sys.stdout = Escaped(_encodable(sys.stdout), essential=True)
    if not isinstance(sys.stderr, Escaped):
        sys.stderr = Escaped(_encodable(sys.stderr), essential=False)


def _fill_standard() -> None:
    """Opens the closed ones of descriptors 0 to 2: the next file would get one, and what others print."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere == number:
                os.set_inheritable(nowhere, True)
            else:
                os.dup2(nowhere, number)
                os.close(nowhere)


def _encodable(stream: TextIO | None) -> TextIO:
    """The stream, with an escape for what its encoding lacks; nowhere if it was closed at the start."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError):  # by now another file, that has no position
            stream.reconfigure(errors="backslashreplace")
    return stream


def for_styles(stream: TextIO) -> Any:
    """The stream for texts that were escaped before they were given styles."""
    return stream.rich_proxied_file if isinstance(stream, Escaped) else stream
