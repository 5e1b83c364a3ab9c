"""Queries with their settings, mechanisms and amounts of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.documents.envelope import Arm, Document
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Facts, Group, Section, Table, Value
from fedprivacy.report.statistics import figures

HEADING = "How each query was asked"
AN_ANSWER = "An epsilon an answer is what this query costs a client alone."


def queries_of(document: Document) -> Mapping[str, Any]:
    """The queries of the scenario by name."""
    queries = document.scenario.get("queries")
    return queries if isinstance(queries, Mapping) else {}


def queries(document: StatisticsDocument) -> list[Section]:
    """The queries of a run, with mechanism, noise and error bound."""
    if not document.queries:
        return []
    rows = [
        (
            *_query_row(document, query.name, query.kind),
            figures.mechanism(query, document.trust),
            figures.promise(query.bound),
        )
        for query in document.queries
    ]
    head = ("Query", "What is asked", "Settings", "Mechanism and noise", "What it promises")
    return [
        Section("queries", HEADING, [Table(_caption(document.privacy.guarantees), head, rows, stacked=True)])
    ]


def of_run(document: StatisticsDocument) -> list[Section]:
    """The data, how clients were spread over hosts, and where noise came from."""
    facts = [*_facts(document), *([("Randomness", document.drawn)] if document.drawn else [])]
    return [Section("settings", "Settings", [Facts(facts)])] if facts else []


def of_comparison(document: StatisticsComparison) -> list[Section]:
    """The queries, the mechanism of each arm at each epsilon, and the data."""
    shown = []
    rows: list[Sequence[Value] | Group] = []
    for query in document.questions:
        _, what, how = _query_row(document, query.name, query.kind)
        rows.append(Group(query.name, f"{what}; {how}"))
        rows += [(arm_labels.arm(arm), *_mechanisms(document, arm, query.name)) for arm in document.arms]
    if rows:
        head = ("Trust model", "What is done", "Mechanism and noise")
        table = Table(_caption(document.guarantees()), head, rows, stacked=True)
        shown.append(Section("queries", HEADING, [table]))
    repeats = sorted({cell.repeats for cell in document.cells if cell.repeats is not None})
    facts = [
        *_facts(document, ("clients",) if document.sizes else ()),
        ("Numbers of clients", ", ".join(f"{size:,}" for size in document.sizes)),
        ("Repeats of each cell", " or ".join(f"{number:,}" for number in repeats)),
    ]
    known = [(name, value) for name, value in facts if value]
    return [*shown, *([Section("settings", "Settings", [Facts(known)])] if known else [])]


def _query_row(document: Document, name: str, kind: str) -> tuple[str, str, str]:
    return (
        name,
        words.capital(figures.query_label(kind)),
        figures.settings(queries_of(document).get(name)) or "—",
    )


def _caption(guarantees: Sequence[Any]) -> str:
    epsilon_terms = words.terms(guarantees)
    return AN_ANSWER + (
        f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    )


def _facts(document: Document, leave_out: Sequence[str] = ()) -> list[tuple[str, str]]:
    sections = ((name, document.scenario.get(name)) for name in ("data", "federation"))
    return [
        (words.capital(name), figures.settings(part, leave_out))
        for name, part in sections
        if isinstance(part, Mapping) and part
    ]


def _mechanisms(document: StatisticsComparison, arm: Arm, name: str) -> tuple[str, str]:
    """The processing of a query's answers, with mechanism and noise, a line for each epsilon."""
    lines, does = [], None
    for cell in document.of(arm):
        query = cell.query(name)
        if query is None:
            continue
        does = does or figures.DOES.get((arm.trust, query.mechanism or ""))
        at = f"At epsilon {words.target(cell.epsilon)}: " if cell.epsilon else ""
        lines.append(at + figures.noise(query))
    return words.capital(does or "—"), "\n".join(dict.fromkeys(lines)) or "—"
