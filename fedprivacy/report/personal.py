"""Models of each client's own, beside the model that all clients share."""

from __future__ import annotations

from fedprivacy.documents.quality import PersonalAccuracies
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text

# How clients get their models, after "Each client".
_MODES = {
    "partial": "trains a part of the model by itself, and keeps it.",
    "fine-tune": "trains the final model further on its own records.",
    "ditto": "trains a copy of the model beside, which is pulled to the shared one (Ditto).",
}
COVERED = (
    "The guarantee covers the shared model, and what other clients' records do to a personal one. A personal "
    "model goes to its own client alone; for one that is published there is no guarantee."
)


def of_run(document: RunDocument) -> list[Section]:
    """How clients get personal models, how good they are, and what covers them; nothing without any."""
    mode = _MODES.get(str(document.setting("training", "personal")))
    if mode is None:
        return []
    personal = None if document.final is None else document.final.personal
    blocks: list[Block | Details] = [Text(f"Each client {mode} {COVERED}")]
    if personal is not None:
        blocks.append(_table(personal))
    return [Section("personal", "Models of each client's own", blocks)]


def _table(personal: PersonalAccuracies) -> Table:
    caption = (
        f"Accuracy of {personal.clients:,} clients, each on its own held-out records ({personal.records:,} "
        f"in all) and counted once. Worst tenth: the {personal.worst_clients:,} clients with the lowest "
        "accuracy under each model."
    )
    rows = [
        ("Each client's own model", words.accuracy(personal.mean), words.accuracy(personal.worst)),
        ("The shared model", words.accuracy(personal.shared_mean), words.accuracy(personal.shared_worst)),
    ]
    return Table(caption, ("Model", "All clients", "Worst tenth"), rows, numeric=frozenset({1, 2}))


def sentence(document: RunDocument) -> str | None:
    """The mean accuracy of personal models in one line for a terminal; None where it is not known."""
    personal = None if document.final is None else document.final.personal
    if personal is None:
        return None
    return (
        f"Personal models: {words.accuracy(personal.mean)} on each client's own held-out records, where the "
        f"shared model has {words.accuracy(personal.shared_mean)}."
    )
