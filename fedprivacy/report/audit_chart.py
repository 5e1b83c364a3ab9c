"""The picture of an audit: epsilon as claimed, as proved, and as canaries could prove it, on one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fedprivacy.attacks.assessment import down
from fedprivacy.documents.audit import AuditDocument, Observer
from fedprivacy.guarantees.statement import printed
from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Picture
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Row, Series

FAR = 4.0  # an interval that ends beyond so many times every other figure is drawn to the axis' end
BEYOND = " An interval that reaches the right end of its axis goes on beyond it."
HOW_TO_READ = (
    "Upright line: the claimed epsilon. A proved lower bound right of it refutes the claim; one left of it "
    "proves no guarantee. The ceiling is the most that so many canaries prove if every guess is right: where "
    "it lies left of the claim, this audit could not have refuted it."
)
NO_PROOF = " The estimate, with its 95 % interval, is no proof."


def picture(document: AuditDocument, terms: str) -> Picture | None:
    """A row for each observer; None where no observer has any figure.

    Args:
        document: The audit.
        terms: Those of its epsilons.
    """
    observers = document.observers
    series = (
        Series((svg.CENTRAL, "|", ""), "Claimed", _points(observers, _claimed)),
        Series((svg.LOCAL, "o", ""), "Proved at least", _points(observers, _proved)),
        Series((svg.DISTRIBUTED, "D", ""), "Proved at least, if Gaussian", _points(observers, _if_gaussian)),
        Series((svg.SECOND, "v", ""), "Ceiling of so many canaries", _points(observers, _ceiling)),
        Series((svg.FOURTH, "X", ""), "Estimate", _estimates(observers)),
    )
    if not any(each.points for each in series):
        return None
    rows = tuple(Row(words.capital(observer.observer)) for observer in observers)
    panel = Dots(
        Axis("epsilon", _text, limits=(0.0, 1.06 * _end(observers))),
        rows,
        series,
        missing="none",
    )
    beyond = any(point.interval and point.interval[1] > _end(observers) for point in series[-1].points)
    return Chart(
        "audit",
        "Dot chart of epsilon as claimed, proved and provable against each observer",
        f"{HOW_TO_READ}{NO_PROOF * bool(series[-1].points)}{BEYOND * beyond} Each epsilon: {terms}.",
        (panel,),
        terms=f"Each epsilon: {terms}.",
    ).picture


def _text(epsilon: float) -> str:
    return f"{epsilon:.4g}"  # of values that are rounded to four digits already: claims up, proofs down


def _claimed(observer: Observer) -> float | None:
    claim = observer.guarantee.epsilon
    return None if claim is None else float(printed(claim))


def _proved(observer: Observer) -> float | None:
    return None if observer.one_run is None else float(down(observer.one_run.epsilon))


def _if_gaussian(observer: Observer) -> float | None:
    return None if observer.if_gaussian is None else float(down(observer.if_gaussian.epsilon))


def _ceiling(observer: Observer) -> float | None:
    return None if observer.one_run is None else float(printed(observer.one_run.ceiling))


def _points(observers: Sequence[Observer], figure: Callable[[Observer], float | None]) -> tuple[Point, ...]:
    values = [(figure(observer), float(row)) for row, observer in enumerate(observers)]
    return tuple(Point(value, row) for value, row in values if value is not None and math.isfinite(value))


def _end(observers: Sequence[Observer]) -> float:
    """The largest epsilon that the axis has room for: all figures, and estimates not far beyond them."""
    of_each = (_claimed, _proved, _if_gaussian, _ceiling)
    known = [value for figure in of_each for observer in observers if (value := figure(observer)) is not None]
    most = max((value for value in known if math.isfinite(value)), default=0.0) or 1.0
    guesses = [observer.canary_clients for observer in observers if observer.canary_clients is not None]
    ends = [end for guess in guesses for end in (guess.epsilon, guess.high) if end is not None]
    return max([most, *(end for end in ends if end <= FAR * most)])


def _estimates(observers: Sequence[Observer]) -> tuple[Point, ...]:
    """Estimates on the axis with their intervals, which may go on beyond it."""
    end = _end(observers)
    points = []
    for row, observer in enumerate(observers):
        guess = observer.canary_clients
        if guess is not None and guess.epsilon is not None and guess.epsilon <= end:
            high = end * 1.06 if guess.high is None else min(guess.high, end * 1.06)
            points.append(Point(guess.epsilon, float(row), (min(guess.low, high), high)))
    return tuple(points)
