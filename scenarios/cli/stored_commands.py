"""The commands about stored results: list, show, diff, tag, rm, export.

Heavy imports happen inside the commands, so that help is instant; a command that takes long says what it
waits for, imports included.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedprivacy.documents.redaction import redact
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.waiting import waiting
from scenarios.cli.options import RUN_VALUE, RUNS, Verbose
from scenarios.cli.output import Json, Operator, check_operator, print_answer, print_result, show_result

CHECKING = "checking that its guarantees follow from its record"
Stored = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run directory, or its name in runs.", **RUN_VALUE)
]
Folder = Annotated[
    Path | None,
    typer.Argument(metavar="FOLDER", help="The folder of run directories.", show_default="runs"),
]


def list_runs(
    folder: Folder = None,
    filter_: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="CONDITION",
            help="As trust=local or accuracy>0.9. May be repeated: all must fit.",
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="[-]COLUMN", help="Order by this column; -COLUMN: falling.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Write FOLDER/index.html: a sortable table with links to reports.")
    ] = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """List stored results: name, time, trust model, epsilon against each observer, accuracy and status.

    Epsilons are quoted from the records; `fedprivacy show` derives them again.
    """
    from fedprivacy.errors import InputError
    from scenarios.cli.display_stored import show_list
    from scenarios.stored.listing import COLUMNS, OPERATOR_COLUMNS, chosen, rows_of

    if csv + json_ + page > 1:
        raise InputError("--csv, --json, --page: give one of them.")
    with waiting("reading the records"):
        rows = chosen(rows_of(folder or RUNS, operator=operator), filter_ or [], sort)
    listed = [row.to_json() for row in rows]
    if not operator and (csv or json_):
        listed = [redact(row, ["path"]) for row in listed]
    if page:
        from fedprivacy.report.index import write

        print(write(folder or RUNS, listed, operator=operator))
        return
    if csv:
        import csv as writer
        import sys

        from scenarios.stored.export import cell

        columns = (*COLUMNS, *OPERATOR_COLUMNS) if operator else [name for name in COLUMNS if name != "path"]
        table = writer.DictWriter(sys.stdout, columns, lineterminator="\n")
        table.writeheader()
        table.writerows({key: cell(value) for key, value in row.items()} for row in listed)
        return
    print_answer({"schema": 1, "kind": "list", "runs": listed}, json_, show_list)


def show(run: Stored, verbose: Verbose = False, json_: Json = False, operator: Operator = False) -> None:
    """Show a stored result, once its guarantees follow again from its scenario, plan and rounds."""
    check_operator(operator, json_, "--json")
    shown = partial(show_result, verbose=verbose)
    with waiting(CHECKING):
        from fedprivacy.verification.verify import checked_document

        document = checked_document(run)
    print_result({**document, "path": str(run)}, json_, shown, operator, written=False)


def diff(
    first: Stored,
    second: Annotated[Path, typer.Argument(metavar="RUN", help="Another.", **RUN_VALUE)],
    verbose: Verbose = False,
    json_: Json = False,
    operator: Operator = False,
) -> None:
    """Compare two stored results: settings that differ, results and guarantees side by side."""
    from scenarios.cli.display_stored import show_difference

    shown = partial(show_difference, verbose=verbose)
    with waiting(CHECKING):
        from scenarios.stored.differences import difference

        document = difference(first, second, operator=operator)
    print_answer(document, json_, shown)


def tag(
    run: Stored,
    tags: Annotated[list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags to add.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Take this tag away. May be repeated.")
    ] = None,
) -> None:
    """Add tags to a stored result, for `list --filter tags=TAG`; without TAG print those that it has."""
    from scenarios.stored.listing import tag as change

    print(" ".join(change(run, tags or [], remove or [])) or "no tags")


def rm(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run directories, or their names in runs.", **RUN_VALUE),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove stored results with all of their files; none where one holds files that no run makes."""
    from fedprivacy.errors import InputError
    from scenarios.stored.removal import check_removable, remove

    check_removable(runs)  # a wrong name removes nothing
    try:
        if not yes and not typer.confirm(f"Remove {', '.join(on_one_line(str(run)) for run in runs)}?"):
            return
    except typer.Abort:  # nobody is there to answer
        raise InputError("rm: nothing was removed, since nobody answered. Give --yes to remove.") from None
    names = {run.resolve(): run for run in reversed(runs)}
    for path in remove(*runs):
        print(f"Removed {on_one_line(str(names[path]))}.")


def export(
    run: Stored,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV files.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write Parquet files.")] = False,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder of the files.", show_default="here")
    ] = Path(),
    operator: Operator = False,
) -> None:
    """Write the tables of a stored result: rounds, cells, queries, attacks and ROC points.

    Files hold public values. With --operator they are named RUN-operator-TABLE and hold all.
    """
    from fedprivacy.errors import InputError

    if csv == parquet:
        raise InputError("--csv, --parquet: give one of them.")
    with waiting(CHECKING):
        from scenarios.stored.export import export as write_tables

        written = write_tables(run, out, "csv" if csv else "parquet", operator=operator)
    for path in written:
        print(f"Wrote {on_one_line(str(path))}.")
