"""Groups of clients with budgets that differ: their settings, and an epsilon for each observer."""

from __future__ import annotations

from fedprivacy.documents.guarantee import BudgetGroup
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.report import protection, words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text, Value

ALL = (
    "The guarantees above hold for each client, whatever its group: they are those of the group that is "
    "protected least. Here is what each group has. A client of a stricter group is heard less: its update "
    "has a smaller weight, joins fewer rounds, or has more noise."
)


def of_run(document: RunDocument) -> list[Section]:
    """The groups of a run; no section where all clients have one budget."""
    groups = document.privacy.groups
    if not groups:
        return []
    observers = [name for name in OBSERVERS if any(g.observer == name for g in groups[0].guarantees)]
    rows: list[tuple[Value, ...]] = []
    for group in groups:
        against = {g.observer: g for g in group.guarantees}
        rows.append(
            (
                group.name,
                f"{group.clients:,}",
                _differs(group),
                *(protection.spent(against.get(name)) for name in observers),
            )
        )
    terms = words.terms([g for group in groups for g in group.guarantees])
    caption = f"{protection.ROUNDED} Each epsilon: {terms}, against the observer of its column."
    head = ("Group", "Clients", "Differs by", *(f"From {words.observer(name)}" for name in observers))
    sentences = [
        (group.name, words.capital(words.observer(g.observer)), g.words or "")
        for group in groups
        for g in group.guarantees
    ]
    blocks: list[Block | Details] = [
        Text(ALL),
        Table(caption, head, rows, stacked=True),
        Details(
            "Every guarantee of a group as a sentence, to quote",
            [Table(caption, ("Group", "Observer", "In words"), sentences)],
        ),
    ]
    return [Section("budget-groups", "Budgets that differ", blocks)]


def _differs(group: BudgetGroup) -> str:
    parts = {
        "noise multiplier": group.noise_multiplier,
        "joins a round with probability": group.rate,
        "weight of its clipped updates": group.weight,
    }
    stated = [f"{name} {words.number(value)}" for name, value in parts.items() if value is not None]
    return words.capital(", ".join(stated)) or "—"
