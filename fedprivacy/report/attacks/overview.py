"""All attacks in one picture: each AUC with its interval, beside the most that its guarantee allows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fedprivacy.documents.attack import Attack
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import marks, svg, words
from fedprivacy.report.attacks import figures, keys, levels
from fedprivacy.report.blocks import Picture, Table

ROW, CLOSE, HEAD, BELOW = 46.0, 26.0, 36.0, 54.0  # pixels of a row, alone and in a group, and of its heading
LOOKS = {"server": (svg.LOCAL, "o"), "participant": (svg.DISTRIBUTED, "D")}
OTHER = (svg.SECOND, "v")
NAME = {False: 34, True: 40}  # characters of an attack's name, wide and narrow
MORE = 17.0  # pixels of a heading's next line
WRAP = {False: 38, True: 46}  # characters of a heading's line, wide and narrow
LEFT = {False: 280.0, True: 14.0}  # pixels left of the axes, wide and narrow
BOLD: dict[str, Any] = {"color": svg.INK, "fontsize": 13, "fontweight": "bold"}
PLAIN: dict[str, Any] = {"color": svg.INK, "fontsize": 13}
MUTED: dict[str, Any] = {"color": svg.MUTED, "fontsize": 12}


@dataclass(frozen=True)
class Row:
    """An attack, or the heading of those below it where there is none; lengths are pixels.

    Args:
        top: From the top of the axes.
        height: To the next row.
        attack: Whose area is drawn.
        texts: What stands left of it (on a phone above it): text, pixels down from `top`, font.
    """

    top: float
    height: float
    attack: Attack | None
    texts: Sequence[tuple[str, float, dict[str, Any]]]


def picture(document: ReplayDocument) -> Picture:
    """A row for each attack, those of one seat (and one level) together; the bound is an upright line."""
    attacks = [attack for group in document.cells.values() for attack in group]
    title = "AUC of each attack with its 95 % interval and its bound"
    alt = " ".join(_sentence_of(document, attack) for attack in attacks)
    rows = [
        (
            levels.label(document, attack),
            words.capital(figures.seat(attack.seat)),
            figures.share(attack.auc.value),
            figures.ends(attack.auc),
            figures.at_most(attack.bound.auc),
        )
        for attack in attacks
    ]
    head = ("Attack", "Seat", "AUC", "95 % interval", "Bound")
    bounded = any(attack.bound.auc is not None for attack in attacks)
    terms = levels.terms(document)
    caption = " ".join(
        [
            "How well each attack tells members from non-members: AUC with its 95 % interval. Guessing gives "
            "0.5 (thin line), 1 is certainty.",
            "The upright blue line is the most that the guarantee against that seat allows; where none is "
            "drawn there is no guarantee."
            if bounded
            else "No bound is drawn, since nothing is guaranteed against these seats.",
        ]
    )
    return Picture(
        draw=partial(_draw, document, attacks, title, alt),
        caption=f"{caption} {terms}".strip(),
        tables=[Table(f"AUC of each attack. {terms}".strip(), head, rows, numeric=frozenset({2, 3, 4}))],
    )


def _sentence_of(document: ReplayDocument, attack: Attack) -> str:
    return (
        f"{levels.label(document, attack)}, seat of {figures.seat(attack.seat)}: "
        f"{figures.share(attack.auc.value)} "
        f"({figures.ends(attack.auc)}), bound {figures.at_most(attack.bound.auc)}."
    )


def _draw(document: ReplayDocument, attacks: Sequence[Attack], title: str, alt: str, *, narrow: bool) -> str:
    entries = []
    for seat in document.seats:
        color, marker = _look(seat)
        entries.append(keys.Entry(f"From the seat of {figures.seat(seat)}", color, "-", marker))
    if any(attack.bound.auc is not None for attack in attacks):
        entries.append(keys.Entry("The most that the guarantee allows", keys.ALLOWED, "-", "|"))
    top = keys.LINE * len(entries) + 16
    rows = list(_rows(document, narrow=narrow))
    tall = sum(row.height for row in rows)
    height, width = top + tall + BELOW, 360.0 if narrow else 920.0
    with svg.style():
        drawn = svg.figure(width, height)
        axes = svg.place(drawn, LEFT[narrow], top, 46, BELOW)
        low = min(figures.GUESSING, *(attack.auc.low for attack in attacks))
        axes.set_xlim(max(0.0, low - 0.03), 1.0)
        axes.set_ylim(tall, 0)  # in pixels
        axes.grid(visible=False, axis="y")
        axes.grid(visible=not narrow, axis="x")
        axes.yaxis.set_major_locator(NullLocator())
        axes.xaxis.set_major_locator(FixedLocator(_ticks(axes.get_xlim()[0])))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(round(x, 6))))
        axes.set_xlabel("AUC (0.5: guessing, 1: certain)", labelpad=6)
        for row in rows:
            if row.attack is not None:
                _row(axes, row, row.attack, narrow=narrow)
            for text, down, font in row.texts:
                y = 1 - (top + row.top + down) / height
                drawn.text(4 / width, y, text, va="center", **font)
        keys.write(drawn, entries, 4, 2)
        return svg.write(drawn, f"overview-{'narrow' if narrow else 'wide'}", title, alt)


def _rows(document: ReplayDocument, *, narrow: bool) -> Iterator[Row]:
    """The rows from the top down; where several levels were played each level of a seat has a heading."""
    top = 0.0
    for (seat, level), group in document.cells.items():
        if document.several:
            heading_lines = textwrap.wrap(
                f"{words.capital(figures.seat(seat))}, {levels.at(level)}", WRAP[narrow]
            )
            height = HEAD + MORE * (len(heading_lines) - 1)
            lines = [(line, HEAD - 12 + MORE * place, BOLD) for place, line in enumerate(heading_lines)]
            yield Row(top, height, None, lines)
            top += height
        for attack in group:
            font = PLAIN if document.several else BOLD
            texts = [(marks.short(attack.name, NAME[narrow]), ROW * (0.14 if narrow else 0.34), font)]
            height = ROW
            if document.several and not narrow:
                height, texts = CLOSE, [(marks.short(attack.name, NAME[narrow]), CLOSE / 2, PLAIN)]
            elif not narrow:
                texts.append((marks.short(figures.described(attack), 44), ROW * 0.34 + 17, MUTED))
            yield Row(top, height, attack, texts)
            top += height


def _row(axes: Axes, row: Row, attack: Attack, *, narrow: bool) -> None:
    color, marker = _look(attack.seat)
    # On a phone the names stand between the rows, and no line runs through them.
    y = row.top + row.height * (0.7 if narrow else 0.5)
    above = row.top + row.height * (0.4 if narrow else 0.0)
    ends = [attack.auc.low, attack.auc.high]
    axes.vlines(figures.GUESSING, above, row.top + row.height, color=svg.MUTED, linewidth=1.25)
    axes.plot(ends, [y, y], color=color, linewidth=2.25, solid_capstyle="butt")
    axes.plot(ends, [y, y], color=color, linestyle="", marker="|", markersize=9, markeredgewidth=1.75)
    axes.plot(
        [attack.auc.value], [y], color=color, linestyle="", marker=marker, markersize=10,
        markeredgecolor=svg.PAPER, clip_on=False, zorder=3,
    )  # fmt: skip
    if attack.bound.auc is not None:
        axes.plot(
            [attack.bound.auc], [y], color=keys.ALLOWED, linestyle="", marker="|", markersize=24,
            markeredgewidth=2.5, clip_on=False, zorder=4,
        )  # fmt: skip
    axes.annotate(
        figures.share(attack.auc.value), xy=(1, y), xycoords=("axes fraction", "data"), xytext=(10, 0),
        textcoords="offset pixels", va="center", color=color, fontsize=13, fontweight="bold",
        annotation_clip=False,
    )  # fmt: skip


def _ticks(low: float) -> list[float]:
    """Guessing and certainty, and some between and below."""
    below = [tick for tick in (0.0, 0.25) if tick >= low]
    return [*below, 0.5, 0.75, 1.0] if below else [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def _look(seat: str) -> tuple[str, str]:
    return LOOKS.get(seat, OTHER)
