"""All attacks in one picture: each AUC with its interval, beside the most that its guarantee allows."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fedprivacy.report import marks, svg, words
from fedprivacy.report.attacks import figures, keys
from fedprivacy.report.attacks.parts import Attack
from fedprivacy.report.blocks import Picture, Table

ROW, BELOW, GUESSING = 46.0, 54.0, 0.5
LOOKS = {"server": (svg.LOCAL, "o"), "participant": (svg.DISTRIBUTED, "D")}
OTHER = (svg.SECOND, "v")
NAME = {False: 34, True: 40}  # characters of an attack's name, wide and narrow


def picture(seats: dict[str, list[Attack]]) -> Picture:
    """A row for each attack, those of one seat together; the bound is an upright line."""
    attacks = [one for own in seats.values() for one in own]
    title = "AUC of each attack with its 95 % interval and its bound"
    said = " ".join(map(_said, attacks))
    rows = [
        (
            one.name,
            words.capital(figures.seat(one.seat)),
            figures.share(one.auc.value),
            figures.ends(one.auc),
            figures.at_most(one.bound.auc),
        )
        for one in attacks
    ]
    head = ("Attack", "Seat", "AUC", "95 % interval", "Bound")
    bounded = any(one.bound.auc is not None for one in attacks)
    return Picture(
        wide=_draw(attacks, seats, title, said, narrow=False),
        narrow=_draw(attacks, seats, title, said, narrow=True),
        caption="How well each attack tells members from non-members: AUC with its 95 % interval. "
        "Guessing gives 0.5 (thin line), 1 is certainty. "
        + (
            "The upright blue line is the most that the guarantee against that seat allows; where none is "
            "drawn there is no guarantee."
            if bounded
            else "No bound is drawn, since nothing is guaranteed against these seats."
        ),
        tables=[Table("AUC of each attack.", head, rows, numeric=frozenset({2, 3, 4}))],
    )


def _said(one: Attack) -> str:
    return (
        f"{one.name}, seat of {figures.seat(one.seat)}: {figures.share(one.auc.value)} "
        f"({figures.ends(one.auc)}), bound {figures.at_most(one.bound.auc)}."
    )


def _draw(
    attacks: Sequence[Attack], seats: dict[str, list[Attack]], title: str, said: str, *, narrow: bool
) -> str:
    entries = []
    for seat in seats:
        color, marker = _look(seat)
        entries.append(keys.Entry(f"From the seat of {figures.seat(seat)}", color, "-", marker))
    if any(one.bound.auc is not None for one in attacks):
        entries.append(keys.Entry("The most that the guarantee allows", keys.ALLOWED, "-", "|"))
    top = keys.LINE * len(entries) + 16
    height = top + ROW * len(attacks) + BELOW
    with svg.style():
        drawn = svg.figure(360.0 if narrow else 920.0, height)
        left = 14.0 if narrow else 280.0
        axes = svg.place(drawn, left, top, 46, BELOW)
        low = min(GUESSING, *(one.auc.low for one in attacks))
        axes.set_xlim(max(0.0, low - 0.03), 1.0)
        axes.set_ylim(len(attacks) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.grid(visible=not narrow, axis="x")
        axes.yaxis.set_major_locator(NullLocator())
        axes.xaxis.set_major_locator(FixedLocator(_ticks(axes.get_xlim()[0])))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(round(x, 6))))
        axes.set_xlabel("AUC (0.5: guessing, 1: certain)", labelpad=6)
        for place, one in enumerate(attacks):
            _row(axes, place, one, narrow=narrow)
            y = 1 - (top + ROW * (place + (0.14 if narrow else 0.34))) / height
            drawn.text(
                4 / drawn.get_size_inches()[0] / 72, y, marks.short(one.name, NAME[narrow]),
                va="center", color=svg.INK, fontsize=13, fontweight="bold",
            )  # fmt: skip
            if not narrow:
                drawn.text(
                    4 / drawn.get_size_inches()[0] / 72, y - 17 / height,
                    marks.short(figures.described(one), 44), va="center", color=svg.MUTED, fontsize=12,
                )  # fmt: skip
        keys.write(drawn, entries, 4, 2)
        return svg.write(drawn, f"overview-{'narrow' if narrow else 'wide'}", title, said)


def _row(axes: Axes, place: int, one: Attack, *, narrow: bool) -> None:
    color, marker = _look(one.seat)
    y = place + (0.2 if narrow else 0.0)
    ends = [one.auc.low, one.auc.high]
    # On a phone the names stand between the rows, and no line runs through them.
    axes.vlines(GUESSING, place - (0.1 if narrow else 0.5), place + 0.5, color=svg.MUTED, linewidth=1.25)
    axes.plot(ends, [y, y], color=color, linewidth=2.25, solid_capstyle="butt")
    axes.plot(ends, [y, y], color=color, linestyle="", marker="|", markersize=9, markeredgewidth=1.75)
    axes.plot(
        [one.auc.value], [y], color=color, linestyle="", marker=marker, markersize=10,
        markeredgecolor=svg.PAPER, clip_on=False, zorder=3,
    )  # fmt: skip
    if one.bound.auc is not None:
        axes.plot(
            [one.bound.auc], [y], color=keys.ALLOWED, linestyle="", marker="|", markersize=24,
            markeredgewidth=2.5, clip_on=False, zorder=4,
        )  # fmt: skip
    axes.annotate(
        figures.share(one.auc.value), xy=(1, y), xycoords=("axes fraction", "data"), xytext=(10, 0),
        textcoords="offset pixels", va="center", color=color, fontsize=13, fontweight="bold",
        annotation_clip=False,
    )  # fmt: skip


def _ticks(low: float) -> list[float]:
    """Guessing and certainty, and some between and below."""
    below = [tick for tick in (0.0, 0.25) if tick >= low]
    return [*below, 0.5, 0.75, 1.0] if below else [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def _look(seat: str) -> tuple[str, str]:
    return LOOKS.get(seat, OTHER)
