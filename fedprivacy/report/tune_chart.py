"""The picture of a choice of settings: public scores of the candidates, and what choosing costs."""

from __future__ import annotations

from fedprivacy.documents.tune import TuneDocument
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Picture
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Row, Series
from fedprivacy.report.charts.axis import percent
from fedprivacy.scenario.tune.grid import words_of

DRAWN = 30  # candidates that a picture has room for; of more the best are drawn
SCORES = "Accuracy on the public split"


def picture(document: TuneDocument, terms: str) -> Picture | None:
    """Scores above, where they are public, and epsilons below; None where there is neither.

    Args:
        document: The choice.
        terms: Those of its epsilons.
    """
    panels = tuple(panel for panel in (_scores(document), _epsilons(document)) if panel is not None)
    if not panels:
        return None
    caption = []
    if len(document.candidates) > DRAWN and any(c.public_accuracy is not None for c in document.candidates):
        caption.append(f"Of {len(document.candidates):,} candidates the best {DRAWN} are drawn.")
    if panels[0].rows and panels[0].title == SCORES:
        counted = any(candidate.interval is not None for candidate in document.candidates)
        caption.append(
            "Accuracy of each candidate on the public split, with its 95 % interval over records (Wilson), "
            f"each by itself; the largest of {len(document.candidates):,} is flattered a little."
            if counted
            else "Accuracy of each candidate on the public split, without intervals: the record of a choice "
            "does not have the number of public records."
        )
    else:
        caption.append(
            "Scores of candidates are not drawn: those on clients' records are charged for by the choice "
            "alone, and are the operator's."
        )
    caption.append(
        "Epsilon: what the choice is charged with training included, and what all candidates together would "
        f"be charged if each were trained on the clients and released. Each epsilon: {terms}."
    )
    return Chart(
        "choice",
        "Dot charts of the candidates' scores and of epsilon",
        " ".join(caption),
        panels,
        stacked=True,
        terms=f"Each epsilon: {terms}.",
    ).picture


def _scores(document: TuneDocument) -> Dots | None:
    """A row for each candidate whose score is public, the best first."""
    known = [
        (accuracy, number)
        for number, candidate in enumerate(document.candidates)
        if (accuracy := candidate.public_accuracy) is not None
    ]
    best = sorted(known, reverse=True)[:DRAWN]
    if not best:
        return None
    rows = tuple(Row(f"{number}: {words_of(document.candidates[number].settings)}") for _, number in best)
    marks: dict[bool, list[Point]] = {True: [], False: []}
    for row, (accuracy, number) in enumerate(best):
        interval = document.candidates[number].interval
        marks[number == document.choice.candidate].append(Point(accuracy, float(row), interval))
    series = (
        Series((svg.LOCAL, "D", ""), "Chosen", tuple(marks[True])),
        Series((svg.NONE, "o", ""), "Not chosen", tuple(marks[False])),
    )
    x = Axis("Accuracy", words.accuracy, tick_text=percent, limits=(0.0, 1.0))
    return Dots(x, rows, series, values=True, title=SCORES)


def _epsilons(document: TuneDocument) -> Dots | None:
    """A row for each observer against whom anything is guaranteed."""
    naive = {guarantee.observer: guarantee for guarantee in document.naive.guarantees}
    pairs = [(chosen, naive.get(chosen.observer)) for chosen in document.privacy.guarantees]
    shown = [pair for pair in pairs if _epsilon(pair[0]) is not None or _epsilon(pair[1]) is not None]
    if not shown:
        return None
    rows = tuple(Row(words.capital(chosen.observer)) for chosen, _ in shown)
    series = []
    for at, (look, label) in enumerate(
        (
            ((svg.CENTRAL, "s", ""), "The choice, training included"),
            ((svg.SECOND, "v", ""), f"All {len(document.candidates):,} candidates, released"),
        )
    ):
        values = [(_epsilon(pair[at]), float(row)) for row, pair in enumerate(shown)]
        points = tuple(Point(value, row) for value, row in values if value is not None)
        series.append(Series(look, label, points))
    end = max(point.x for each in series for point in each.points)
    x = Axis("epsilon (smaller is more private)", lambda e: words.number(e, 4), limits=(0.0, 1.06 * end))
    return Dots(x, rows, tuple(series), title="Epsilon against each observer", missing="none")


def _epsilon(guarantee: Guarantee | None) -> float | None:
    return None if guarantee is None or not guarantee.holds else guarantee.epsilon
