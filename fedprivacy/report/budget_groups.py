"""Groups of clients with budgets that differ: settings, accuracy, and an epsilon for each observer."""

from __future__ import annotations

from fedprivacy.documents.guarantee import BudgetGroup
from fedprivacy.documents.quality import GroupAccuracy
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.report import protection, words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text, Value
from fedprivacy.report.groups import figure
from fedprivacy.sampling.group_limits import COLUMN
from fedprivacy.scenario.data import DEALT_BY_LABEL

ALL = (
    "The guarantees above hold for each client, whatever its group: they are those of the group that is "
    "protected least. Here is what each group has. A client of a stricter group is heard less: its update "
    "has a smaller weight, joins fewer rounds, or has more noise."
)

AT_RANDOM = (
    "Accuracy: clients' records are dealt at random, and so are the test records here, to each group its "
    "share. The model is the same for all, so the accuracies of groups differ by chance alone."
)
BY_LABEL = (
    "Accuracy: clients' records are dealt by label, and so are the test records here. Each group is measured "
    "on labels as its own clients have them, and pays where its labels are heard less."
)
MEASURED = {
    "by-user": "Accuracy: on the held-out records of the clients of each group.",
    **dict.fromkeys(DEALT_BY_LABEL, BY_LABEL),
}
WITHHELD = (
    "The accuracy of each group is operator-only (operator.html): test records are dealt to groups by the "
    "labels of clients' records, which are not declared public (data.public)."
)


def of_run(document: RunDocument) -> list[Section]:
    """The groups of a run; no section where all clients have one budget."""
    groups = document.privacy.groups
    if not groups:
        return []
    measured = _measured(document)
    observers = [name for name in OBSERVERS if any(g.observer == name for g in groups[0].guarantees)]
    rows: list[tuple[Value, ...]] = []
    for group in groups:
        against = {g.observer: g for g in group.guarantees}
        rows.append(
            (
                group.name,
                f"{group.clients:,}",
                _differs(group),
                *([figure(measured[group.name])] if group.name in measured else []),
                *(protection.spent(against.get(name)) for name in observers),
            )
        )
    terms = words.terms([g for group in groups for g in group.guarantees])
    caption = f"{protection.ROUNDED} Each epsilon: {terms}, against the observer of its column."
    accuracy = ["Accuracy"] * bool(measured)
    head = (
        "Group",
        "Clients",
        "Differs by",
        *accuracy,
        *(f"From {words.observer(name)}" for name in observers),
    )
    sentences = [
        (group.name, words.capital(words.observer(g.observer)), g.words or "")
        for group in groups
        for g in group.guarantees
    ]
    blocks: list[Block | Details] = [
        Text(ALL),
        *([Text(text)] if (text := _held_out(document)) else []),
        Table(caption, head, rows, stacked=True),
        Details(
            "Every guarantee of a group as a sentence, to quote",
            [Table(caption, ("Group", "Observer", "In words"), sentences)],
        ),
    ]
    return [Section("budget-groups", "Budgets that differ", blocks)]


def accuracies(document: RunDocument) -> str:
    """The accuracy of each group in one line for a terminal; empty where none is known."""
    known = [
        f"{name} {words.accuracy(group.accuracy)}"
        for name, group in _measured(document).items()
        if group.accuracy is not None
    ]
    return f"accuracy by group: {', '.join(known)}" if known else ""


def _measured(document: RunDocument) -> dict[str, GroupAccuracy]:
    """The accuracy of each group by its name, in the order of the scenario; empty where none is known."""
    columns = document.final.groups if document.final is not None else ()
    return {each.group: each for column in columns if column.column == COLUMN for each in column.groups}


def _held_out(document: RunDocument) -> str:
    """Whose records the accuracy of a group is measured on."""
    if document.lacks_truth:
        return WITHHELD
    if not _measured(document):
        return ""
    partition = document.scenario.get("data", {}).get("partition", "one-per-example")
    return MEASURED.get(partition, AT_RANDOM)


def _differs(group: BudgetGroup) -> str:
    parts = {
        "noise multiplier": group.noise_multiplier,
        "joins a round with probability": group.rate,
        "weight of its clipped updates": group.weight,
    }
    stated = [f"{name} {words.number(value)}" for name, value in parts.items() if value is not None]
    return words.capital(", ".join(stated)) or "—"
