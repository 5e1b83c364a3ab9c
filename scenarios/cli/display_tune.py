"""What a person sees in the terminal of a choice of settings: what was chosen, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.io.console import Terminal
from fedprivacy.report import tune
from fedprivacy.report.reading import read_tune


def show_tune(document: Mapping[str, Any]) -> None:
    """The choice, its cost beside the naive one for each observer, and every guarantee in words."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    result = read_tune(document)
    plain.print(f"{result.name}: {result.said}")
    table = Table(title=tune.caption(result), title_justify="left")
    for number, name in enumerate(tune.HEAD):
        table.add_column(name, justify="right" if number else "left")
    for row in tune.rows(result):
        table.add_row(*row)
    console.print(table)
    for one in result.privacy.guarantees:
        plain.print(f"- {one.words}")
    for one in result.naive.guarantees:
        plain.print(f"- naive: {one.words}")
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")
