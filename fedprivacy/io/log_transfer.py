"""Transfers a run's record through a log: marked, numbered lines of base64 with digests.

The server of a deployment runs far from who submitted the run, and what comes back is the text of a log,
into which others write too: Flower, libraries, and errors whose words a node chose. So each line carries a
mark that the server draws before it speaks to any node, is numbered, and counts only where it begins a line.
The first carries the token that the submitter gave the run.

    @record MARK NUMBER KIND BASE64

begin   {"token", "path"}                 path: where the record lies on the server's machine
event   a round or a query, as it happens
more    bytes that come before those of the next event, which is longer than a line
file    {"name", "size", "digest"}        then its bytes in parts
part    bytes
end     {"status", "error", "left_out"}
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedprivacy.errors import RunError

MOST_BYTES = 16 * 2**20  # of the whole record
MOST_EVENTS = 2**20
PART = 6 * 1024  # bytes in a line, which base64 makes 8 kB
_LINE = re.compile(r"@record ([0-9a-f]{32}) ([0-9]{1,9}) (begin|event|more|file|part|end) ([A-Za-z0-9+/=]*)$")
_NAME = re.compile(r"scenario\.toml|run\.json|events\.jsonl|checkpoint/round-[0-9]{6,9}\.safetensors")
_TOKEN = re.compile(r"[0-9a-f]{32}")


def new_token() -> str:
    """A token for one run."""
    return secrets.token_hex(16)


def is_token(value: object) -> bool:
    """Whether a run config requests the record in the log."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


class Sender:
    """Makes the lines of a run's record.

    Args:
        token: The one that the submitter gave the run.

    >>> home = Arrivals("0" * 32)
    >>> sender = Sender("0" * 32)
    >>> for line in [sender.begin("runs/1"), *sender.file("run.json", b"{}"), sender.end("finished")]:
    ...     _ = home.feed(line)
    >>> home.result().files
    {'run.json': b'{}'}
    """

    def __init__(self, token: str) -> None:
        self.token, self._mark, self._number = token, secrets.token_hex(16), 0

    def begin(self, path: str) -> str:
        """The first line; before it no node may have been spoken to."""
        return self._json("begin", {"token": self.token, "path": path})

    def event(self, event: Mapping[str, Any]) -> Iterator[str]:
        """The lines of a round's or a query's event."""
        data = json.dumps(event).encode()
        last = (len(data) - 1) // PART * PART
        for start in range(0, last, PART):
            yield self._line("more", data[start : start + PART])
        yield self._line("event", data[last:])

    def file(self, name: str, data: bytes) -> Iterator[str]:
        """The lines of a file; a later file of the same name replaces it."""
        yield self._json("file", {"name": name, "size": len(data), "digest": _digest(data)})
        for start in range(0, len(data), PART):
            yield self._line("part", data[start : start + PART])

    def end(self, status: str, error: str | None = None, left_out: str | None = None) -> str:
        """The last line.

        Args:
            status: How the run ended: "finished", "failed".
            error: Why it failed.
            left_out: The files that were too large to send.
        """
        return self._json("end", {"status": status, "error": error, "left_out": left_out})

    def _json(self, kind: str, value: Mapping[str, Any]) -> str:
        return self._line(kind, json.dumps(value).encode())

    def _line(self, kind: str, data: bytes) -> str:
        number, self._number = self._number, self._number + 1
        return f"@record {self._mark} {number} {kind} {base64.b64encode(data).decode()}"


@dataclass
class Result:
    """The received files.

    Args:
        path: Where the record lies on the server's machine; None if not even that came.
        files: Whole files by name.
        events: The rounds' or queries' events.
        status: How the run ended; None if its end did not come.
        error: Why it failed.
        left_out: The files that were too large to send.
    """

    path: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    status: str | None = None
    error: str | None = None
    left_out: str | None = None


class Arrivals:
    """Reads a log line by line; the log may be read again from its beginning.

    Args:
        token: The run's token.
    """

    def __init__(self, token: str) -> None:
        self._token, self._mark = token, ""
        self._next, self._bytes = 0, 0
        self._file: dict[str, Any] | None = None
        self._data, self._more = bytearray(), bytearray()
        self._result = Result()
        self.damage: str | None = None

    def feed(self, line: str) -> dict[str, Any] | None:
        """Takes a line of the log, and returns the event that it brought, if it did."""
        match = _LINE.match(line.rstrip("\r\n"))
        if match is None or self.damage or self._result.status is not None:
            return None
        mark, number, kind = match[1], int(match[2]), match[3]
        try:
            data = base64.b64decode(match[4], validate=True)
        except binascii.Error:
            return None
        if not self._mark:
            # Only the line with our token begins: it is written before any node was heard.
            value = _object(data) if kind == "begin" and number == 0 else {}
            if value.get("token") != self._token:
                return None
            self._mark, self._next = mark, 1
            self._result.path = str(value.get("path"))
            return None
        if mark != self._mark or number < self._next:
            return None  # not the server's, or the log is read again
        if number > self._next:
            self.damage = f"line {self._next} of the record is missing from the log"
            return None
        self._next += 1
        self._bytes += len(data)
        if self._bytes > 2 * MOST_BYTES:
            self.damage = "the record in the log is too large"
            return None
        return self._take(kind, data)

    @property
    def events(self) -> int:
        """The number of received events."""
        return len(self._result.events)

    @property
    def ended(self) -> bool:
        """Whether the record's end came."""
        return self._result.status is not None

    @property
    def path(self) -> str | None:
        """Where the record lies on the server's machine; None while nothing came."""
        return self._result.path

    def result(self) -> Result:
        """The files received so far, complete ones only.

        Raises:
            RunError: if the log is damaged.
        """
        if self.damage:
            raise RunError(f"the record did not come home whole: {self.damage}.")
        return self._result

    def whole(self) -> Result:
        """The received files, once all have arrived.

        Raises:
            RunError: if the log is damaged, or ends before the record does.
        """
        result = self.result()
        if result.status is None:
            what = "nothing of it is in the log" if result.path is None else "the log ends before it does"
            raise RunError(f"the record did not come home whole: {what}.")
        return result

    def _take(self, kind: str, data: bytes) -> dict[str, Any] | None:
        if kind == "part":
            self._part(data)
            return None
        if self._file is not None:
            self.damage = f"the file {self._file['name']} is cut short"
            return None
        if kind == "more":
            self._more += data
            return None
        value = _object(bytes(self._more) + data)
        self._more.clear()
        if kind == "event" and len(self._result.events) < MOST_EVENTS:
            self._result.events.append(value)
            return value
        if kind == "file":
            self._open(value)
        elif kind == "end" and isinstance(value.get("status"), str):
            self._result.status = value["status"]
            self._result.error, self._result.left_out = value.get("error"), value.get("left_out")
        else:
            self.damage = f"a line of kind {kind} is not what it should be"
        return None

    def _open(self, value: dict[str, Any]) -> None:
        name, size = value.get("name"), value.get("size")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.damage = "a file has a name that no record has"
        elif not isinstance(size, int) or not 0 <= size <= MOST_BYTES:
            self.damage = f"the file {name} is too large"
        else:
            self._file, self._data = value, bytearray()
            self._close_if_whole()

    def _part(self, data: bytes) -> None:
        if self._file is None:
            self.damage = "a part belongs to no file"
            return
        self._data += data
        self._close_if_whole()

    def _close_if_whole(self) -> None:
        assert self._file is not None
        if len(self._data) < self._file["size"]:
            return
        data = bytes(self._data)
        if len(data) != self._file["size"] or _digest(data) != self._file.get("digest"):
            self.damage = f"the file {self._file['name']} is not what was sent"
        self._result.files[self._file["name"]] = data
        self._file = None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
