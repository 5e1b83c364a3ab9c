"""The costs of a run that stopped early: the planned charge, and the completed rounds'."""

from __future__ import annotations

from fedprivacy.documents.guarantee import Privacy
from fedprivacy.documents.statistics import StatisticsPrivacy
from fedprivacy.report import protection, words
from fedprivacy.report.blocks import Block, Details, Table, Value

PLANNED = (
    " The guarantees below charge the whole plan: whoever, or whatever, ended the run may have depended on "
    "the data."
)


def blocks(
    privacy: Privacy | StatisticsPrivacy, noun: str = "round", unanswered: str | None = None
) -> list[Block | Details]:
    """A table of both figures; nothing where a run states only one.

    Args:
        privacy: The guarantees of the run.
        noun: The counted thing.
        unanswered: The query that is charged among them, and has no answer.
    """
    released = privacy.completed
    if released is None or not any(g.holds for g in released.guarantees):
        return []
    planned = {g.observer: g for g in privacy.guarantees}
    rows: list[tuple[Value, ...]] = []
    for g in released.guarantees:
        claim = planned.get(g.observer)
        if claim is None or not (claim.holds and g.holds):
            continue
        who = words.capital(words.observer(g.observer))
        rows.append((who, protection.spent(claim), protection.spent(g), g.assumptions[:1]))
    count = words.counted(released.rounds, noun)
    before = f"charged before it stopped ({unanswered} has no answer)" if unanswered else ""
    caption = (
        f"What the run is charged, and what the {count} {before or 'released before it stopped'} cost alone. "
        "The second figure holds only under the condition beside it and the assumptions of the claim. "
        f"Each epsilon: {words.terms(released.guarantees)}."
    )
    alone = f"{count} charged by then" if unanswered else f"{count} alone"
    head = ("Against", "Whole plan: the claim", alone, "The second only provided that")
    return [Table(caption, head, rows, stacked=True)]
