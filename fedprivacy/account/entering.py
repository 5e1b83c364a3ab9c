"""Enters plans into an account's file, and notes there how their runs ended."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedprivacy.account import account_file
from fedprivacy.account.account import SCHEMA, Account
from fedprivacy.account.entry import PlannedWork, is_same_plan
from fedprivacy.account.largest import Suggest
from fedprivacy.account.policy import Policy
from fedprivacy.errors import InputError


@dataclass(frozen=True)
class Receipt:
    """The place of a plan in an account, which its run directory keeps.

    Args:
        account: The account's key.
        entry: The digest of the line that charged it.
        part: Which plan of that line.
        digest: Of the plan.
        start: The digest of the line about its start, where it was entered to be run later.
    """

    account: str
    entry: str
    part: int
    digest: str
    start: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The receipt as a JSON object."""
        return dict(vars(self))


def create(path: Path, policy: Policy) -> None:
    """Creates an account.

    Raises:
        InputError: the name is taken, or the file cannot be made.
    """
    head = {"schema": SCHEMA, "kind": "account", "account": secrets.token_hex(16), "time": _now()}
    account_file.create(path, {**head, "policy": policy.to_json()})


def enter(
    path: Path,
    works: Sequence[PlannedWork],
    *,
    command: str,
    started: bool = True,
    same_population: bool = False,
    suggest: Suggest | None = None,
) -> Receipt:
    """Charges plans to an account, before their work begins; they are on disk when this returns.

    A plan that was entered before, and has not begun, is not charged again when its work begins.

    Args:
        path: The account's file.
        works: Plans that were all chosen before any result of any of them.
        command: The command, without `fedprivacy`.
        started: Whether their work begins now.
        same_population: Whether the submitter states that their clients are those of the account.
        suggest: As of `largest_part`.

    Returns:
        The place of the first of them.

    Raises:
        InputError: the account cannot be used, or they may not enter; nothing was written.
        RunError: the file cannot be written.
    """
    with account_file.opened(path) as file:
        account = Account.of(path, file.lines)
        if started and len(works) == 1 and (waiting := account.waiting(works[0])) is not None:
            number, at, digest = waiting
            start = file.append({"kind": "start", "time": _now(), "entry": number, "part": at})
            return Receipt(account.key, account.lines.digests[number], at, digest, start)
        parts, stated = account.admitted(works, same_population, suggest)
        entry = {
            "kind": "entry",
            "time": _now(),
            "command": command,
            "started": started,
            "same_population": stated,
            "populations": [each.to_json(account.key) for each in {work.population: None for work in works}],
            "parts": parts,
        }
        return Receipt(account.key, file.append(entry), 0, parts[0]["digest"])


def check_receipt(path: Path, receipt: Receipt, works: Sequence[PlannedWork]) -> None:
    """Checks that a resumed run is charged in an account.

    Raises:
        InputError: it is charged in another account, or as another plan, or the account lost its line.
    """
    account = Account.read(path)
    number, covered = _covered(account, receipt)
    parts = [work.part(account.policy, account.key) for work in works]
    charged = [account.entries[number]["parts"][at] for at in covered]
    if len(parts) != len(charged) or not all(map(is_same_plan, charged, parts)):
        raise InputError(f"{path}: the run was charged as another plan. Start a new run.")


def note_end(path: Path, receipt: Receipt, outcome: str, run: str) -> None:
    """Appends that the run of charged plans has ended, which changes no charge.

    Args:
        path: The account's file.
        receipt: Of the run.
        outcome: "finished", or "interrupted" if it did not complete, for whatever reason.
        run: The name of its directory; empty: it has none.

    Raises:
        InputError: the account cannot be used, or does not have the run.
        RunError: the file cannot be written.
    """
    with account_file.opened(path) as file:
        account = Account.of(path, file.lines)
        number, covered = _covered(account, receipt)
        ends = [account.ended.get((number, at), {}) for at in covered]
        if all((end.get("outcome"), end.get("run")) == (outcome, run) for end in ends):
            return
        body = {"entry": number, "parts": covered, "outcome": outcome, "run": run}
        file.append({"kind": "end", "time": _now(), **body})


def _covered(account: Account, receipt: Receipt) -> tuple[int, list[int]]:
    """The line that charged a run, and which of its plans are those of the run.

    Raises:
        InputError: the account does not have it.
    """
    if receipt.account != account.key:
        raise InputError(
            f"{account.path}: the run is charged in another account. Name that one, or leave it out."
        )
    digests = account.lines.digests
    number = digests.index(receipt.entry) if receipt.entry in digests else -1
    if number not in account.entries or receipt.part >= len(account.entries[number]["parts"]):
        raise InputError(
            f"{account.path}: the entry of this run is missing, so lines were lost at the end of the file, "
            "as by an old copy. Restore the newest copy."
        )
    entry = account.entries[number]
    if entry["started"]:
        return number, list(range(len(entry["parts"])))
    # Plans that were entered to be run later are run one by one. Where a start was lost, another run of the
    # plan may have begun in its place.
    if receipt.start not in digests or (number, receipt.part) not in account.started:
        raise InputError(
            f"{account.path}: the start of this run is missing, so lines were lost at the end of the file, "
            "as by an old copy. Restore the newest copy."
        )
    return number, [receipt.part]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
