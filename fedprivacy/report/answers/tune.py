"""The answer of a choice of settings: the accuracy of the chosen ones, and the cost of choosing."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.tune import TuneDocument
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

NAIVE = "Training and releasing every candidate, without a mechanism for the choice"


def of_tune(document: TuneDocument, cells: Sequence[Protected]) -> Answer:
    """The chosen candidate's accuracy, or that the chance of the mechanism chose none.

    Args:
        document: The choice.
        cells: Its guarantees, training included.
    """
    choice, many = document.choice, words.counted(len(document.candidates), "candidate")
    accuracy = words.accuracy(choice.accuracy)
    if choice.candidate is None:
        reached = f"None of {many} was chosen, by chance"
    elif choice.accuracy is None:
        reached = f"One of {many} was chosen"
    else:
        reached = f"The choice from {many} is right on {accuracy} of held-out records"
    lines = [Entry(f"{accuracy} accuracy of the choice", "on held-out records")]
    lines += [Entry(f"Choosing and training: {text}") for text in _accounted(document.privacy.guarantees)]
    lines += [Entry(f"The naive way: {text}", NAIVE) for text in _accounted(document.naive.guarantees)]
    return cards.answer(
        f"{reached}; {cards.against(cells)}.",
        accuracy,
        f"accuracy of the choice from {many}",
        cells,
        [cards.cost(lines), cards.protected(cells), cards.learned(cells)],
    )


def _accounted(guarantees: Sequence[Guarantee]) -> list[str]:
    """The largest epsilon; nothing where there is none."""
    spent = [g.epsilon for g in guarantees if g.epsilon is not None and g.holds]
    return [f"epsilon {words.epsilon(max(spent))}"] if spent else []
