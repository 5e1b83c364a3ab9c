"""The page of a comparison of statistics: the cost of privacy in error, and the observers."""

from __future__ import annotations

import math

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import page_end, protection, words
from fedprivacy.report.blocks import Block, Details, Finding, Page, Section, Text
from fedprivacy.report.observer_wording import STATISTICS
from fedprivacy.report.statistics import answer, error_bounds, errors, first_repeat, settings, withheld


def page(document: StatisticsComparison, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The comparison, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the comparison.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        lead.append(page_end.status(document, len(document.cells), None, "cells", error=error))
    pictures = errors.of_comparison(document)
    lead += [Text(words.TRUTH_WITHHELD, "status")] if document.lacks_truth else []
    lead += [*pictures[:1], _finding(document)]
    cells = withheld.truth(document, _protected(document))
    more = [*pictures[1:], *([] if document.lacks_truth else errors.tables(document))]
    protected = protection.blocks(cells, "", STATISTICS)
    return Page(
        title=f"{page_end.title(document)}: error against privacy",
        eyebrow="Comparison of federated statistics",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_comparison(document, cells),
        lead=lead,
        sections=[
            Section("guarantees", "Who is protected from whom", protected, folded=False),
            *errors.falls(document),
            *first_repeat.of_comparison(document),
            *error_bounds.of_comparison(document),
            *(
                [Section("errors", "The errors of the other queries" if pictures else "The errors", more)]
                if more
                else []
            ),
            *settings.of_comparison(document),
            *page_end.closing(document, command=command),
        ],
    )


def _finding(document: StatisticsComparison) -> Finding:
    epsilon_terms = words.terms(document.guarantees())
    reaches = [
        f"{words.trust(trust)}: {words.reach(guarantees)}."
        for trust, guarantees in ((name, document.guarantees_under(name)) for name in document.trusts)
        if any(g.holds for g in guarantees)
    ]
    reason = "errors are operator-only" if document.lacks_truth else "the comparison is not complete"
    return Finding(
        text=document.finding or f"There is no finding: {reason}.",
        # A finding of statistics already gives the terms of its epsilon.
        terms=" ".join(([] if document.finding else [f"Each epsilon: {epsilon_terms}."]) + reaches)
        if epsilon_terms
        else "",
        heading="Equal epsilon is not equal observer",
        caution=STATISTICS.caution(document.trusts),
    )


def _protected(document: StatisticsComparison) -> list[protection.Protected]:
    """The weakest guarantee of each arm at each epsilon, over all numbers of clients."""
    cells: dict[tuple[Arm, float | None], dict[tuple[str, float], Guarantee]] = {}
    for arm in document.arms:
        for cell in document.of(arm):
            observers = cells.setdefault((arm, cell.epsilon), {})
            for g in cell.guarantees:
                spent = math.inf if g.epsilon is None else g.epsilon
                observers.setdefault((g.observer, spent), g)
    return [
        protection.Protected(
            arm, epsilon, [observers[key] for key in sorted(observers, key=lambda key: key[1])]
        )
        for (arm, epsilon), observers in cells.items()
    ]
