"""Prints the result of every command: in words for people, or the document alone for programs.

Result documents go through the filter of operator-only values (`print_result`) unless `--operator` is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print the result document alone on standard output.")]
Operator = Annotated[
    bool,
    typer.Option(
        "--operator",
        help="Include operator-only values (seed, command, times, counts); do not pass them on.",
    ),
]


def check_operator(operator: bool, used: bool, options: str) -> None:
    """Refuses `--operator` where it would change nothing.

    Args:
        operator: Whether it was given.
        used: Whether an option was given that it changes.
        options: These options, for the message.

    Raises:
        InputError: if it was given without one.
    """
    if operator and not used:
        raise InputError(
            f"--operator: changes what {options} passes on. Give it with that, or put both pages of a stored "
            "result into one: fedprivacy report RUN --operator"
        )


def show_result(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints a result document for people.

    Args:
        document: As the command returned it, or as it is stored.
        verbose: Whether every assumption is printed.
    """
    from scenarios.cli.display_registry import (
        DISPLAYS,  # which imports torch: not before a scenario is checked
    )

    DISPLAYS[document["kind"]](document, verbose)


def print_result(
    document: dict[str, Any],
    as_json: bool,
    show: Callable[[dict[str, Any]], None],
    operator: bool,
    *,
    written: bool = True,
) -> None:
    """Prints a result document as JSON, public unless `operator`; or all of it to the operator by `show`.

    Args:
        document: The whole document.
        as_json: Whether it is printed as JSON.
        show: Prints it otherwise.
        operator: Whether operator-only values stay in.
        written: Whether the command has written it. Then a public copy has the run directory, as the caller
            named the folder, since a program needs it to find the files.
    """
    if as_json and not operator:
        located = {"path": document["path"]} if written and "path" in document else {}
        document = {**public(document), **located}
    print_answer(document, as_json, show)


def print_answer(document: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    """Prints a document that is no record of a run, or is made of public values, as JSON or by `show`."""
    if as_json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        show(document)
