"""Published figures of the same attacks on other models, beside ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.documents.attack import Attack, Measure
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import page_end, words
from fedprivacy.report.attacks import figures
from fedprivacy.report.blocks import Block, Details, Entry, Section, Table, Text, Value
from fedprivacy.scenario.summary import data_label

SOURCE = "Nasr, Shokri and Houmansadr (2019)"
# Seat, whether it isolates the victim, and kind of each published attack, in the order of their table.
POSITIONS = (
    ("server", False, "passive"),
    ("server", False, "active-gradient-ascent"),
    ("server", True, "passive"),
    ("server", True, "active-gradient-ascent"),
    ("participant", False, "passive"),
    ("participant", False, "active-gradient-ascent"),
)


@dataclass(frozen=True)
class Published:
    """The attack accuracies of one model in the table.

    Args:
        model: The model, in words.
        data: The name of its data.
        right: In per cent, at each of `POSITIONS`.
        observed: What its passive attack observed, in words; empty where the table does not have it.
    """

    model: str
    data: str
    right: tuple[float, ...]
    observed: str = ""

    def at(self, attack: Attack) -> float | None:
        """The published figure of an attack's position, in per cent; None without one."""
        position = (attack.seat, attack.isolating, attack.attack)
        if attack.level is not None or attack.clients_in_sum is not None or position not in POSITIONS:
            return None
        if attack.trap_units is not None:  # the published attack raises losses by gradient steps
            return None
        return self.right[POSITIONS.index(position)]


FIGURES = {
    "cifar100-alexnet": Published(
        "Alexnet", "CIFAR-100", (85.1, 88.2, 89.0, 92.1, 73.1, 76.3), "epochs 100 to 300"
    ),
    "cifar100-densenet": Published("DenseNet", "CIFAR-100", (79.2, 82.1, 84.6, 87.3, 72.2, 76.7)),
    "texas100": Published("a network", "Texas100", (66.4, 69.5, 69.3, 71.7, 62.4, 66.4)),
    "purchase100": Published("a network", "Purchase100", (72.4, 75.4, 75.3, 82.5, 65.8, 69.8)),
}


def sections(document: ReplayDocument) -> list[Section]:
    """The figures of the table that the scenario names, beside ours; no section if it names none."""
    table = FIGURES.get(str(document.setting("game", "published")))
    if table is None or document.arms:
        return []
    compared = [
        (attack, attack.balanced_accuracy, figure)
        for group in document.cells.values()
        for attack in group
        if attack.balanced_accuracy is not None and (figure := table.at(attack)) is not None
    ]
    if not compared:
        return []
    rows = [_row(*each) for each in compared]
    head = ("Attack", "Here", "Published", "The published figure")
    caption = (
        "Balanced accuracy: how often an attack is right of as many members as non-members; guessing gives "
        f"50 %. Below ours its 95 % interval. {figures.covered([attack for attack, _, _ in compared])}"
    )
    blocks: list[Block | Details] = [
        Text(_data(document, table)),
        Table(caption.strip(), head, rows, numeric=frozenset({1, 2}), stacked=True),
        Text(_differences(document, table, compared[0][0].model_accuracy.before)),
    ]
    return [Section("published", "Beside the published figures", blocks, folded=False)]


INSIDE, BELOW, ABOVE = "lies in our interval", "is lower", "is higher"


def place(measure: Measure, published: float) -> str:
    """Where a published figure lies.

    >>> place(Measure(value=0.9, low=0.85, high=0.93), 92.1)
    'lies in our interval'
    """
    # Published figures have one decimal, so ours are compared at the same.
    low, high = (round(100 * end, 1) for end in (measure.low, measure.high))
    if published < low:
        return BELOW
    return ABOVE if published > high else INSIDE


def _row(attack: Attack, measure: Measure, published: float) -> Sequence[Value]:
    return (
        Entry(attack.name, f"{figures.seat(attack.seat)}: {figures.described(attack)}"),
        Entry(figures.percent(measure.value), figures.ends(measure, rate=True)),
        f"{published:.1f} %",
        place(measure, published),
    )


def _data(document: ReplayDocument, table: Published) -> str:
    """Whether both are of the same data, as far as the name of ours goes."""
    data = document.scenario.get("data")
    ours = data_label(data) if isinstance(data, Mapping) else "unknown"
    plain = [re.sub("[^a-z0-9]", "", name.lower()) for name in (table.data, ours)]
    if plain[1].startswith(plain[0]):
        return f"The data here: {ours}. The published data: {table.data}."
    return (
        f"Other data: here {ours}, published {table.data}. So the figures show neither agreement nor a "
        "difference of attacks."
    )


def _differences(document: ReplayDocument, table: Published, accuracy: float | None) -> str:
    """How ours differ from the published, with the accuracy of our model on held-out records."""
    right = "" if accuracy is None else f"; it is right on {words.accuracy(accuracy)} of held-out records"
    theirs = (
        f", whose passive attack from the server's seat observed {table.observed}" if table.observed else ""
    )
    return (
        f"Published: {SOURCE}, as printed in the lectures, of {table.model} on {table.data}{theirs}; "
        f"attack networks that learned from known memberships. Here: {_ours(document)}{right}; attacks are "
        "single scores, chosen "
        "on other targets than those that are measured. The network, the number of records, the length of "
        "training and the attacks differ. So a published figure in our interval does not prove that both are "
        "equal, and one outside does not prove an error."
    )


def _ours(document: ReplayDocument) -> str:
    """The model, the data and the training here, in words."""
    data, model = (document.scenario.get(section) for section in ("data", "model"))
    clients, records = (document.setting("data", key) for key in ("clients", "records_per_client"))
    rounds = document.setting("game", "warm_up")
    rounds = document.setting("server", "rounds") if rounds is None else rounds
    epochs = document.setting("training", "epochs")
    parts = [
        f"a model ({page_end.flat(model)})" if isinstance(model, Mapping) and model else "",
        f"on {data_label(data)}" if isinstance(data, Mapping) else "",
        f"{words.counted(clients, 'client')}" if isinstance(clients, int) else "",
        f"with {words.counted(records, 'record')} each" if isinstance(records, int) else "",
        f"trained for {words.counted(rounds, 'round')} before the attacks" if isinstance(rounds, int) else "",
        f"of {words.counted(epochs, 'epoch')}" if isinstance(epochs, int) and epochs > 1 else "",
    ]
    return " ".join(filter(None, parts)) or "another model"
