"""The answer of one federated run: its accuracy, and against whom it is private."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.run import RunDocument
from fedprivacy.models.metrics.classes import Accuracy
from fedprivacy.report import limits, majority, words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

WITHOUT = "This run did not measure what it would be without noise; fedprivacy compare does."
WITHOUT_NOISE = (("no-clipping", "Without noise"), ("no-noise", limits.LABELS["no-noise"]))
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
    title = document.primary.title
    withheld = f"The {title} is operator-only"
    reached = withheld if document.lacks_accuracy else "No round was evaluated"
    if accuracy is not None:
        reached = f"The model is right on {words.accuracy(accuracy)} of {on}"
        if document.primary is not Accuracy:
            reached = f"The model reaches {title} {words.accuracy(accuracy)} on {on}"
    verdict = majority.of_run(document)
    if verdict:
        reached = f"The model is {verdict} ({words.accuracy(accuracy)})"
    private = any(g.holds for g in cards.guarantees(cells))
    line = Entry(f"{words.accuracy(accuracy)} {title}", f"on {on}, after {rounds}")
    beaten = [Entry(words.capital(verdict))] if verdict else []
    return cards.answer(
        f"{reached}; {cards.against(cells)}.",
        words.accuracy(accuracy),
        f"{title} on {on}, after {rounds}" + (f": {verdict}" if verdict else ""),
        cells,
        [
            cards.cost([line, *beaten, *_without_noise(document)], _cost_note(document, private)),
            cards.protected(cells),
            cards.learned(cells),
        ],
    )


def _without_noise(document: RunDocument) -> list[Entry]:
    """The accuracy of the same training without noise and clipping, where ablations measured it."""
    planned, variants = limits.cells_of(document)
    reached = {cell.ablation: cell.accuracy.mean for cell in variants}
    # A comparison trains its model without noise unclipped: the same words have the same meaning here.
    name, label = next(((n, label) for n, label in WITHOUT_NOISE if reached.get(n) is not None), ("", ""))
    if planned is None or not name:
        return []
    seeds = words.counted(len(planned.accuracies), "seed")
    seeds = f"against {words.accuracy(planned.accuracy.mean)} as planned, means of {seeds}"
    return [Entry(f"{label}: {words.accuracy(reached[name])}", seeds)]


def _cost_note(document: RunDocument, private: bool) -> str:
    if not private:
        return NO_NOISE
    return "" if _without_noise(document) else WITHOUT
