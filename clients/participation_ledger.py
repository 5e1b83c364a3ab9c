"""A node's account: what its clients have answered, kept in a folder of its owner's.

It outlives processes, runs and restarts: Flower runs each message in a new process, and who submits another
run would else begin anew. What a client is about to answer is on disk before anything is computed, so that an
answer that never leaves is spent all the same. Nobody resets an account but its owner, by choosing another
folder.

answers.json   {"schema", "of", "scenario", "answers": {client: [...]}, "charge", "digest"}; the charge is a
               random text that names the entry in the account of several plans, or null
lock           held while the account is read, changed and written
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.fleet import Budgets, Ids
from fedprivacy.errors import Refusal
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.folder import open_append
from fedprivacy.io.lock import locked
from fedprivacy.scenario.loading import AnyScenario

SCHEMA = 1
LOCK_SECONDS = 60.0
Answers = dict[str, list[int]]

# Names, evaluation times and the distribution over machines do not change what was
# agreed to; nor where records lie. With noise of the operating system the seed does not either.
_WITHOUT_EFFECT = (
    *("name", "description", "duration", "tuning", "seed", "evaluation", "compare", "federation"),
    *("game", "attacks"),
)
_PLACES = ("path", "test")


class Account:
    """The answers under one scenario.

    Args:
        home: The folder; it exists.
        of: What the account is of (`agreed`).
        name: The scenario's name, for the reader of the file.
    """

    def __init__(self, home: Path, of: str, name: str) -> None:
        self.home, self.of, self.name = home, of, name
        self.file = home / "answers.json"
        self.charge: str | None = None  # as last read or written

    @classmethod
    def open(cls, home: Path, scenario: AnyScenario) -> Account:
        """The account of a scenario in a folder, where there may be none yet.

        Raises:
            Refusal: if the folder is not there or not writable, or its account is damaged, or that of
                another scenario.
        """
        if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
            # A folder that vanished, on a disk that is not there, would else be an account at zero.
            what = "not a folder that may be written to" if home.exists() else "no such folder"
            raise Refusal(f"home {home}: {what}. Make it once, by hand.", "home")
        account = cls(home, agreed(scenario), scenario.name)
        account.read()
        return account

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the account, among all processes.

        Raises:
            Refusal: if another process holds it for too long.
        """
        with open_append(self.home / "lock") as file, ExitStack() as stack:
            try:
                stack.enter_context(locked(file.fileno(), LOCK_SECONDS))
            except TimeoutError:
                what = f"another process has held {self.home / 'lock'} for {LOCK_SECONDS:.0f} s"
                raise Refusal(f"home {self.home}: {what}. End it.", "home") from None
            yield

    def read(self) -> Answers:
        """The answers of each client; empty before the first one.

        Raises:
            Refusal: if the file is damaged, or of another scenario.
        """
        try:
            text: bytes | None = bounded_json.read_bytes(self.file)
        except FileNotFoundError:
            self.charge = None
            return {}
        except OSError as error:
            raise Refusal(f"{self.file}: cannot be read: {error.strerror}.", "home") from error
        except ValueError:  # too large for an account
            text = None
        try:
            content = bounded_json.loads(text or b"")
            digest = content.pop("digest")
            answers: Answers = {
                str(int(client)): [int(count) for count in counts]
                for client, counts in content["answers"].items()
            }
            whole = digest == _digest(content) and content["schema"] == SCHEMA
            of, name, charge = str(content["of"]), str(content["scenario"]), content.get("charge")
            whole = whole and (charge is None or isinstance(charge, str))
        except (ValueError, KeyError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise Refusal(
                f"{self.file}: damaged. Until you decide, this node answers nothing: restore the file from a "
                "copy; or choose another folder as home, and what was answered before comes on top of what "
                "will be.",
                "home",
            )
        if of != self.of and answers:
            raise Refusal(
                f"{self.file}: what was answered under another scenario ({name}). Pin that one again; or "
                "make another folder as home for this one, and what was answered under both adds up.",
                "home",
            )
        self.charge = charge
        return answers

    def write(self, answers: Answers, charge: str | None = None) -> None:
        """Replaces the account, which was read under the same lock; it is on disk when this returns.

        Args:
            answers: Of each client.
            charge: Names the entry that pays for them; None: as it was read.
        """
        self.charge = charge or self.charge
        content = {"schema": SCHEMA, "of": self.of, "scenario": self.name, "answers": answers}
        content["charge"] = self.charge
        data = json.dumps({**content, "digest": _digest(content)}).encode()
        replace_file(self.file, data, strict=True)


class StoredBudgets(Budgets):
    """Budgets that are read from an account and written to it before anybody answers.

    Args:
        account: Where they are kept: for each client its answers and the last round.
        population: The number of clients.
        cap: Answers allowed.
    """

    def __init__(self, account: Account, population: int, cap: int) -> None:
        super().__init__(np.zeros(population, np.int32), np.full(population, -1, np.int32), cap)
        self.account = account

    def allows(self, client: int, round: int) -> bool:
        """Whether a client may answer a round; nothing is charged."""
        with self.account.locked():
            count, last = self.account.read().get(str(client), [0, -1])
        return count < self.cap and last < round

    def spend(self, clients: Ids, round: int) -> Ids:
        """As `Budgets.spend`, with the account on disk before this returns."""
        # Read, charge and write under one lock, and before any answer is computed: two messages at once, or a
        # process that dies after answering, could otherwise answer more often than the cap.
        with self.account.locked():
            answers = self.account.read()
            for client, (count, last) in answers.items():
                self.counts[int(client)], self.last[int(client)] = count, last
            willing = super().spend(clients, round)
            if len(willing):
                answers |= {str(client): [int(self.counts[client]), round] for client in willing.tolist()}
                self.account.write(answers)
        return willing


def answered(account: Account, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Which clients have answered which query, uint8, shape (queries, population)."""
    marks = np.zeros(shape, np.uint8)
    for client, queries in account.read().items():
        marks[queries, int(client)] = 1
    return marks


def keep_answered(account: Account, marks: NDArray[np.uint8]) -> None:
    """Writes which clients have answered which query."""
    clients = np.flatnonzero(marks.any(axis=0)).tolist()
    account.write({str(client): np.flatnonzero(marks[:, client]).tolist() for client in clients})


def agreed(scenario: AnyScenario) -> str:
    """Fingerprints a scenario: the use of records, and their protection."""
    tables = scenario.tables()
    settings = {key: value for key, value in tables.items() if key not in _WITHOUT_EFFECT}
    if settings.get("privacy", {}).get("trust") == "distributed":
        # The expected dropouts set the least number of survivors, and so each client's share of the noise.
        settings["dropout"] = tables.get("federation", {}).get("dropout", 0.0)
    data: Mapping[str, Any] = settings["data"]
    settings["data"] = {key: value for key, value in data.items() if key not in _PLACES}
    return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16).hexdigest()


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
