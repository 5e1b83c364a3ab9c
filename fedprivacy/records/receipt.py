"""The place of a run in an account, kept in its run directory so that resuming it costs nothing more."""

from __future__ import annotations

import json
from pathlib import Path

from fedprivacy.account.charge import Charge, Works
from fedprivacy.account.entering import Receipt
from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.validation import Fields, check
from fedprivacy.records.run_directory import RunDirectory

FILE = "account.json"


class _StoredReceipt(Fields):
    account: str
    entry: str
    part: int
    digest: str


def write_receipt(directory: RunDirectory, receipt: Receipt | None) -> None:
    """Writes the receipt of a run that is charged in an account."""
    if receipt is not None:
        directory.write(FILE, json.dumps(receipt.to_json(), indent=2) + "\n")


def check_charged(charge: Charge | None, path: Path, works: Works) -> None:
    """Checks that work to resume is charged in the account that the user names.

    Args:
        charge: The account; None: the user names none.
        path: The run directory.
        works: Gives the plans of the work.

    Raises:
        InputError: it is not.
    """
    if charge is None:
        return
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
    receipt = Receipt(**{name: data[name] for name in _StoredReceipt.model_fields})
    charge.check(receipt, works())
