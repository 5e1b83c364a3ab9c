"""The most exposed records of a stored replay: the command `fedprivacy risk`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.errors import InputError
from fedprivacy.io.console import Terminal
from fedprivacy.records.run_directory import read_document
from fedprivacy.report.attacks import exposed, exposed_words, figures
from fedprivacy.verification.verify import checked_document

CAUTION = (
    "For the operator only: this depends on the participants' data, and no mechanism has charged the privacy "
    "budget for it."
)
OF_THE_DATA = ("exposed", "most_exposed", "classes", "auc", "carried", "spread", "groups")
CLASSES = 3  # of each end, in the terminal


def risk(path: Path, most: int, attack: str | None = None) -> dict[str, Any]:
    """The most exposed records of a stored replay.

    Args:
        path: Its directory.
        most: How many records, at most.
        attack: The attack that ranks the records; None: the first that measures exposure.

    Raises:
        InputError: it is no replay, or damaged, or neither this attack nor any other measures exposure.
    """
    file = path / "run.json"
    kind = read_document(file).get("kind")
    if kind != "replay":
        raise InputError(
            f"{path}: a {kind}, and who is exposed is found by attacks. Play some: `fedprivacy scenarios` "
            "lists scenarios for `fedprivacy replay`, such as white-box."
        )
    document = checked_document(path)
    exposures = {exposure.attack: exposure for exposure in exposed.read(document, str(file))}
    if not exposures:
        new = shlex.quote("attacks.exposure={kind='released', methods=['lira']}")
        raise InputError(
            f"{path}: no attack of it tells whose records are exposed; one on the released model by LiRA "
            f"does. Play one: fedprivacy replay {shlex.quote(str(path))} --set {new} --attack exposure"
        )
    if attack is not None and attack not in exposures:
        raise InputError(
            f"--attack {attack}: does not tell whose records are exposed. These do: {', '.join(exposures)}."
        )
    exposure = exposures[attack] if attack else next(iter(exposures.values()))
    stored = next(part for part in document[exposed.FIELD] if part["attack"] == exposure.attack)
    notes = (
        words(exposure) for words in (exposed_words.summary, exposed_words.carrying, exposed_words.basis)
    )
    return {
        "schema": SCHEMA,
        "kind": "risk",
        "name": document["name"],
        "path": str(path),
        **stored,
        "most_exposed": stored["most_exposed"][:most],
        "kept": len(stored["most_exposed"]),
        "asked": most,
        "notes": [note for note in notes if note],
        "operator_only": ["notes", *(name for name in OF_THE_DATA if name in stored)],
    }


def show(document: Mapping[str, Any]) -> None:
    """The records, the classes at both ends, and what it rests on."""
    console, plain = Terminal(), Terminal(soft_wrap=True)
    [exposure] = exposed.read({exposed.FIELD: [document]})
    table = Table(title="Most exposed records", title_justify="left")
    for name in ("record", "with it", "without it", "advantage [95 %]"):
        table.add_column(name, justify="right", no_wrap=True)
    for record in exposure.most_exposed:
        gain = record.advantage
        table.add_row(
            f"{record.record}",
            exposed.rate(record.hits, record.models),
            exposed.rate(record.alarms, record.others),
            f"{gain.value:.3f} [{gain.low:.3f}, {gain.high:.3f}]",
        )
    console.print(table)
    plain.print(
        "With it, without it: in how many models, of those trained on the record and of the others, it"
    )
    plain.print("is called a member. Records count from 0 in the training data.")
    if document["asked"] > document["kept"]:
        plain.print(f"Of the others the run keeps nothing: it has the {document['kept']:,} most exposed.")
    areas = [
        (label, figures_of_class.auc.value)
        for label, figures_of_class in exposure.classes.items()
        if figures_of_class.auc
    ]
    areas.sort(key=lambda item: -item[1])
    if len(areas) > 1:
        ends = [*areas[:CLASSES], *areas[max(CLASSES, len(areas) - CLASSES) :]]
        text = ", ".join(f"class {label} {figures.share(value)}" for label, value in ends)
        plain.print(f"AUC by class, of the most and the least exposed of {len(areas):,}: {text}")
    for note in (*document["notes"], CAUTION):
        plain.print(f"- {note}")
