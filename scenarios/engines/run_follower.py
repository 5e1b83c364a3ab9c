"""Follows a run on a SuperLink through its log, until its record is home or why not is known."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from fedprivacy.errors import RunError
from fedprivacy.io.escape import on_one_line, printable
from fedprivacy.io.log_transfer import Arrivals, Result
from scenarios.federation.control import Control

_SILENT = 20.0  # seconds without a line before the run's status is requested
_PENDING = 180.0  # seconds that a run may wait to be begun
_GONE = 60.0  # seconds that a SuperLink may be away
_LONGEST = 65536  # bytes of a line that are read
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Following:
    """One run, followed.

    Args:
        control: Flower's commands for its SuperLink.
        run: Its id.
        token: The one in its record.
        on_event: Called with each round's or query's event, once.
    """

    def __init__(
        self, control: Control, run: int, token: str, on_event: Callable[[dict[str, Any]], None] | None
    ) -> None:
        self.control, self.run, self.token, self.on_event = control, run, token, on_event
        self.arrivals = Arrivals(token)
        self._events = 0
        self._log_lines: deque[str] = deque(maxlen=200)

    def follow(self) -> Result:
        """Waits for the record.

        Returns:
            What came home, whole.

        Raises:
            RunError: if the record does not arrive complete, with the known reason.
        """
        began, ended, away, again = time.monotonic(), False, None, False
        while True:
            last = ended  # the log of a run that has ended is read once more, from its beginning
            self._log_lines.clear()
            if self._read_log():
                if self.arrivals.damage is None or again:
                    return self.arrivals.whole()
                # Lines may be lost on the way to us and still be in the log, which the SuperLink keeps.
                again, self.arrivals = True, Arrivals(self.token)
                continue
            try:
                status, details = self.control.status(self.run)
                away = None
            except RunError as error:
                away = away or time.monotonic()
                if time.monotonic() - away > _GONE:
                    raise RunError(
                        f"run {self.run}: the SuperLink {self.control.link.address} is gone, and perhaps "
                        f"the run with it: {error}{self._log_tail()}"
                    ) from error
                time.sleep(2.0)
                continue
            if last:
                raise RunError(self._ended(status, details))
            ended = status.startswith("finished")
            if status in ("pending", "starting") and time.monotonic() - began > _PENDING:
                raise RunError(f"run {self.run} was not begun within {_PENDING:.0f} s: it is {status}.")

    def _read_log(self) -> bool:
        """Reads the log while it flows; whether the record's end, or damage, was in it."""
        process = self.control.log(self.run)
        lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        stop = threading.Event()
        reader = threading.Thread(target=_pump, args=(process, lines, stop), daemon=True)
        reader.start()
        try:
            while True:
                try:
                    line = lines.get(timeout=_SILENT)
                except queue.Empty:
                    if self._has_ended():
                        return False
                    continue
                if line is None:
                    return False
                if self._take(line.decode(errors="replace")):
                    return True
        finally:
            stop.set()
            process.kill()
            process.wait()
            reader.join(timeout=5.0)
            if process.stdout is not None:
                process.stdout.close()

    def _has_ended(self) -> bool:
        """Whether a silent log will stay silent: the run has ended, was not begun, or nobody answers."""
        try:
            status, _ = self.control.status(self.run)
        except RunError:
            return True
        return status != "running"

    def _take(self, line: str) -> bool:
        event = self.arrivals.feed(line)
        if event is not None and self.arrivals.events > self._events:
            self._events = self.arrivals.events
            if self.on_event is not None:
                self.on_event(event)
        if not line.startswith("@record ") and line.strip():
            self._log_lines.append(printable(_COLOURS.sub("", line.rstrip())))
        return self.arrivals.damage is not None or self.arrivals.ended

    def _ended(self, status: str, details: str) -> str:
        words = {
            "finished:stopped": "was stopped",
            "finished:failed": "failed",
            "finished:completed": "ended, but its record did not come home",
        }
        reason = f": {on_one_line(details)}" if details else ""
        tail = "\n".join(list(self._log_lines)[-15:])
        return f"run {self.run} {words.get(status, f'is {status}')}{reason}{self._log_tail()}" + (
            f"\nThe end of its log:\n{tail}" if tail else ""
        )

    def _log_tail(self) -> str:
        where = self.arrivals.path
        return f"\nWhat was written of it is in {where} on the SuperLink's machine." if where else ""


def _pump(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None], stop: threading.Event) -> None:
    assert process.stdout is not None
    try:
        while not stop.is_set():
            line = process.stdout.readline(_LONGEST)
            if not line:
                break
            _put(lines, line, stop)
    except (OSError, ValueError):  # the process was ended
        pass
    _put(lines, None, stop)


def _put(lines: queue.Queue[bytes | None], line: bytes | None, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            lines.put(line, timeout=0.5)
            return
        except queue.Full:
            continue
