"""The parts that every page has at its end, and the wording of settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from fedprivacy.documents.envelope import Document
from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Code, Details, Facts, Items, Section, Table, Text
from fedprivacy.scenario.summary import data_label

OPERATOR_ID = "operator-only"
MAX_ROWS = 400  # rows of a folded table; above, evenly spaced ones, and the page notes it


ALONE = (
    " The figures and guarantees below cover these alone; what was under way is to be counted as released, "
    "at all that was planned for it."
)


def title(document: Document) -> str:
    """The scenario's name, and the data that ran where the name does not have it."""
    data = document.scenario.get("data")
    label = data_label(data) if isinstance(data, Mapping) else ""
    named = not label or label.rpartition(".")[0] == document.name or label in document.name
    return document.name if named else f"{document.name} on {label}"


def status(
    document: Document, done: int, planned: int | None, what: str, *, error: bool, charge: str = ALONE
) -> Text:
    """The progress; the text of an error is operator-only, so the sentence refers to it.

    Args:
        document: Of any kind.
        done: The number of finished `what`.
        planned: How many there were to be, where it is known.
        what: The counted things, as a plural noun.
        error: Whether the operator-only section contains an error's text.
        charge: The charge of the guarantees for interrupted work.
    """
    text = words.progress(document.status, done, planned, what)
    if document.status == "finished":
        return Text(text, "status")
    text += charge
    return Text(text, "status stopped", OPERATOR_ID if error else "", "What the error said (operator only)")


def closing(document: Document, *, command: bool, runs: Sequence[Block | Details] = ()) -> list[Section]:
    """The closing sections: notes, performance, reproduction and versions, if present.

    Args:
        document: Of any kind.
        command: Whether the operator-only section contains the command that reproduces it.
        runs: Where the runs are stored, if they are others than the document's own.
    """
    sections = []
    if document.notes:
        sections.append(Section("notes", "Notes", [Items(document.notes)]))
    speed = performance(document)
    if speed:
        sections.append(Section("performance", "Performance", [Facts(speed)]))
    again: list[Block | Details] = []
    if command:
        again.append(Text(words.COMMAND_ELSEWHERE, link=OPERATOR_ID, link_text="For the operator only"))
    if document.public:
        again.append(Text(words.OPERATOR_ELSEWHERE))
    facts = [
        ("Started", document.started or ""),
        ("Stored in", document.path or ""),
        ("Versions", ", ".join(f"{name} {version}" for name, version in document.versions.items())),
    ]
    known = [(name, value) for name, value in facts if value]
    again += [Facts(known)] if known else []
    again.append(Text(words.CHECKED))
    again += runs
    if document.scenario:
        again.append(
            Details("The scenario without its seeds and folders (TOML)", [Code(toml(document.scenario))])
        )
    if again:
        sections.append(Section("reproduce", "How to reproduce it", again))
    return sections


def performance(document: Document) -> list[tuple[str, str]]:
    """Seconds, clients per second and memory, as far as they are known and may be shown."""
    measured = document.performance
    if measured is None:
        return []
    speed, memory = measured.clients_per_second, measured.peak_memory_mb
    workers = "" if measured.workers is None else f", {words.counted(measured.workers, 'worker')}"
    facts = [
        ("Wall-clock time", measured.seconds, words.seconds(measured.seconds)),
        ("Clients trained per second", speed, words.number(speed, 3)),
        ("Peak memory", memory, f"{words.number(memory, 3)} MB"),
        ("Clients are trained", measured.way, measured.way or ""),
        ("Engine", measured.engine, f"{measured.engine}{workers}"),
    ]
    return [(name, text) for name, value, text in facts if value is not None]


def toml(scenario: Mapping[str, Any]) -> str:
    """The scenario as the TOML that would give it again (TOML has no null: such keys are left out)."""

    def without_null(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): without_null(entry) for key, entry in value.items() if entry is not None}
        if isinstance(value, (list, tuple)):
            return [without_null(entry) for entry in value if entry is not None]
        return value

    return tomli_w.dumps(without_null(scenario))


def flat(section: Mapping[str, Any], leave_out: Sequence[str] = ()) -> str:
    """A section of a scenario on one line.

    >>> flat({"name": "digits", "clients": 100, "hidden": None})
    'name digits; clients 100'
    """
    parts = []
    for key, value in section.items():
        if key in leave_out:
            continue
        if isinstance(value, Mapping):
            parts.append(f"{key} ({flat(value)})")
        elif value is not None:
            shown = ", ".join(map(plain, value)) if isinstance(value, (list, tuple)) else plain(value)
            parts.append(f"{key.replace('_', ' ')} {shown}")
    return "; ".join(parts)


def plain(value: Any) -> str:
    """A value of a document as a person would write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return words.number(value)
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def sampled(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of numbers; a very long one shows evenly spaced rows and states it."""
    step = -(-len(rows) // MAX_ROWS) if rows else 1
    if step > 1:
        caption += f" Only every {step}th row and the last; the stored record has all {len(rows):,}."
    sampled_rows = [row for index, row in enumerate(rows) if index % step == 0 or index == len(rows) - 1]
    return Table(caption.strip(), head, sampled_rows, numeric=frozenset(range(1, len(head))))
