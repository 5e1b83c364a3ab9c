"""All rows, and the command's result: those that were chosen, reproduced one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.errors import InputError
from fedprivacy.io.toml_text import suggestion
from scenarios.reproductions import attacked, settings, theory, trained
from scenarios.reproductions.row import Place, Row

FAST = 60  # seconds: rows that take longer are reproduced by their names or with all
ROWS: tuple[Row, ...] = (*theory.ROWS, *settings.ROWS, *trained.ROWS, *attacked.ROWS)
BY_NAME = {row.name: row for row in ROWS}


def chosen(names: Sequence[str], everything: bool) -> list[Row]:
    """Returns the rows to reproduce: those named, all, or the fast ones.

    Raises:
        InputError: A name is unknown, or names were given together with all.
    """
    if names and everything:
        raise InputError("--all: reproduces every row. Leave out the names, or --all.")
    if unknown := [name for name in names if name not in BY_NAME]:
        raise InputError(
            "\n".join(f"{name}: no such row. {suggestion(name, list(BY_NAME))}" for name in unknown)
        )
    if names:
        return [BY_NAME[name] for name in dict.fromkeys(names)]
    return [row for row in ROWS if everything or row.seconds <= FAST]


def reproduce(
    rows: Sequence[Row], place: Place, on_row: Callable[[str], None] = lambda name: None
) -> dict[str, Any]:
    """Returns the rows as a result document.

    Args:
        rows: As `chosen` returned them.
        place: Where data are and runs go.
        on_row: Is called with the name of each row before it starts.
    """
    done = []
    for row in rows:
        on_row(row.name)
        done.append(row.reproduce(place))
    others = [row.name for row in ROWS if row not in rows]
    return {"schema": SCHEMA, "kind": "reproductions", "rows": done, "not_run": others}
