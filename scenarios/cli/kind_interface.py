"""The interface of a kind of scenario to the commands.

`fedprivacy run` takes every `RunKind`, and `fedprivacy compare` every `ComparisonKind`. Methods import what
they need themselves, so that a mistake is reported before torch is loaded.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fedprivacy.errors import InputError
from scenarios.engines.launch import Engine

if TYPE_CHECKING:
    from fedprivacy.account.charge import Charge

Document = dict[str, Any]
OnEvent = Callable[[dict[str, Any]], None]
OnRun = Callable[[str, int, int], None]


class Kind:
    """A kind of scenario.

    Attributes:
        command: The only command that takes it; empty where several do.
        feature: Why, to follow the name of the scenario, as "has attacks".
    """

    command: ClassVar[str] = ""
    feature: ClassVar[str] = ""

    def check_command(self, command: str, source: str) -> None:
        """Refuses a scenario that only another command takes.

        Args:
            command: The command, without `fedprivacy`.
            source: The scenario as the user named it.

        Raises:
            InputError: if another command takes it.
        """
        if self.command and command != self.command:
            raise InputError(
                f"{source}: {self.feature}, which `fedprivacy {command}` does not support. "
                f"Use `fedprivacy {self.command} {shlex.quote(source)}`."
            )


@dataclass(frozen=True)
class RunOptions:
    """The options for running a scenario of any kind.

    Args:
        out: Where run directories go.
        engine: Where the Flower apps run.
        pinned: Whether every node of a federation holds this plan itself (`--pinned`).
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        charge: The account that is charged before the work begins (`--account`).
    """

    out: Path
    engine: Engine
    pinned: bool
    allow_code: bool
    command: str
    charge: Charge | None = None


class RunKind(Kind, ABC):
    """A kind of scenario that `fedprivacy run` takes.

    Attributes:
        results: The results of such a scenario, in the plural, for messages.
    """

    results: ClassVar[str]

    @abstractmethod
    def check(self, scenario: Any, options: RunOptions) -> None:
        """Refuses options that are not for this kind, before anything is written.

        Raises:
            InputError: if an option is not for this kind.
        """

    @abstractmethod
    def progress(self, scenario: Any) -> AbstractContextManager[OnEvent]:
        """Shows progress on stderr; the context gives what is called with each event."""

    @abstractmethod
    def run(self, scenario: Any, options: RunOptions, on_event: OnEvent) -> Document:
        """Runs the scenario in this process or on Ray, and returns its result document."""

    def resume(self, path: Path, scenario: Any, options: RunOptions) -> Document:
        """Resumes an interrupted run, and returns its result document.

        Args:
            path: The run's directory.
            scenario: The scenario stored there.
            options: Of the new command; `out` and `command` are those of the first.

        Raises:
            InputError: if it cannot be resumed.
        """
        again = f"fedprivacy run {shlex.quote(str(path / 'scenario.toml'))}"
        raise InputError(
            f"--resume {path}: {self.results} cannot be resumed, because computing them again takes little "
            f"time. Start again with the same seed, for the same answers: {again}"
        )


class ComparisonKind(Kind, ABC):
    """A kind of scenario that `fedprivacy compare` takes."""

    @abstractmethod
    def seeds(self, scenario: Any) -> int:
        """Returns how many consecutive seeds a comparison uses."""

    @abstractmethod
    def seed_overrides(self, first: int, seeds: int) -> list[str]:
        """Returns the `--set` options, besides that of the seed, with which a comparison begins at a seed."""

    @abstractmethod
    def compare(
        self,
        scenario: Any,
        out: Path,
        *,
        workers: int,
        resume: Path | None,
        allow_code: bool,
        command: str,
        on_run: OnRun,
        charge: Charge | None = None,
    ) -> Document:
        """Compares in a new directory under `out`, or resumes, and returns the result document."""
