"""Terminal output of an audit: claimed, proved and estimated epsilon, in words too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.kinds import read_as
from fedprivacy.io.console import Terminal
from fedprivacy.report import audit
from scenarios.cli.brief import terms_line


def show_audit(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the table of all observers, the verdict on each claim, and what was audited."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    result = read_as(AuditDocument, document)
    table = Table(title=result.name, title_justify="left")
    for number, name in enumerate(audit.HEAD):
        table.add_column(name, no_wrap=True, justify="right" if number else "left")
    for observer in result.observers:
        table.add_row(*audit.row(observer))
    console.print(table)
    for observer in result.observers:
        plain.print(f"- {observer.observer}: {observer.verdict.words}")
    if verbose:
        plain.print(result.audited.words)
        for observer in result.observers:
            plain.print(f"- {observer.guarantee.words}")
    else:
        plain.print(terms_line([observer.guarantee for observer in result.observers]))
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB")
    plain.print(f"report: {document['path']}/report.html")
