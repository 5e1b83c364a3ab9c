"""What the branches of an attacked run have cost: what clients answered to one is spent for the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.plan import Plan
from fedprivacy.runs import RunDirectory
from fedprivacy.scenario.attack.branches import Branch

FILE = "spent.json"


@dataclass(frozen=True)
class Spent:
    """Rounds that were played on a trained run.

    Args:
        everybody: Those in which all clients were asked.
        victim: Those in which the victim alone was.
    """

    everybody: int = 0
    victim: int = 0

    def __add__(self, branch: Branch) -> Spent:
        if branch.attack.isolating:
            return Spent(self.everybody, self.victim + branch.rounds)
        return Spent(self.everybody + branch.rounds, self.victim)


NOTHING = Spent()


def spend(folder: Path, branches: Sequence[Branch], plan: Plan, warm_up: int) -> list[Spent]:
    """Charges a trained run for branches before they are played.

    A branch that was played before asks the same questions in the same rounds and gets the same answers: it
    costs nothing more.

    Args:
        folder: The folder of the trained run, which keeps the account.
        branches: Those to be played now.
        plan: The run's plan.
        warm_up: The rounds that were played before all branches.

    Returns:
        For each branch what those before it have cost.

    Raises:
        InputError: the account is damaged or cannot be written, or the noise of the global models is made for
            fewer rounds. (Noise of clients is theirs to keep an account of: they refuse.)
    """
    account = _read(folder)
    found = []
    for branch in branches:
        before = Spent()
        for key, isolating, rounds in account:
            if key == branch.key:
                break
            before = Spent(
                before.everybody + rounds * (not isolating), before.victim + rounds * bool(isolating)
            )
        else:
            account.append((branch.key, branch.attack.isolating, branch.rounds))
        found.append(before)
    played = warm_up + sum(rounds for _, isolating, rounds in account if not isolating)
    if plan.trust == "central" and played > plan.rounds:
        raise InputError(
            f"{folder}: with these attacks the run and all that was played on it take {played} rounds, and "
            f"the noise of its global models is made for {plan.rounds}. Play the scenario anew."
        )
    rows = [{"key": key, "isolating": isolating, "rounds": rounds} for key, isolating, rounds in account]
    try:
        RunDirectory(folder).write(FILE, json.dumps(rows, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{folder}: what attacks cost cannot be written down: {error.strerror}.") from error
    return found


def _read(folder: Path) -> list[tuple[str, bool, int]]:
    path = folder / FILE
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [(str(row["key"]), bool(row["isolating"]), int(row["rounds"])) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: damaged ({error}): what the run's clients have answered is not known. Play the "
            "scenario anew."
        ) from error
