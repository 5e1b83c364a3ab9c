"""Where the mistakes of a scenario are: lines of its file, and overrides of the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import Finding, KeyPath, Problem, ScenarioError
from fedprivacy.io.toml_text import dotted, kind_of, literal

# Keys that choose which other keys there are.
CHOICES = ("name", "partition", "scaling", "trust", "unit", "optimizer", "mechanism")


@dataclass(frozen=True)
class Override:
    """One `--set a.b=value`."""

    label: str
    path: KeyPath
    value: Any


@dataclass(frozen=True)
class Places:
    """Where the keys of a scenario come from: lines of a file, and overrides.

    Args:
        file: The file as the user named it.
        lines: KeyPath of a key -> its line.
        overrides: The `--set` options.
    """

    file: str = ""
    lines: Mapping[KeyPath, int] | None = None
    overrides: Sequence[Override] = ()

    def problem(self, finding: Finding) -> Problem:
        """The finding as the user reads it, with its line or its `--set`."""
        value = f" = {finding.shown}" if finding.shown else ""
        for override in reversed(self.overrides):
            around = override.path[: len(finding.path)] == finding.path and finding.path not in (
                self.lines or {}
            )
            if around or finding.path[: len(override.path)] == override.path:
                rest = dotted(finding.path) + value + ": " if len(finding.path) > len(override.path) else ""
                return Problem(f"--set {override.label}", rest + finding.what, finding.remedy)
        for override in reversed(self.overrides):
            # An override (of a partition, a trust model) may require a key that is missing.
            chose = override.path[-1] in CHOICES and override.path[:1] == finding.path[:1]
            if chose and finding.path not in (self.lines or {}):
                what = dotted(finding.path) + value + ": " + finding.what
                return Problem(f"--set {override.label}", what, finding.remedy)
        return Problem(
            dotted(finding.path) + value, finding.what, finding.remedy, self.file, self.line(finding.path)
        )

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, else of the innermost table around it that has one."""
        lines = self.lines or {}
        return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)


def refuse(findings: Iterable[Finding], places: Places, problems: Iterable[Problem] = ()) -> None:
    """Refuses a scenario that has mistakes.

    Args:
        findings: Its mistakes.
        places: Where its keys come from.
        problems: Mistakes outside its keys, such as those of options.

    Raises:
        ScenarioError: With all of them.
    """
    everything = [*problems, *map(places.problem, findings)]
    if everything:
        raise ScenarioError(everything)


def no_section(section: KeyPath, value: Any, at: KeyPath | None = None) -> Finding:
    """Returns the finding of a value in the place of a section, `at` its own path unless another is given."""
    remedy = f"Write [{'.'.join(map(str, section))}] on a line of its own."
    return wrong_type(section if at is None else at, value, "a section", remedy)


def wrong_type(path: KeyPath, value: Any, wanted: str, remedy: str = "") -> Finding:
    return Finding(path, f"{literal(value)} is {kind_of(value)}, {wanted} is needed", remedy)
