"""Sends the record of a run to its submitter through the run's log, where this was requested."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fedprivacy.errors import FedPrivacyError
from fedprivacy.io.log_transfer import MOST_BYTES, PART, Sender, is_token
from fedprivacy.io.regular_file import TooLarge, read_regular
from fedprivacy.records.run_directory import RunDirectory

_AT_ONCE = 2**20  # bytes written before the uploader of Flower's log gets time
_PAUSE = 0.5  # seconds; it uploads five times a second


class LogUpload:
    """Where a run's record goes: into its log, or nowhere.

    Args:
        run_config: Its `record` is the token; without one nothing is sent.
        write: Takes a line.
    """

    def __init__(
        self, run_config: Mapping[str, object], write: Callable[[str], object] | None = None
    ) -> None:
        token = run_config.get("record")
        self._sender = Sender(str(token)) if is_token(token) else None
        self._write = write or _to_log
        self.directory: RunDirectory | None = None

    def begin(self, directory: RunDirectory) -> None:
        """Says where the record is being written; before any node is spoken to."""
        self.directory = directory
        if self._sender:
            self._write(self._sender.begin(str(directory.path.resolve())))

    def on_begin(self) -> None:
        """Sends the record as it is before the first round or query, in which the whole plan is charged.

        If the rest is lost, the record still charges the releases up to then.
        """
        if self._sender is not None and self.directory is not None:
            self._send(["scenario.toml", "run.json"])

    def event(self, event: dict[str, Any]) -> None:
        """Sends a round's or a query's event."""
        if self._sender is None or self.directory is None:
            return
        for line in self._sender.event(event):
            self._write(line)

    def end(self, error: BaseException | None) -> None:
        """Sends the current record, and the status of the run."""
        if self._sender is None:
            return
        left_out = None
        if self.directory is None:  # it could not begin
            self._write(self._sender.begin(""))
        else:
            left_out = self._send(["scenario.toml", "run.json", "events.jsonl", *self._checkpoint()])
        message = None if error is None else description_of(error)
        self._write(self._sender.end("finished" if error is None else "failed", message, left_out))
        time.sleep(2 * _PAUSE)  # the log's last lines are uploaded before the run is called finished

    def _checkpoint(self) -> list[str]:
        assert self.directory is not None
        checkpoints = sorted((self.directory.path / "checkpoint").glob("round-*.safetensors"))
        return [f"checkpoint/{checkpoints[-1].name}"] if checkpoints else []

    def _send(self, names: Iterable[str]) -> str | None:
        """Sends files, and returns the name of one that was left out for its size."""
        assert self._sender is not None
        assert self.directory is not None
        left_out, room, since = None, MOST_BYTES, 0
        for name in names:
            path = self.directory.path / name
            try:
                data = read_regular(path, room, follow=False)
            except TooLarge:
                left_out = name
                continue
            except OSError:  # it is not there yet
                continue
            room -= len(data)
            for line in self._sender.file(name, data):
                self._write(line)
                since += PART
                if since >= _AT_ONCE:
                    since = 0
                    time.sleep(_PAUSE)
        return left_out


@contextmanager
def uploading(run_config: Mapping[str, object]) -> Iterator[LogUpload]:
    """Around a run: whatever ends it, its record goes home."""
    upload = LogUpload(run_config)
    try:
        yield upload
    except BaseException as error:
        upload.end(error)
        raise
    upload.end(None)


def description_of(error: BaseException) -> str:
    """The error text of a failed run: our own errors in their words, others with their kind."""
    text = str(error) if isinstance(error, FedPrivacyError) else f"{type(error).__name__}: {error}"
    return text[:2000]  # which goes home in one line


def _to_log(line: str) -> None:
    # One write, with an end before it: whatever another thread has begun, ours begins a line.
    sys.stdout.write(f"\n{line}\n")
