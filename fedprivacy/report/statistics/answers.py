"""The answers of a run as tables."""

from __future__ import annotations

from fedprivacy.report.blocks import Block, Details, Table
from fedprivacy.report.statistics import figures
from fedprivacy.report.statistics.documents import StatisticsDocument


def of_run(document: StatisticsDocument) -> list[Block | Details]:
    """A table for each query."""
    return [
        Table(
            query.name,
            ("", "Estimate", "Interval", "True"),
            [
                (
                    row.label,
                    figures.estimate(query.kind, row),
                    figures.interval(query.kind, row.interval),
                    figures.value(query.kind, row.true),
                )
                for row in query.rows
            ],
        )
        for query in document.queries
    ]
