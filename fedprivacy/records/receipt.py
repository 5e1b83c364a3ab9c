"""Charges a run to an account, and keeps its place there in the run directory.

So resuming the run costs nothing more, and the account notes how it ended.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

from pydantic import Field

from fedprivacy.account.charge import Charge, Works
from fedprivacy.account.entering import Receipt
from fedprivacy.account.largest import Suggest
from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.validation import Fields, check
from fedprivacy.records.run_directory import RunDirectory

FILE = "account.json"


class _StoredReceipt(Fields):
    account: str
    entry: str
    part: Annotated[int, Field(ge=0)]
    digest: str
    start: str | None = None


class ChargedRun:
    """The context of a run that may be charged: on leaving it, the account notes how the run ended.

    Args:
        charge: The account; None: there is none.
        works: Gives the plans of the run.
        resumed: The directory of a run to resume; None: a new run, which is charged on entering.
        suggest: Words what of several plans would fit where all do not (`largest_part`).

    Raises:
        InputError: the plans may not enter; or the run to resume is not charged in this account.
    """

    def __init__(
        self,
        charge: Charge | None,
        works: Works,
        resumed: Path | None = None,
        suggest: Suggest | None = None,
    ) -> None:
        self._charge, self._works, self._resumed, self._suggest = charge, works, resumed, suggest
        self._receipt: Receipt | None = None
        self._run: str | None = None if resumed else ""

    def __enter__(self) -> Self:
        if self._charge is None:
            return self
        if self._resumed is None:
            self._receipt = self._charge.enter(self._works(), self._suggest)
        else:
            self._receipt = read_receipt(self._resumed)
            self._charge.check(self._receipt, self._works())
        return self

    def begin(self, directory: RunDirectory) -> None:
        """Writes the receipt to the new directory of the run."""
        if self._receipt is not None:
            directory.write(FILE, text_of(self._receipt))
        self.hold(directory)

    def hold(self, directory: RunDirectory) -> None:
        """Names the directory of the run, which this process holds alone."""
        self._run = directory.path.name

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Another process may be at work in a directory that was never held.
        if self._charge is not None and self._receipt is not None and self._run is not None:
            self._charge.note_end(self._receipt, "interrupted" if kind else "finished", self._run)


def text_of(receipt: Receipt) -> str:
    """The content of a receipt's file."""
    return json.dumps(receipt.to_json(), indent=2) + "\n"


def read_receipt(path: Path) -> Receipt:
    """Reads the receipt in the directory of a run.

    Raises:
        InputError: it has none.
    """
    try:
        data = bounded_json.loads(bounded_json.read_bytes(path / FILE, follow=False))
    except FileNotFoundError:
        raise InputError(
            f"{path}: was begun without an account, so it cannot enter one now: its results may have been "
            "seen. Leave out --account, or start a new run with it."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path / FILE}: {error}. Leave out --account, or start a new run.") from error
    check(data, _StoredReceipt, str(path / FILE), "Start a new run.")
    return Receipt(**{name: data.get(name) for name in _StoredReceipt.model_fields})
