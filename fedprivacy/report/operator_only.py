"""The section for the operator: fields that depend on the data, or give the noise away."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedprivacy.documents.redaction import marked, select
from fedprivacy.documents.secret_values import secret_paths
from fedprivacy.messages.faults import KINDS
from fedprivacy.report import page_end, words
from fedprivacy.report.attacks import arms, exposed, rebuilt
from fedprivacy.report.blocks import Block, Code, Details, Facts, Items, Section, Table, Text

FIELDS = {
    "cohort": "Clients in the cohort",
    "zeroed": "Updates that were not finite, set to zero",
    "failures": "Clients that failed",
    "first_failure": "What the first failing client said",
    "void_reason": "Why its sum was not opened",
    "faults": "What went wrong, by kind",
    "contributed": "Clients in the sum with an update of their own",
    "refusals": "Clients that refused",
    "answered": "Clients that answered",
    "error": "Error",
    "dealing": "Which node served which logical hosts",
    "seed": "Seed",
    "scenario.seed": "Seed of the scenario",
    "scenario.compare.seeds": "Seeds compared",
    "seconds": "Seconds",
    "clients_per_second": "Clients trained per second",
    "peak_memory_mb": "Peak memory, MB",
    "path": "Run directory",
    "noise_key": "Key of the noise",
    "scenario_digest": "Digest of the scenario",
    "performance.seconds": "Wall-clock time, seconds",
    "performance.clients_per_second": "Clients trained per second",
    "performance.peak_memory_mb": "Peak memory, MB",
}
PARTS = "Only what report.html leaves out is here. For both on one page: fedprivacy report RUN --operator."


def operator_section(document: Mapping[str, Any]) -> Section | None:
    """The operator-only section: a summary, and a folded table in full.

    Args:
        document: The whole document, with its operator-only fields.

    Returns:
        None where the document has no such field.
    """
    singles: list[tuple[str, str]] = []
    elsewhere: list[str] = []
    series: dict[str, list[tuple[str, list[Any]]]] = {}
    for path in dict.fromkeys([*marked(document), *secret_paths(document)]):
        record, _, inner = path.rpartition(": ")
        field = inner.rpartition(".")[2].removesuffix("[]")
        if record:  # "runs: rounds[].cohort" is a field of other records
            elsewhere.append(f"{label(field)} ({inner} of the {record})")
            continue
        values = select(document, path)
        if not values or path == "command":
            continue
        if path in (exposed.FIELD, rebuilt.FIELD) or path.startswith(f"{arms.FIELD}[]."):
            continue  # which has tables of its own
        if path == "estimate":
            text = values[0].get("words") if isinstance(values[0], Mapping) else values[0]
            singles.append(("The mean updates", page_end.plain(text)))
        elif path == "dealing":
            singles += [(FIELDS[path], _dealt(values[0]))] if isinstance(values[0], Mapping) else []
        elif "[]." in path:
            series.setdefault(path.rpartition(".")[0], []).append((field, values))
        else:
            singles.append((FIELDS.get(path, f"{label(field)} ({path})"), page_end.plain(values[0])))
    command = str(document.get("command") or "")
    details = [
        *arms.training(document),
        *exposed.blocks(document),
        *rebuilt.operator_blocks(document),
    ]
    if not singles and not series and not elsewhere and not command and not details:
        return None
    blocks: list[Block | Details] = [Text(words.OPERATOR_CAUTION, "caution")]
    blocks += [Text(words.COMMAND_CAUTION), Code(command)] if command else []
    blocks += [Facts(singles)] if singles else []
    blocks += _faults(document)
    blocks += _void(document)
    blocks += details
    for parent, columns in series.items():
        blocks += _series(parent, columns, document)
    if elsewhere:
        blocks.append(
            Details("Fields of this kind in the stored records, not shown here", [Items(elsewhere)])
        )
    return Section(page_end.OPERATOR_ID, "For the operator only", blocks, operator=True)


def _faults(document: Mapping[str, Any]) -> list[Block | Details]:
    """The faults of all rounds, by kind with an explanation."""
    total = Counter[str]()
    for faults in select(document, "rounds[].faults"):
        counts = faults.items() if isinstance(faults, Mapping) else ()
        total.update({kind: count for kind, count in counts if isinstance(count, int)})
    rows = [(kind.replace("_", " "), f"{count:,}", KINDS.get(kind, "")) for kind, count in total.items()]
    caption = "What went wrong in all rounds. In clients, but for what was done again."
    return [Table(caption, ("Kind", "Count", "Meaning"), rows, numeric=frozenset({1}))] if rows else []


def _void(document: Mapping[str, Any]) -> list[Block | Details]:
    """The reasons why sums were not opened, each with its number of rounds."""
    reasons = Counter(page_end.plain(reason) for reason in select(document, "rounds[].void_reason") if reason)
    rows = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
    caption = "Why the sums of void rounds were not opened."
    return [Table(caption, ("Reason", "Rounds"), rows, numeric=frozenset({1}))] if rows else []


def _dealt(dealing: Mapping[str, Any]) -> str:
    """`node 1: hosts 0, 2; contested host 1: nodes 1, 2`: hosts by node, and hosts without one."""
    parts = [f"node {node}: hosts {page_end.plain(hosts)}" for node, hosts in _named(dealing, "nodes")]
    parts += [f"contested host {host}: nodes {page_end.plain(n)}" for host, n in _named(dealing, "contested")]
    parts += [f"node {node} left out: hosts {page_end.plain(h)}" for node, h in _named(dealing, "left_out")]
    parts += [f"no node: hosts {page_end.plain(dealing['missing'])}"] if dealing.get("missing") else []
    parts += [
        f"node {node} answered: {page_end.plain(message)}" for node, message in _named(dealing, "errors")
    ]
    return "; ".join(parts)


def _named(dealing: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    value = dealing.get(key)
    return value.items() if isinstance(value, Mapping) else ()


def label(field: str) -> str:
    """A field's name in words."""
    return FIELDS.get(field, words.capital(field.replace("_", " ")))


def _series(
    parent: str, columns: Sequence[tuple[str, list[Any]]], document: Mapping[str, Any]
) -> list[Block | Details]:
    """A summary of the numeric fields below one list, and all of them element by element."""
    element = {"rounds[]": "round", "cells[]": "cell", "queries[]": "query"}.get(parent, "element")
    summary = [
        (label(field), *(page_end.plain(figure(values)) for figure in (min, statistics.median, max, sum)))
        for field, values in columns
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    ]
    blocks: list[Block | Details] = []
    if summary:
        caption = f"Per {element}: the smallest, the middle and the largest value, and the sum of all."
        head = ("", "Smallest", "Median", "Largest", "Sum")
        blocks.append(Table(caption, head, summary, numeric=frozenset({1, 2, 3, 4})))
    paths = [f"{parent}.{field}" for field, _ in columns]
    rows = [
        (name, *(", ".join(map(_plain, select(holder, path))) or "—" for path in paths))
        for name, holder in _elements(parent, document)
    ]
    table = page_end.sampled(
        f"Each {element} by itself.", (element.capitalize(), *(label(field) for field, _ in columns)), rows
    )
    blocks.append(Details(f"Every {element}", [table]))
    return blocks


def _plain(value: Any) -> str:
    return page_end.flat(value) or "none" if isinstance(value, Mapping) else page_end.plain(value)


def _elements(parent: str, document: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Each element of the outermost list of a path, as a document with it alone."""
    name = parent.partition("[]")[0]
    *parents, field = name.split(".")
    lists = select(document, name)
    for index, value in enumerate(lists[0] if lists else [], start=1):
        alone: dict[str, Any] = {field: [value]}
        for key in reversed(parents):
            alone = {key: alone}
        yield page_end.plain(index), alone
