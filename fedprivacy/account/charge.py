"""Charges work to an account before it begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.account.entering import Receipt, check_receipt, enter, note_end
from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.largest import Suggest
from fedprivacy.errors import FedPrivacyError

Works = Callable[[], Sequence[PlannedWork]]


@dataclass(frozen=True)
class Charge:
    """The account that a command charges.

    Args:
        path: The account's file.
        command: The command, without `fedprivacy`.
        same_population: Whether the submitter states that the clients are those of the account.
    """

    path: Path
    command: str
    same_population: bool = False

    def enter(self, works: Sequence[PlannedWork], suggest: Suggest | None = None) -> Receipt:
        """Charges plans whose work begins now; see `entering.enter`."""
        return enter(
            self.path,
            works,
            command=self.command,
            same_population=self.same_population,
            suggest=suggest,
        )

    def check(self, receipt: Receipt, works: Sequence[PlannedWork]) -> None:
        """Checks that resumed work is charged in this account; see `entering.check_receipt`."""
        check_receipt(self.path, receipt, works)

    def note_end(self, receipt: Receipt, outcome: str, run: str) -> None:
        """Notes how charged work ended; see `entering.note_end`. If that fails, it stays charged."""
        try:
            note_end(self.path, receipt, outcome, run)
        except FedPrivacyError as error:
            print(f"{error} The account does not note that the run has {outcome}.", file=sys.stderr)
