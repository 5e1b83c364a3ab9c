"""Prints the result of every command: in words for people, or the document alone for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result document alone on standard output.")]


def print_result(document: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    """Prints the document as JSON, or by `show`."""
    if as_json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        show(document)
