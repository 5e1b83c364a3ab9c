"""The table of the lectures: accuracy in training and test, and how often each outsider is right."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack, Level
from fedprivacy.report.blocks import Entry, Section, Table, Value

KIND = "released"


def sections(document: ReplayDocument) -> list[Section]:
    """A column for each level of privacy; no section where the released model was not attacked."""
    head, rows = table(document)
    caption = (
        "What the released model knows of its own records and of others, and the balanced accuracy of each "
        "attack on it with its 95 % interval: how often it is right of as many members as non-members; "
        f"guessing gives 50 %. {levels.terms(document)}"
    )
    told = Table(caption.strip(), head, rows, numeric=frozenset(range(1, len(head))))
    return [Section("released", "The released model", [told])] if rows else []


def table(document: ReplayDocument) -> tuple[Sequence[str], list[Sequence[Value]]]:
    """The headings, and the rows; none where the released model was not attacked."""
    found: dict[Level, dict[str, Attack]] = {}
    for level in document.levels:
        own = {one.name: one for one in document.attacks if one.attack == KIND and one.level == level}
        if own:
            found[level] = own
    names = list(dict.fromkeys(name for own in found.values() for name in own))
    models = [next(iter(own.values())).model_accuracy for own in found.values()]
    head = ("Accuracy", *(words.capital(levels.name(level)) for level in found))
    if not names:
        return head, []
    return head, [
        ("Of the model in training", *(words.accuracy(one.train) for one in models)),
        ("Of the model on others", *(words.accuracy(one.before) for one in models)),
        *((name, *(_right(own.get(name)) for own in found.values())) for name in names),
    ]


def _right(attack: Attack | None) -> Value:
    """How often an attack is right."""
    one = None if attack is None else attack.balanced_accuracy
    return "—" if one is None else Entry(figures.percent(one.value), figures.ends(one, rate=True))
