"""The mechanisms that were considered for a privacy budget, with the error that each would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.guarantee import Candidate
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Entry, Group, Section, Table, Value

ERROR = (
    "Error: the mean squared error per coordinate of one client's message, for an update whose norm is the "
    "clipping norm, in units of the squared clipping norm. Predicted: by formula. Measured: over drawn "
    "messages of random directions, without any data. Smaller is better."
)


def of_run(document: RunDocument) -> list[Section]:
    """The candidates of one run; no section where it names none."""
    candidates = document.privacy.candidates
    return _section([_table([(None, candidates)], "")]) if candidates else []


def of_comparison(document: CompareDocument) -> list[Section]:
    """The candidates of each arm at its largest epsilon, and of every cell below."""
    named = [
        (Group(arm_labels.cell(arm, cell.epsilon), words.reach(cell.guarantees)), cell.candidates, cell)
        for arm in document.arms
        for cell in document.of(arm)
        if cell.candidates
    ]
    if not named:
        return []
    epsilon_terms = words.terms(document.guarantees())
    widest = [(group, candidates) for group, candidates, cell in named if cell in document.widest()]
    every = [(group, candidates) for group, candidates, _ in named]
    blocks: list[Block | Details] = [_table(widest or every, epsilon_terms)]
    if widest and len(every) > len(widest):
        blocks.append(Details("The candidates at every epsilon", [_table(every, epsilon_terms)]))
    return _section(blocks)


def _table(groups: Sequence[tuple[Group | None, Sequence[Candidate]]], epsilon_terms: str) -> Table:
    """Candidates with their errors, the least predicted error first, below the heading of their cell.

    The column of measured errors is there only where something was measured.
    """
    measured = any(
        candidate.measured_error is not None for _, candidates in groups for candidate in candidates
    )
    rows: list[Sequence[Value] | Group] = []
    for group, candidates in groups:
        rows += [group] if group else []
        rows += [_row(candidate, measured) for candidate in sorted(candidates, key=_error)]
    head = ["Mechanism", "Noise", "Predicted error", *(["Measured error"] if measured else []), "Choice"]
    caption = f"{ERROR} {arm_labels.NOISE}" + (f" Each epsilon: {epsilon_terms}." if epsilon_terms else "")
    return Table(caption, head, rows, numeric=frozenset({2, 3} if measured else {2}), stacked=True)


def _section(blocks: list[Block | Details]) -> list[Section]:
    return [Section("candidates", "Mechanisms that were considered", blocks)]


def _error(candidate: Candidate) -> float:
    known = candidate.predicted_error is not None and math.isfinite(candidate.predicted_error)
    return candidate.predicted_error or 0.0 if known else math.inf


def _row(candidate: Candidate, measured: bool) -> Sequence[Value]:
    errors = [candidate.predicted_error, *([candidate.measured_error] if measured else [])]
    if candidate.chosen:
        choice = Entry("Chosen", candidate.reason or "", "good")
    elif candidate.reason:
        choice = Entry("Not possible", candidate.reason)
    else:
        choice = Entry("Not chosen")
    shown = (words.number(error, 3) for error in errors)
    return (arm_labels.mechanism(candidate.mechanism), candidate.noise or "—", *shown, choice)
