"""The page of one statistics run: queries, answers, and guarantees for each observer."""

from __future__ import annotations

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsDocument
from fedprivacy.report import page_end, protection, stopped, words
from fedprivacy.report.blocks import Block, Details, Page, Section, Table, Text, Tiles
from fedprivacy.report.observer_wording import STATISTICS
from fedprivacy.report.statistics import answer, answer_charts, settings, withheld


def page(document: StatisticsDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The run, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the run.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        done, planned = len(document.queries), len(settings.queries_of(document))
        charge = stopped.PLANNED
        if document.unanswered:
            charge = f" {document.unanswered} was under way: it is charged, and has no answer.{charge}"
        status = page_end.status(document, done, planned or None, "queries", error=error, charge=charge)
        lead.append(status)
    pictures = answer_charts.of_run(document)
    lead += pictures[:1] or [Text("There is no picture: no query has a numeric answer.", "status")]
    lead += [Text(words.TRUTH_WITHHELD)] if document.lacks_truth else []
    lead.append(Tiles(_tiles(document)))
    more = pictures[1:]
    cells = withheld.truth(
        document, [protection.Protected(Arm(document.trust), None, document.privacy.guarantees)]
    )
    return Page(
        title=page_end.title(document),
        eyebrow="Federated statistics",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_run(document, cells),
        lead=lead,
        sections=[
            *([Section("answers", "The other answers", more)] if more else []),
            Section(
                "guarantees",
                "Who is protected from whom",
                [
                    Text(STATISTICS.caution([document.trust])),
                    *stopped.blocks(document.privacy, "query", document.unanswered),
                    *protection.blocks(cells, "", STATISTICS),
                ],
                folded=False,
            ),
            *_shuffled(document),
            *settings.queries(document),
            *settings.of_run(document),
            *page_end.closing(document, command=command),
        ],
    )


def _shuffled(document: StatisticsDocument) -> list[Section]:
    """The cost of the answers behind a shuffler; no section unless requested."""
    shuffled = document.privacy.shuffled
    if shuffled is None or not shuffled.holds:
        return []
    warning = Text("This run has no shuffler, and no guarantee above rests on one.", "status")
    rows = [(protection.spent(shuffled), shuffled.accountant or "—", shuffled.assumptions)]
    caption = f"Each epsilon: {words.terms([shuffled])}, against {shuffled.observer}."
    table = Table(caption, ("Epsilon", "Accountant", "Provided that"), rows, stacked=True)
    blocks: list[Block | Details] = [warning, table]
    return [Section("shuffled", "If answers were shuffled", blocks)]


def _tiles(document: StatisticsDocument) -> list[tuple[str, str, str]]:
    done, planned = len(document.queries), len(settings.queries_of(document))
    tiles = [
        ("Queries", f"{done:,}", f"of {planned:,} planned" if planned not in (0, done) else "answered"),
        ("Trust model", words.trust(document.trust), STATISTICS.noise.get(document.trust, "")),
    ]
    population = document.privacy.population
    if population is not None:
        tiles.insert(1, ("Clients", f"{population:,}", "asked once each by every query"))
    return tiles
