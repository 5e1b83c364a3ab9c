"""The answer of one federated run: its accuracy, and against whom it is private."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.run import RunDocument
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

WITHOUT = "This run did not measure what it would be without noise; fedprivacy compare does."
NO_NOISE = "This run adds no noise: privacy costs nothing, and protects nobody."


def of_run(document: RunDocument, cells: Sequence[Protected]) -> Answer:
    """The accuracy at the end, or that nothing was evaluated.

    Args:
        document: The run.
        cells: Its guarantees.
    """
    accuracy = document.final.accuracy if document.final else None
    on = cards.brief(words.evaluated_on(document.evaluated_on), 6)
    rounds = words.counted(len(document.rounds), "round")
    # Accuracy on held-out records of clients is for the operator: a public page lacks it.
    withheld = "The accuracy is operator-only"
    reached = withheld if document.lacks_accuracy else "No round was evaluated"
    if accuracy is not None:
        reached = f"The model is right on {words.accuracy(accuracy)} of {on}"
    private = any(g.holds for g in cards.guarantees(cells))
    line = Entry(f"{words.accuracy(accuracy)} accuracy", f"on {on}, after {rounds}")
    return cards.answer(
        f"{reached}; {cards.against(cells)}.",
        words.accuracy(accuracy),
        f"accuracy on {on}, after {rounds}",
        cells,
        [
            cards.cost([line], WITHOUT if private else NO_NOISE),
            cards.protected(cells),
            cards.learned(cells),
        ],
    )
