"""The errors that a user can meet.

FedPrivacyError            exit code 1
├── InputError             exit code 2: the user's input is wrong; nothing was written
│   ├── HeldError          another process works on a directory, or it cannot be locked
│   ├── ScenarioError      every mistake of a scenario file at once
│   └── UnsupportedEvent   no accountant can answer for this release
├── RunError               a run failed (all clients failed, ...)
├── VoidRound              a secure sum cannot be opened (`secure_sum.server`)
├── RejectedMessage        a server leaves out a client's message (`secure_sum.server`)
└── Refusal                a client refuses a server's request
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]  # of a key in nested tables and lists


class FedPrivacyError(Exception):
    """An error that is shown to the user as one message, without a traceback."""

    exit_code = 1
    several = False  # whether each line is a separate mistake


class InputError(FedPrivacyError):
    """Invalid input of the user: a file, a key or an option. The message names the fix."""

    exit_code = 2


class HeldError(InputError):
    """A directory that this process cannot lock; the message reveals nothing of its contents."""


@dataclass(frozen=True)
class Finding:
    """One mistake in a document: the key, the problem, the fix, and the value if that helps."""

    path: KeyPath
    what: str
    remedy: str = ""
    shown: str = ""  # the value as TOML, or nothing


@dataclass(frozen=True)
class Problem:
    """One mistake: its place, the problem and the fix."""

    key: str
    what: str
    remedy: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line) if part)
        key = self.key if len(self.key) <= 200 else f"{self.key[:180]} ..."
        parts = [part for part in (where, key) if part]
        sentence = self.what.rstrip(".") + "."
        text = ": ".join([*parts, sentence]) + (f" {self.remedy}" if self.remedy else "")
        return text.replace("\n", "\\n")  # a newline in a file name or value must not start a new line


class ScenarioError(InputError):
    """All mistakes of a scenario, in the order of their lines; beyond `SHOWN` they are counted."""

    SHOWN = 100
    several = True

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: problem.line or 0)
        more = len(self.problems) - self.SHOWN
        lines = [str(problem) for problem in self.problems[: self.SHOWN]]
        super().__init__("\n".join([*lines, f"... and {more} more mistakes."] if more > 0 else lines))


class UnsupportedEvent(InputError):
    """No accountant answers for this DpEvent under this adjacency."""


class RunError(FedPrivacyError):
    """A run that had to stop; its directory records the completed rounds."""


class Refusal(FedPrivacyError):
    """A client's refusal of a request that its own plan forbids.

    Args:
        text: The refused request and the reason, for the owner of the data.
        kind: The kind of the refusal, which depends on no data: all that a server learns from a pinned node
            (`clients.error_filter`).
    """

    def __init__(self, text: str, kind: str = "plan") -> None:
        self.kind = kind
        super().__init__(text)
