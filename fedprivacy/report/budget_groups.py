"""Groups of clients with budgets that differ: settings, accuracy, and an epsilon for each observer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.guarantee import BudgetGroup
from fedprivacy.documents.quality import ColumnGroups, GroupAccuracy
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.report import arm_labels, protection, words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text, Value
from fedprivacy.report.blocks import Group as Heading
from fedprivacy.report.groups import figure, over_seeds
from fedprivacy.sampling.group_limits import COLUMN

ALL = (
    "The guarantees above hold for each client, whatever its group: they are those of the group that is "
    "protected least. Here is what each group has. A client of a stricter group is heard less: its update "
    "has a smaller weight, joins fewer rounds, or has more noise."
)


@dataclass(frozen=True)
class _Model:
    """The groups of a run, or of a cell of a comparison, with the accuracy of each that is known."""

    label: str
    groups: Sequence[BudgetGroup]
    measured: Mapping[str, GroupAccuracy]


def of_run(document: RunDocument) -> list[Section]:
    """The groups of a run; no section where all clients have one budget."""
    groups = document.privacy.groups
    if not groups:
        return []
    return _section([_Model("", groups, _measured(_columns(document)))])


def of_comparison(document: CompareDocument) -> list[Section]:
    """The groups of each cell and option; no section where all clients of each have one budget."""
    named = [(arm_labels.cell(arm, cell.epsilon), cell) for arm in document.arms for cell in document.of(arm)]
    named += [
        (f"With option {option.option}, epsilon {words.target(option.epsilon)}", option)
        for option in document.options
    ]
    models = [
        _Model(label, cell.budget_groups, _measured(over_seeds(cell)))
        for label, cell in named
        if cell.budget_groups
    ]
    return _section(models) if models else []


def _section(models: Sequence[_Model]) -> list[Section]:
    """A row for each group of each model, and its guarantees as sentences."""
    stated = [(model, group, g) for model in models for group in model.groups for g in group.guarantees]
    observers = [name for name in OBSERVERS if any(g.observer == name for _, _, g in stated)]
    accuracy = ["Accuracy"] * any(model.measured for model in models)
    rows: list[Sequence[Value] | Heading] = []
    for model in models:
        rows += [Heading(model.label)] if model.label else []
        for group in model.groups:
            against = {g.observer: g for g in group.guarantees}
            figures = [figure(model.measured.get(group.name)) for _ in accuracy]
            epsilons = [protection.spent(against.get(name)) for name in observers]
            rows.append((group.name, f"{group.clients:,}", _differs(group), *figures, *epsilons))
    caption = (
        f"{protection.ROUNDED} Each epsilon: {words.terms(g for _, _, g in stated)}, against the observer of "
        "its column."
    )
    seen = [f"From {words.observer(name)}" for name in observers]
    sentences = [
        (
            ", ".join(filter(None, (model.label, group.name))),
            words.capital(words.observer(g.observer)),
            g.words or "",
        )
        for model, group, g in stated
    ]
    blocks: list[Block | Details] = [
        Text(ALL),
        Table(caption, ("Group", "Clients", "Differs by", *accuracy, *seen), rows, stacked=len(models) == 1),
        Details(
            "Every guarantee of a group as a sentence, to quote",
            [Table(caption, ("Group", "Observer", "In words"), sentences)],
        ),
    ]
    return [Section("budget-groups", "Budgets that differ", blocks)]


def accuracies(document: RunDocument) -> str:
    """The accuracy of each group of a run in one line for a terminal; empty where none is known."""
    listed = _listed(_measured(_columns(document)))
    return f"accuracy by group: {listed}" if listed else ""


def lines_of_comparison(document: CompareDocument) -> list[str]:
    """A line for a terminal with the accuracy of each group in each cell and option; none without groups."""
    listed = [
        (cell.trust if cell.epsilon is None else f"{cell.trust} at epsilon {cell.epsilon:g}", cell)
        for cell in document.cells
    ]
    listed += [(f"{option.option} at epsilon {option.epsilon:g}", option) for option in document.options]
    texts = [
        f"  {name}: {figures}" for name, cell in listed if (figures := _listed(_measured(over_seeds(cell))))
    ]
    return ["Accuracy by group of clients (epsilon: of clients in no group)", *texts] if texts else []


def _listed(measured: Mapping[str, GroupAccuracy]) -> str:
    known = [
        f"{name} {words.accuracy(group.accuracy)}"
        for name, group in measured.items()
        if group.accuracy is not None
    ]
    return ", ".join(known)


def _columns(document: RunDocument) -> Sequence[ColumnGroups]:
    return document.final.groups if document.final is not None else ()


def _measured(columns: Sequence[ColumnGroups]) -> dict[str, GroupAccuracy]:
    """The accuracy of each group by its name, in the order of the scenario; empty where none is known."""
    return {each.group: each for column in columns if column.column == COLUMN for each in column.groups}


def _differs(group: BudgetGroup) -> str:
    parts = {
        "noise multiplier": group.noise_multiplier,
        "joins a round with probability": group.rate,
        "weight of its clipped updates": group.weight,
    }
    stated = [f"{name} {words.number(value)}" for name, value in parts.items() if value is not None]
    return words.capital(", ".join(stated)) or "—"
