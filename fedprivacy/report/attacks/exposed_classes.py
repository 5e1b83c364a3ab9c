"""The classes in one picture, from the most exposed on, with intervals, beside all records together."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import Measure
from fedprivacy.documents.exposure import Exposure
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import figures
from fedprivacy.report.blocks import Picture, Table
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series
from fedprivacy.report.charts.axis import categories
from fedprivacy.report.charts.label import cut
from fedprivacy.report.charts.looks import Look

NAME = 64.0  # pixels of a class in the picture; the table has all
TOGETHER: Look = (svg.INK, "", (0, (6, 2)))
ClassFigures = Sequence[tuple[str, Measure]]


def figured_classes(exposure: Exposure) -> ClassFigures:
    """The classes whose AUC is known, from the most exposed on."""
    known = [
        (label, figures_of_class.auc)
        for label, figures_of_class in exposure.classes.items()
        if figures_of_class.auc is not None
    ]
    return sorted(known, key=lambda item: -item[1].value)


def picture(exposure: Exposure, name: str, table: Table) -> Picture:
    """A mark with its interval for each class.

    Args:
        exposure: With at least two classes whose AUC is known.
        name: Unique on the page.
        table: The same figures.
    """
    classes = figured_classes(exposure)
    (first, high), (last, low) = classes[0], classes[-1]
    sentences = [
        f"Each class, by the attack {exposure.attack}, from the most exposed on: AUC from "
        f"{figures.share(high.value)} for class {first} to {figures.share(low.value)} for class {last}, with "
        "95 % intervals that hold for each class by itself."
    ]
    if (whole := exposure.auc) is not None:
        above = sum(area.low > whole.high for _, area in classes)
        below = sum(area.high < whole.low for _, area in classes)
        sentences.append(
            f"All records together (dashed line): {figures.share(whole.value)}, {figures.ends(whole)}. Of "
            f"{len(classes):,} classes {above:,} lie above it and "
            f"{below:,} below it by their whole intervals."
        )
    if missing := len(exposure.classes) - len(classes):
        sentences.append(f"{missing:,} more have too few records for a figure.")
    caption = " ".join(sentences)
    return Chart(
        f"{name}-classes",
        "AUC of each class with its 95 % interval",
        caption,
        (_panel(exposure, classes),),
        terms=caption,
        tables=(table,),
    ).picture


def _panel(exposure: Exposure, classes: ClassFigures) -> Lines:
    """A mark for each class, beside the level of all records together and that of guessing."""
    points = tuple(
        Point(float(place), area.value, (area.low, area.high)) for place, (_, area) in enumerate(classes)
    )
    low = min(area.low for _, area in classes)
    whole = exposure.auc
    together = f"All records together: {figures.share(whole.value)}" if whole is not None else ""
    levels = (Reference(whole.value, TOGETHER, together, width=1.75),) if whole is not None else ()
    return Lines(
        Axis(
            "Classes, the most exposed first",
            ticks=categories([cut(label, NAME) for label, _ in classes]),
            limits=(-0.7, len(classes) - 0.3),
            says=lambda place: f"for class {classes[round(place)][0]}",
            partly=" (not all are named)",
        ),
        Axis(
            "AUC within the class (0.5: guessing, 1: certain)",
            figures.share,
            tick_text=lambda area: words.number(round(area, 6)),
            limits=(max(0.0, min(figures.GUESSING, low) - 0.03), 1.0),
        ),
        (Series((svg.LOCAL, "o", ""), "A class, with its 95 % interval", points),),
        (*levels, Reference(figures.GUESSING, label="Guessing")),
        legend=True,
    )
