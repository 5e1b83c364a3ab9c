"""Learning curves: accuracy and loss by round, and the axes of rounds and accuracies."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import svg, words
from fedprivacy.report.charts import Axis, Lines, Point, Reference, Series, accuracy_range
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look

Values = Sequence[tuple[int, float]]  # a round, and the accuracy measured after it


def measure(
    heading: str,
    values: Values,
    look: Look,
    planned: int | None,
    *,
    share: bool,
    levels: tuple[Reference, ...] = (),
) -> Lines:
    """One measure of a run by round; rounds that were planned but not run stay empty.

    Args:
        heading: The measured quantity.
        values: At least one.
        look: How it is drawn.
        planned: How many rounds there were to be.
        share: Whether it is a share, shown in percent.
        levels: Lines to compare it with.
    """
    done = values[-1][0]
    known = [*(value for _, value in values), *(level.at for level in levels)]
    y = accuracy(heading, known) if share else _loss(heading, values)
    # Of many rounds the points would be a thick line.
    color, marker, line = look
    drawn = (color, marker or "o", line) if len(values) <= 25 else (color, "", line)
    stopped = (Reference(done, (svg.MUTED, "", ":"), upright=True),) if planned and done < planned else ()
    curve = Series(drawn, "", points(values), end=y.text(values[-1][1]))
    return Lines(rounds(max(planned or 0, done)), y, (curve,), (*stopped, *levels))


def rounds(last: int) -> Axis:
    """The axis of rounds."""
    return Axis("Round", limits=(0.0, max(last, 1)), whole=True, phrase="in round {}")


def accuracy(label: str, values: Sequence[float], limits: tuple[float, float] | None = None) -> Axis:
    """The axis of accuracies: all of it, unless they lie close together or its ends are known."""
    return Axis(label, words.accuracy, tick_text=percent, limits=limits or accuracy_range(values))


def points(values: Values) -> tuple[Point, ...]:
    """A point for each round that was evaluated."""
    return tuple(Point(float(at), value) for at, value in values)


def _loss(label: str, values: Values) -> Axis:
    high = max(value for _, value in values)
    low = min(0.0, *(value for _, value in values))
    return Axis(label, lambda loss: words.number(loss, 3), limits=(low, low + 1.05 * (high - low) or 1.0))
