"""The commands about files and the machine: scenarios, new, report, doctor.

Heavy imports happen inside the commands, so that help is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedprivacy.io.escape import on_one_line
from scenarios.cli.options import RUN_VALUE, RUNS, Out, complete
from scenarios.cli.output import Json, Operator, print_answer


def scenarios(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="All about this one.", autocompletion=complete)
    ] = None,
    json_: Json = False,
) -> None:
    """List the ready scenarios, a line each; with NAME, all about one: purpose, time, data, file."""
    from scenarios.authoring.catalogue import describe, ready, ready_file
    from scenarios.cli.display_scenarios import show_scenario, show_scenarios

    if name is not None:
        print_answer(describe(name, ready_file(name)), json_, show_scenario)
        return
    listed = [describe(each, file) for each, file in ready().items()]
    print_answer({"schema": 1, "kind": "scenarios", "scenarios": listed}, json_, show_scenarios)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of your scenario.")],
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SCENARIO",
            help="The scenario to start from: a ready one, or a file.",
            autocompletion=complete,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write.", show_default="NAME.toml")
    ] = None,
) -> None:
    """Write a scenario file of your own, with every key explained.

    It copies another scenario, with its comments, under a new NAME. Keys that the scenario leaves out
    are written as comments with their defaults.
    """
    from scenarios.authoring.catalogue import find
    from scenarios.authoring.new import new as write_new

    file = out or Path(f"{name}.toml")
    command = write_new(name, find(from_), from_, file)
    print(f"Wrote {file}. Start it with: {command}")


def import_table(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV, TSV or Parquet file.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The column of the labels.")],
    client: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that names each record's owner; default: one each."),
    ] = None,
    test: Annotated[
        str, typer.Option(metavar="SHARE|FILE", help="The share to hold out, or a table of test records.")
    ] = "0.2",
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out. May be repeated.")
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=LOW:HIGH", help="Public limits of a column. May be repeated."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The scenario's name; default: the table's.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where NAME.npz and NAME.toml go.", show_default="here")
    ] = Path(),
) -> None:
    """Make a data set and a scenario from a table of your own.

    Text columns become a column for each category, text labels become classes, and missing numbers become 0
    with a column that marks them. Everything that is read off the records and then public is reported.
    """
    from scenarios.authoring.import_table import import_table as import_

    imported = import_(
        table,
        label=label,
        client=client,
        test=test,
        drop=drop or [],
        bounds=bounds or [],
        name=name,
        out=out,
    )
    for note in imported.notes:
        print(f"- {on_one_line(note)}")
    print(f"Wrote {imported.data} and {imported.scenario}. Run it with: {imported.command}")


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Directories of runs or comparisons, or their names in runs.", **RUN_VALUE
        ),
    ],
    figures: Annotated[
        str | None,
        typer.Option(metavar="svg|png|pdf", help="Also write the charts, with captions, to RUN/figures."),
    ] = None,
    operator: Operator = False,
) -> None:
    """Render the report of stored runs again.

    report.html is public, and operator.html has what only the operator may see. With --operator, it has both
    parts on one page, and charts go to RUN/figures-operator.

    RUN is the directory of a run or a comparison. Its guarantees are first derived again from the scenario,
    the plan and the rounds in its record; a record whose parts disagree is refused. Records are not signed.
    """
    from fedprivacy.report import OPERATOR, write
    from fedprivacy.verification.verify import checked_document

    for path in runs:
        document = checked_document(path)
        page = write(document, path, merged=operator)
        print(path / OPERATOR if operator else page)
        if figures is not None:
            from fedprivacy.report.figures import write_figures

            folder = path / ("figures-operator" if operator else "figures")
            for chart in write_figures(document, folder, figures, operator=operator):
                print(chart)


def doctor(
    ports: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT[,PORT...]", help="Ports of a deployment; default: those of Flower and 18000."
        ),
    ] = None,
    out: Out = None,
    ray: Annotated[bool, typer.Option("--ray", help="Also start Ray, which takes seconds.")] = False,
    json_: Json = False,
) -> None:
    """Check whether this machine can run fedprivacy, and name the fix for each problem.

    It checks Python, packages, processors, memory, folders, ports, and that no other packages have our names.
    Exit code 1 if a check fails.
    """
    from scenarios.doctor import Examination, examine
    from scenarios.doctor.examination import show
    from scenarios.doctor.machine import PORTS, ports_of

    document = examine(Examination(out or RUNS, ports_of(ports) if ports else PORTS, ray))
    print_answer(document, json_, show)
    if not document["able"]:
        raise typer.Exit(1)
