"""`fedprivacy reproduce`: published claims beside our figures.

Heavy imports happen inside the command.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scenarios.cli.options import RUNS, Out
from scenarios.cli.output import Json, print_answer


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these rows, however long they take.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every row, those that train models for minutes too.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With one NAME: the data of its scenario, if they are elsewhere."),
    ] = None,
    out: Out = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print each claim, its source and the epsilon of its setting.")
    ] = False,
    json_: Json = False,
) -> None:
    """Reproduce published claims: each beside our figure, and the epsilon of its setting by our ledger.

    Without a NAME all rows run that take at most a minute. A row whose data are missing is skipped.
    The exit code is 1 if a figure of ours differs from the documented one.
    """
    from fedprivacy.errors import InputError
    from fedprivacy.io.waiting import waiting
    from fedprivacy.records.run_directory import check_out
    from scenarios.cli.display_reproductions import show_reproductions
    from scenarios.reproductions import registry
    from scenarios.reproductions.row import Place

    rows = registry.chosen(names or [], everything)
    if data is not None and (not names or len(rows) > 1 or rows[0].data is None):
        raise InputError("--data: is the file of one row with a run. Give the NAME of such a row.")
    if any(row.data is not None for row in rows):
        check_out(out or RUNS)
    with waiting(f"reproducing {len(rows)} rows, {sum(row.seconds for row in rows):.0f} s on 2 cores"):
        document = registry.reproduce(rows, Place(out or RUNS, data))
    # A row that was named is wanted whole.
    print_answer(document, json_, partial(show_reproductions, verbose=verbose or bool(names)))
    if any(row["status"] in ("differs", "failed") for row in document["rows"]):
        raise typer.Exit(1)
