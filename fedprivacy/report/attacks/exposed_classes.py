"""The classes in one picture, from the most exposed on, with intervals, beside all records together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter

from fedprivacy.documents.attack import Measure
from fedprivacy.documents.exposure import Exposure
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys
from fedprivacy.report.blocks import Picture, Table

NAME = 8  # characters of a class in the picture; the table has all
LETTER, GAP = 8.0, 10.0  # pixels of a character below the axis, and between two names
HEIGHT, BELOW = 230.0, 58.0  # pixels of the axes, and below them
TOGETHER = (0, (6, 2))
Told = Sequence[tuple[str, Measure]]


def figured_classes(exposure: Exposure) -> Told:
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
        sentences.append(f"{missing:,} more have too few records to tell.")
    caption = " ".join(sentences)
    title = "AUC of each class with its 95 % interval"
    return Picture(partial(_draw, exposure, classes, name, title, caption), caption, [table])


def _draw(exposure: Exposure, classes: Told, name: str, title: str, alt: str, *, narrow: bool) -> str:
    whole = exposure.auc
    entries = [keys.Entry("One class, with its 95 % interval", keys.MEMBERS, "-", "o")]
    if whole is not None:
        entries.append(
            keys.Entry(f"All records together: {figures.share(whole.value)}", svg.INK, TOGETHER, width=1.75)
        )
    entries.append(keys.Entry("Guessing", svg.MUTED, width=1.25))
    top = keys.LINE * len(entries) + 40
    labels = [marks.short(label, NAME) for label, _ in classes]
    width, left, right = (360.0 if narrow else 920.0), 46.0, max(12.0, LETTER / 2 * max(map(len, labels)))
    every = _every(labels, width - left - right)
    named = [*range(0, len(labels) - every, every), len(labels) - 1]  # the first and the last in any case
    values, lows, highs = (
        np.array([getattr(area, end) for _, area in classes]) for end in ("value", "low", "high")
    )
    with svg.style():
        drawn = svg.figure(width, top + HEIGHT + BELOW)
        axes = svg.place(drawn, left, top, right, BELOW)
        axes.set_xlim(-0.7, len(classes) - 0.3)
        axes.set_ylim(max(0.0, min(figures.GUESSING, float(lows.min())) - 0.03), 1.0)
        axes.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
        if whole is not None:
            axes.axhline(whole.value, color=svg.INK, linestyle=TOGETHER, linewidth=1.75)
        room = (width - left - right) / len(classes)  # pixels of a class
        places = np.arange(len(classes))
        axes.vlines(
            places, lows, highs, color=keys.MEMBERS, linewidth=min(2.25, max(0.6, room / 4)), zorder=3
        )
        size = min(8.0, max(2.5, 0.7 * room))
        axes.plot(
            places, values, color=keys.MEMBERS, linestyle="", marker="o", markersize=size, clip_on=False,
            zorder=4,
        )  # fmt: skip
        axes.xaxis.set_major_locator(FixedLocator(named))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: labels[round(x)]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(round(y, 6))))
        some = "" if every == 1 else f" (1 in {every} named)"
        axes.set_xlabel(f"Classes, the most exposed first{some}", labelpad=6)
        plots.heading(axes, "AUC within the class (0.5: guessing, 1: certain)", shift=-left)
        keys.write(drawn, entries, 4, 2)
        return svg.write(drawn, f"{name}-classes-{'narrow' if narrow else 'wide'}", title, alt)


def _every(labels: Sequence[str], pixels: float) -> int:
    """Of how many classes one is named below the axis, so that no two names touch."""
    return math.ceil(len(labels) * (LETTER * max(map(len, labels)) + GAP) / pixels)
