"""The outcome of a job of several runs, as its document states it, however it ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fedprivacy.documents.kinds import read_whole
from fedprivacy.documents.statistics import StatisticsDocument
from fedprivacy.guarantees.statement import both_figures


def print_charge(document: Mapping[str, Any]) -> None:
    """Prints on stderr what a run that stopped early is charged: both figures, and which one holds when."""
    unanswered = None
    if document["kind"] == StatisticsDocument.KIND:
        unanswered = read_whole(StatisticsDocument, document).unanswered
    for line in both_figures(document["privacy"], unanswered):
        print(f"- {line}", file=sys.stderr)


IN_MEMORY = "This run cannot be repeated from its record alone: it lacks "  # in the scenario's description


def on_resuming(command: str, description: str) -> str:
    """Returns how to go on with interrupted work, or why that is impossible.

    Args:
        command: The command that resumes it.
        description: The scenario's, which says where its records or its model were objects in Python.
    """
    _, noted, lacks = description.partition(IN_MEMORY)
    if not noted:
        return f"Resume with: {command}"
    what = lacks.partition(". ")[0].rstrip(".")
    save = "Save the people first (people.save), or run it again." if "records" in what else "Run it again."
    return f"It cannot be resumed: it lacks {what}. {save}"


class JobOutcome:
    """Wraps the job, which finishes, is interrupted by the user, or fails; its error is raised again.

    Args:
        path: The directory where the report will be, for the message to a user who interrupts.
        again: A sentence on how to resume it (`on_resuming`).
        announce: Whether there is a report of the finished part.
    """

    def __init__(self, path: Path, again: str, *, announce: bool = True) -> None:
        self.announce = announce
        self.path, self.again, self.status = path, again, "failed"
        self.error: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        if failure is None:
            self.status = "finished"
        elif isinstance(failure, KeyboardInterrupt):
            self.status, self.error = "interrupted", "interrupted by the user"
            where = (
                f"What has finished is in {self.path}/report.html"
                if self.announce
                else "There is no report yet."
            )
            print(f"Interrupted. {where}", file=sys.stderr)
            print(self.again, file=sys.stderr)
        elif isinstance(failure, Exception):
            self.error = f"{type(failure).__name__}: {failure}"
