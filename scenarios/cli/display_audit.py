"""Terminal output of an audit: claimed, proved and estimated epsilon, in words too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.documents.audit import AuditDocument, Observer
from fedprivacy.documents.kinds import read_whole
from fedprivacy.io.console import Terminal
from fedprivacy.report import audit, audit_power, audit_terms, words
from scenarios.cli.brief import cost_of, show_brief


def show_audit(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the verdict in at most six lines; `verbose`: all bounds, and what was audited."""
    result = read_whole(AuditDocument, document)
    if not verbose:
        guarantees = [observer.guarantee for observer in result.observers]
        proved = {observer.observer: _proved(observer) for observer in result.observers}
        show_brief(
            document, _verdict(result), guarantees, proved, audit_terms.measured(result), _confidence(result)
        )
        return
    console, plain = Terminal(), Terminal(soft_wrap=True)
    table = Table(title=result.name, title_justify="left")
    for number, name in enumerate(audit.HEAD):
        table.add_column(name, no_wrap=True, justify="right" if number else "left")
    for observer in result.observers:
        table.add_row(*audit.row(observer))
    console.print(table)
    if terms := audit_terms.terms(result):
        plain.print(f"Each epsilon: {terms}.")
    for observer in result.observers:
        plain.print(f"- {observer.observer}: {observer.verdict.words}")
    plain.print(result.audited.words)
    for observer in result.observers:
        plain.print(f"- {observer.guarantee.words}")
    plain.print(cost_of(document))
    plain.print(f"report: {document['path']}/report.html")


def _verdict(result: AuditDocument) -> str:
    """Returns the refuted claims, or that no claim is refuted, or that more canaries would be needed."""
    refuted = [observer.observer for observer in result.observers if observer.verdict.holds is False]
    if refuted:
        return f"{audit_terms.refuted(result)} against the {' and the '.join(refuted)}"
    claimed = [observer for observer in result.observers if observer.guarantee.holds] or result.observers
    if claimed and all(map(audit_power.too_few, claimed)):
        needed = [f"{text[:1].lower()}{text[1:].removesuffix('.')}" for text in audit_power.sentences(result)]
        return "; ".join(["too few canaries to tell", *needed[:1]])
    return "no claim is refuted"


def _confidence(result: AuditDocument) -> str:
    """Returns how sure the lower bounds are, as a sentence; empty where there is no bound."""
    sure = audit_terms.confidence(result)
    return f"{words.capital(sure)}." if sure else ""


def _proved(observer: Observer) -> str:
    """Returns the bound that canaries prove against an observer, or their estimate, or why neither."""
    _, _, bound, _, _, estimate = audit.row(observer)
    shown = f"canaries prove at least epsilon = {bound}"
    if audit_power.too_few(observer):
        shown = "too few canaries to tell"
    elif bound == "0":
        shown = "canaries prove nothing"
    elif bound == "-":
        shown = "canaries prove no bound" if estimate == "-" else f"canaries estimate epsilon = {estimate}"
    return f"REFUTED: {shown}" if observer.verdict.holds is False else shown
