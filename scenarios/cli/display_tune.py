"""Terminal output of a choice of settings: the chosen settings, and their cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.documents.kinds import read_as
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.io.console import Terminal
from fedprivacy.report import tune
from scenarios.cli.brief import ASSUMPTIONS


def show_tune(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the choice, its cost beside the naive one for each observer, and every guarantee."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    result = read_as(TuneDocument, document)
    plain.print(f"{result.name}: {tune.summary(result)}")
    table = Table(title=tune.caption(result), title_justify="left")
    for number, name in enumerate(tune.HEAD):
        table.add_column(name, justify="right" if number else "left")
    for row in tune.rows(result):
        table.add_row(*row)
    console.print(table)
    if not verbose:
        plain.print(ASSUMPTIONS)
    for guarantee in result.privacy.guarantees if verbose else ():
        plain.print(f"- {guarantee.words}")
    for guarantee in result.naive.guarantees if verbose else ():
        plain.print(f"- naive: {guarantee.words}")
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")
