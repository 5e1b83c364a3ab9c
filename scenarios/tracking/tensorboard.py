"""TensorBoard: event files in OUT/tensorboard, to be read with `tensorboard --logdir OUT/tensorboard`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from scenarios.tracking.tracker import Tracker


class TensorBoard(Tracker):
    """A directory of event files."""

    def __init__(self, label: str, out: Path) -> None:
        """Opens a new directory."""
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06d}"
        self._writer = SummaryWriter(str(out / "tensorboard" / f"{stamp}-{label}"))

    def settings(self, settings: Mapping[str, str]) -> None:
        """Logs a table."""
        rows = "\n".join(f"| {key} | {value} |" for key, value in settings.items())
        self._writer.add_text("settings", f"| key | value |\n|---|---|\n{rows}")

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs scalars."""
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)

    def note(self, key: str, text: str) -> None:
        """Logs a text."""
        self._writer.add_text(key, text)

    def close(self, finished: bool) -> None:
        """Writes what is buffered."""
        self._writer.add_text("status", "finished" if finished else "not finished")
        self._writer.close()
