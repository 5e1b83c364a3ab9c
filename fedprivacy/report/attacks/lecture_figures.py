"""The lectures' figures of adversarial regularisation, beside our measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedprivacy.documents.attack import SEATS
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report.blocks import Entry, Group, Value

# Purchase100, in per cent: accuracy in training, in test, and of the attack.
PRINTED = (
    ("without defence", "100", "80.1", "67.6"),
    ("adversarial regularisation", "92.2", "76.5", "51.6"),
)
WHENCE = Group(
    "As printed in the lectures, on Purchase100",
    "Nasr, Shokri and Houmansadr 2018: one place, no federation, an attack network on the model's outputs",
)


def beside(document: ReplayDocument, *, training: bool) -> list[Sequence[Value] | Group]:
    """The lectures' printed figures as rows, for arms of which one regularises; none for others.

    Args:
        document: The replay.
        training: Whether the table has the accuracy in training.
    """
    arms = document.scenario.get("arms")
    tables = arms.values() if isinstance(arms, Mapping) else ()
    trainings = [arm.get("training") for arm in tables if isinstance(arm, Mapping)]
    if not any(isinstance(arm, Mapping) and "adversarial" in arm for arm in trainings):
        return []
    nobody = ["—"] * (len(SEATS) - 1)
    rows: list[Sequence[Value] | Group] = [WHENCE]
    for name, train, test, attack in PRINTED:
        rows.append(
            [
                name,
                *([f"{train} %"] if training else []),
                f"{test} %",
                *nobody,
                Entry("—", f"right {attack} %"),
            ]
        )
    return rows
