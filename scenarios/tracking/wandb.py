"""Weights & Biases: a run of the project "fedprivacy", in the mode that the environment gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import wandb

from fedprivacy.errors import InputError
from scenarios.tracking.tracker import PROJECT, Tracker


class Wandb(Tracker):
    """A wandb run. Its own reports on the machine, the code and the terminal are switched off."""

    def __init__(self, label: str, out: Path) -> None:
        """Opens a run."""
        # The command line has the seed, the program has paths, and the terminal has operator-only lines.
        quiet = wandb.Settings(
            console="off", disable_code=True, disable_git=True, save_code=False, silent=True,
            x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True,
        )  # fmt: skip
        out.mkdir(parents=True, exist_ok=True)
        try:
            self._run = self._open(label, out, quiet)
        except wandb.Error as error:
            reason = str(error).strip().partition(". ")[0]
            remedy = "Log in with `wandb login`, or set WANDB_MODE=offline."
            raise InputError(f"--track wandb: {reason}. {remedy}") from error

    @staticmethod
    def _open(label: str, out: Path, quiet: wandb.Settings) -> wandb.Run:
        return wandb.init(
            project=PROJECT,
            name=label,
            dir=str(out),
            settings=quiet,
            reinit="create_new",
        )

    def settings(self, settings: Mapping[str, str]) -> None:
        """Logs the configuration."""
        self._run.config.update(dict(settings))

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers."""
        self._run.log(dict(values), step=step)

    def note(self, key: str, text: str) -> None:
        """Logs a text in the summary."""
        self._run.summary[key] = text

    def close(self, finished: bool) -> None:
        """Ends the run."""
        self._run.finish(exit_code=0 if finished else 1)
