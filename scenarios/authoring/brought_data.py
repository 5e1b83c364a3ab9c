"""Scenarios for data that a user brings: an .npz file, a table, or arrays from Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedprivacy.data.npz import Facts, array, headers
from fedprivacy.data.tables import Prepared, Table, owners_hidden, owners_of
from fedprivacy.io.escape import on_one_line, printable

_WIDTH = 100
_NAME = 40  # letters of a client's name


def owners_named(train: Table, test: Table) -> tuple[str, ...]:
    """Returns the names of the owners who train, where owners are few; none where they are people.

    With few owners single records are protected, and who takes part is public.
    """
    if train.users is None or owners_hidden(owners_of(train, test)):
        return ()
    return tuple(map(str, np.unique(train.users).tolist()))


def notes_on(parts: Prepared, scenario: str, remedy: str) -> tuple[str, ...]:
    """Returns what the user of a table has to know of the scenario that is made from it.

    Args:
        parts: The table.
        scenario: What the scenario is called.
        remedy: How to give public bounds.
    """
    notes = list(parts.notes)
    if parts.read:
        notes.append(
            f"The bounds of {', '.join(parts.read)} were read off the records: a release that no epsilon "
            f"covers, to everyone who sees {scenario}. {remedy}"
        )
    if owners := owners_named(parts.train, parts.test):
        names = (
            "The name of the only client is"
            if len(owners) == 1
            else f"The names of the {len(owners)} clients are"
        )
        notes.append(f"{names} in {scenario} and in its reports.")
    return tuple(map(on_one_line, notes))


@lru_cache(maxsize=16)
def _owners(path: str, stamp: object) -> int:
    """Returns the number of all owners in a file of this stamp, those of test records included."""
    there = headers(path)
    named = [name for name in ("user_train", "user_test") if name in there]
    return len({str(user) for name in named for user in np.unique(array(path, name)).tolist()})


@dataclass(frozen=True)
class Brought:
    """A data set, as a scenario names it.

    Args:
        name: The scenario's name.
        path: The .npz file, relative to where the command runs.
        facts: Its headers.
        bounds: The lower and upper bound of each column, by which it is scaled; None: not scaled.
        owners: The names of the clients, where they are few: they are then public.
        read: The columns whose bounds were read off the records.
        description: What the data set is.
        command: The command that wrote the scenario; empty from Python.
    """

    name: str
    path: str
    facts: Facts
    bounds: tuple[Sequence[float], Sequence[float]] | None = None
    read: Sequence[str] = ()
    owners: Sequence[str] = ()
    description: str = ""
    command: str = ""

    @property
    def clients(self) -> int:
        """The number of clients: the users, or else the records."""
        return self.facts.users or self.facts.records

    @property
    def of_records(self) -> bool:
        """Whether a record is protected, and not a client: with few clients no client can be hidden."""
        return self.facts.users is not None and not owners_hidden(_owners(self.path, self.facts.stamp))

    @property
    def delta(self) -> float:
        """A power of ten below a tenth of 1/(what is protected), at most 1e-5."""
        protected = self.facts.records if self.of_records else self.clients
        return float(f"1e{min(-5, -math.ceil(math.log10(protected)) - 1)}")

    def text(self) -> str:
        """Returns the scenario as commented TOML."""
        return "\n".join([*self._head(), *self._data(), *self._training(), *self._privacy()]) + "\n"

    def _head(self) -> list[str]:
        rows = [f"# Written by `{on_one_line(self.command)}`.", ""] if self.command else []
        unit = "one record" if self.of_records else "all records of one client"
        rows += [f"name = {_text(self.name)}"]
        described = on_one_line(self.description)
        about = (
            f"{described} {self.facts.records:,} records of {self.clients:,} clients to train on, "
            f"{self.facts.test_records:,} to test on. Protected is {unit}."
        )
        if self.owners:
            about += f" The clients are {', '.join(on_one_line(name[:_NAME]) for name in self.owners)}."
        return [*rows, f"description = {_text(about.strip())}", "seed = 1", ""]

    def _data(self) -> list[str]:
        partition, about = "one-per-example", "each record is a client"
        if self.facts.users is not None:
            partition, about = "by-user", "all records of one user are one client's"
        rows = [
            "[data]",
            'name = "npz"',
            f"path = {_text(self.path)}",
            f'partition = "{partition}"   # {about}',
        ]
        if self.bounds is not None:
            if self.read:
                rows += _comment(
                    f"Read off the records, and so released to everyone who sees this file: the bounds of "
                    f"{', '.join(self.read)}. No epsilon covers them. Write limits that follow from what the "
                    "columns mean instead."
                )
            rows.append('scaling = "bounds"')
            for key, values in zip(("low", "high"), self.bounds, strict=True):
                rows.append(f"{key} = [{', '.join(f'{value:.12g}' for value in values)}]")
        return [*rows, ""]

    def _training(self) -> list[str]:
        rows = ["[model]", 'name = "logistic"', "", "[training]", "learning_rate = 1.0"]
        return [
            *rows,
            "",
            "[server]",
            "rounds = 40",
            'optimizer = "adam"',
            "learning_rate = 0.03",
            "",
            "[sampling]",
            *(['name = "all"'] if self.of_records else ['name = "poisson"', f"rate = {self._rate:g}"]),
            "",
        ]

    @property
    def _rate(self) -> float:
        return 0.5 if self.clients < 2_000 else 0.1

    def _privacy(self) -> list[str]:
        unit = "example" if self.of_records else "client"
        return [
            "[privacy]",
            'trust = "central"           # "local": each client adds the noise; "none": nobody does',
            f'unit = "{unit}"',
            'adjacency = "replace-one"',
            "clipping_norm = 1.0",
            "epsilon = 4.0",
            f"delta = {self.delta:g}",
        ]


def _text(value: str) -> str:
    """Returns a string of TOML in which each character that acts, or is not seen, is written out."""
    import json

    return "".join(
        character if printable(character) == character else f"\\U{ord(character):08X}"
        for character in json.dumps(value, ensure_ascii=False)
    )


def _comment(text: str) -> list[str]:
    import textwrap

    return [f"# {row}" for row in textwrap.wrap(on_one_line(text), _WIDTH)]
