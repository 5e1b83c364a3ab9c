"""Charges work to an account before it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.account.entering import Receipt, check_receipt, enter
from fedprivacy.account.entry import PlannedWork

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

    def enter(self, works: Sequence[PlannedWork]) -> Receipt:
        """Charges plans whose work begins now; see `entering.enter`."""
        return enter(self.path, works, command=self.command, same_population=self.same_population)

    def check(self, receipt: Receipt, works: Sequence[PlannedWork]) -> None:
        """Checks that resumed work is charged in this account; see `entering.check_receipt`."""
        check_receipt(self.path, receipt, works)


@contextmanager
def charged(charge: Charge | None, works: Works) -> Iterator[Receipt | None]:
    """Charges plans, if there is an account; what follows may begin.

    Args:
        charge: The account; None: there is none.
        works: Gives the plans.
    """
    yield None if charge is None else charge.enter(works())
