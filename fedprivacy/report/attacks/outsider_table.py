"""The table of the lectures: accuracy in training and test, and how often each outsider is right."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import Attack, Level
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.blocks import Entry, Section, Table, Value


def sections(document: ReplayDocument) -> list[Section]:
    """A column for each level of privacy; no section where the released model was not attacked."""
    head, rows = table(document)
    caption = (
        "What the released model knows of its own records and of others, and the balanced accuracy of each "
        "attack on it with its 95 % interval: how often it is right of as many members as non-members; "
        f"guessing gives 50 %. {levels.terms(document)}"
    )
    results = Table(caption.strip(), head, rows, numeric=frozenset(range(1, len(head))))
    return [Section("released", "The released model", [results])] if rows else []


def table(document: ReplayDocument) -> tuple[Sequence[str], list[Sequence[Value]]]:
    """The headings, and the rows; none where the released model was not attacked."""
    by_level: dict[Level, dict[str, Attack]] = {}
    for level in document.levels:
        group = {
            attack.name: attack
            for attack in document.attacks
            if figures.is_silent(attack) and attack.level == level
        }
        if group:
            by_level[level] = group
    names = list(dict.fromkeys(name for group in by_level.values() for name in group))
    models = [next(iter(group.values())).model_accuracy for group in by_level.values()]
    head = ("Accuracy", *(words.capital(levels.name(level)) for level in by_level))
    if not names:
        return head, []
    return head, [
        ("Of the model in training", *(words.accuracy(attack.train) for attack in models)),
        ("Of the model on others", *(words.accuracy(attack.before) for attack in models)),
        *((name, *(_right(group.get(name)) for group in by_level.values())) for name in names),
    ]


def _right(attack: Attack | None) -> Value:
    """The balanced accuracy of an attack."""
    measure = None if attack is None else attack.balanced_accuracy
    return "—" if measure is None else Entry(figures.percent(measure.value), figures.ends(measure, rate=True))
