"""The page of one statistics run: queries, answers, and guarantees for each observer."""

from __future__ import annotations

from fedprivacy.documents.answers import Query
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsDocument
from fedprivacy.report import common, protection, stopped, words
from fedprivacy.report.blocks import Block, Details, Finding, Page, Section, Table, Text, Tiles
from fedprivacy.report.statistics import answers, figures, settings
from fedprivacy.report.wording import STATISTICS

NAMED_ANSWERS = 4  # answers that the sentence on top names


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
        status = common.status(
            document, done, planned or None, "queries", error=error, charge=stopped.PLANNED
        )
        lead.append(status)
    pictures = answers.of_run(document)
    lead += pictures[:1] or [Text("There is no picture: no query has a numeric answer.", "status")]
    lead += [_finding(document), Tiles(_tiles(document))]
    more = pictures[1:]
    cells = [protection.Protected(Arm(document.trust), None, document.privacy.guarantees)]
    return Page(
        title=document.name,
        eyebrow="Federated statistics",
        subtitle=str(document.scenario.get("description") or ""),
        lead=lead,
        sections=[
            *([Section("answers", "The other answers", more)] if more else []),
            Section(
                "guarantees",
                "Who is protected from whom",
                [
                    *stopped.blocks(document.privacy, "query"),
                    *protection.blocks(cells, "", STATISTICS),
                ],
            ),
            *_shuffled(document),
            *settings.queries(document),
            *settings.of_run(document),
            *common.closing(document, command=command),
        ],
    )


def _shuffled(document: StatisticsDocument) -> list[Section]:
    """The cost of the answers behind a shuffler; no section unless requested."""
    shuffled = document.privacy.shuffled
    if shuffled is None or not shuffled.holds:
        return []
    warning = Text("This run has no shuffler, and no guarantee above rests on one.", "status")
    rows = [(words.epsilon(shuffled.epsilon), shuffled.accountant or "—", shuffled.assumptions)]
    caption = f"Each epsilon: {words.terms([shuffled])}, against {shuffled.observer}."
    table = Table(caption, ("Epsilon", "Accountant", "Provided that"), rows, stacked=True)
    blocks: list[Block | Details] = [warning, table]
    return [Section("shuffled", "If answers were shuffled", blocks)]


def _finding(document: StatisticsDocument) -> Finding:
    """The first answers, and against whom at which epsilon, in one sentence."""
    sentences = [_sentence_of(query) for query in document.queries[:NAMED_ANSWERS]]
    more = len(document.queries) - NAMED_ANSWERS
    text = "; ".join(sentences) or "No query was answered"
    text += f"; and {words.counted(more, 'more answer')} below" if more > 0 else ""
    against: dict[str, list[str]] = {}
    for g in document.privacy.guarantees:
        spent = f"epsilon {words.epsilon(g.epsilon)}" if g.holds else "no guarantee"
        against.setdefault(spent, []).append(words.observer(g.observer))
    spent_on = [f"{spent} against {words.listed(who)}" for spent, who in against.items()]
    epsilon_terms = words.terms(document.privacy.guarantees)
    return Finding(
        text=". ".join([text, words.capital("; ".join(spent_on))] if spent_on else [text]) + ".",
        terms=f"Each epsilon: {epsilon_terms}, for all queries together." if epsilon_terms else "",
        heading="Against whom",
        caution=STATISTICS.caution([document.trust]),
    )


def _sentence_of(query: Query) -> str:
    """One answer in words."""
    if query.kind in answers.CHOICES:
        return f"{query.name}: {figures.chosen(query.kind, query.estimate)}"
    rows = query.rows
    if len(rows) == 1:
        ends = (
            f" ({answers.confident(query)} {figures.interval(query.kind, rows[0].interval)})"
            if rows[0].interval
            else ""
        )
        label = f" {rows[0].label}" if rows[0].label else ""
        return f"{query.name}{label}: {figures.estimate(query.kind, rows[0])}{ends}"
    known = [row for row in rows if row.estimate is not None]
    if not known:
        return f"{query.name}: {figures.UNKNOWN}"
    if query.kind == "quantile":
        each = (f"{row.label}: {figures.estimate(query.kind, row)}" for row in known[:NAMED_ANSWERS])
        return f"{query.name}: {', '.join(each)}" + (" and more" if len(known) > NAMED_ANSWERS else "")
    best = max(known, key=lambda row: row.estimate or 0.0)
    return f"{query.name}: highest in {best.label}, {figures.estimate(query.kind, best)}"


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
