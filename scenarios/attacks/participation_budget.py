"""Accounts for participations over the branches of an attacked run: branches share one budget."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.lock import locked
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.attack.branches import Branch

FILE = "spent.json"
# The key of a branch, whether only the victim gets requests, the number of rounds.
Row = tuple[str, bool, int]


@dataclass(frozen=True)
class AttackRounds:
    """Rounds of attacks that were charged to a trained run.

    Args:
        everybody: Those with requests to all clients.
        victim: Those with requests to the victim alone.
    """

    everybody: int = 0
    victim: int = 0


NOTHING = AttackRounds()


def open_account(folder: Path) -> None:
    """Creates the account of a run before training."""
    folder.mkdir(parents=True, exist_ok=True)
    RunDirectory(folder).write(FILE, "[]\n")


def spend(folder: Path, branches: Sequence[Branch], plan: Plan, warm_up: int) -> list[AttackRounds]:
    """Charges a trained run for branches before they start.

    A branch that already ran sends the same requests in the same rounds and gets the same answers, so it
    costs nothing more.

    Args:
        folder: The folder of the trained run, which keeps the account.
        branches: Those to run now.
        plan: The run's plan.
        warm_up: The rounds before all branches.

    Returns:
        For each branch the cost of those before it.

    Raises:
        InputError: the account is missing, damaged or cannot be written, or the noise of the global models is
            made for fewer rounds. (Clients account for their own noise, and refuse.)
    """
    if not branches:
        return []
    with _alone(folder):
        account = _read(folder)
        known, isolated = len(account), []
        for branch in branches:
            keys = [key for key, _, _ in account]
            if branch.key not in keys:
                account.append((branch.key, branch.attack.isolating, branch.rounds))
            before = account[: [*keys, branch.key].index(branch.key)]
            isolated.append(
                AttackRounds(
                    sum(rounds for _, isolating, rounds in before if not isolating),
                    sum(rounds for _, isolating, rounds in before if isolating),
                )
            )
        trained = warm_up + sum(rounds for _, isolating, rounds in account if not isolating)
        if plan.trust == "central" and trained > plan.rounds:
            raise InputError(
                f"{folder}: with these attacks the run and all that was played on it take {trained} rounds, "
                f"and the noise of its global models is made for {plan.rounds}. Play the scenario anew."
            )
        if len(account) > known:
            _write(folder, account)
    return isolated


def charged_keys(folder: Path) -> list[str]:
    """The keys of the branches that a trained run was charged for, the first one first.

    Raises:
        InputError: the account is missing or damaged.
    """
    return [key for key, _, _ in _read(folder)]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the account: two simultaneous replays must not spend the same answers."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: what was spent on it cannot be read: {error.strerror}.") from error
    try:
        with locked(handle):
            yield
    finally:
        os.close(handle)


def _write(folder: Path, account: Sequence[Row]) -> None:
    rows = [{"key": key, "isolating": isolating, "rounds": rounds} for key, isolating, rounds in account]
    try:
        RunDirectory(folder).write(FILE, json.dumps(rows, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{folder}: what attacks cost cannot be written down: {error.strerror}.") from error


def _read(folder: Path) -> list[Row]:
    path = folder / FILE
    try:
        rows = bounded_json.read(path)
        entries = [(str(row["key"]), bool(row["isolating"]), int(row["rounds"])) for row in list(rows)]
        if not isinstance(rows, list) or any(rounds < 1 for _, _, rounds in entries):
            raise ValueError("no list of branches that were played")
        return entries
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: missing or damaged ({error}): what the run's clients have answered is not known. "
            "Play the scenario anew."
        ) from error
