"""The interface of a tracker, and the trackers by name: each is one file and one line here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.io.install_hint import install

TRACKERS: Mapping[str, str] = {  # name -> "module:class"
    "tensorboard": "scenarios.tracking.tensorboard:TensorBoard",
    "mlflow": "scenarios.tracking.mlflow:Mlflow",
    "wandb": "scenarios.tracking.wandb:Wandb",
}
PROJECT = "fedprivacy"  # the experiment or project of every run


class Tracker(ABC):
    """One run of an experiment tracker, open from its creation to `close`.

    Args:
        label: The name of the run.
        out: The folder of run directories, for trackers that write files.
    """

    @abstractmethod
    def __init__(self, label: str, out: Path) -> None:
        """Opens a run."""

    @abstractmethod
    def settings(self, settings: Mapping[str, str]) -> None:
        """Logs the public settings of the scenario, key -> value as text."""

    @abstractmethod
    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers of one step."""

    @abstractmethod
    def note(self, key: str, text: str) -> None:
        """Logs a text."""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """Closes the run; `finished` is false where it was interrupted or failed."""


def tracker_class(name: str) -> type[Tracker]:
    """Returns a tracker by its name.

    Raises:
        InputError: if there is no such tracker, or its package is not installed.
    """
    if name not in TRACKERS:
        raise InputError(f"--track {name}: no such tracker. Choose from {', '.join(TRACKERS)}.")
    module, _, cls = TRACKERS[name].partition(":")
    try:
        tracker: type[Tracker] = getattr(import_module(module), cls)
    except ImportError:
        raise InputError(
            f"--track {name}: {name} is not installed. Install it with: {install(name)}"
        ) from None
    return tracker
