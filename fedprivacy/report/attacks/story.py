"""What gives a member away under gradient ascent: its loss is pushed up, and training brings it down."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import keys
from fedprivacy.report.attacks.parts import Attack, Story
from fedprivacy.report.blocks import Picture, Section, Table

ACROSS = 3  # panels beside each other
TOP, HEIGHT, BELOW = 34.0, 210.0, 62.0  # pixels above, of, and below the axes of a panel
LOOKS = {"Member": (keys.MEMBERS, "o", "-"), "Non-member": (keys.OTHERS, "s", "--")}
EXPLAINED = (
    "Gradient ascent explained: the attacker changes the model so that its loss on one record rises, and "
    "sends it to the victim, which trains as ever. Training brings the loss down again where the record is "
    "among the victim's own (a member); else it stays up, or falls only as far as similar records pull it "
    "down. Whoever sees the update sees the difference. Drawn are one typical member and one typical "
    "non-member: those whose loss recovered by the middle amount of their kind."
)


def sections(attacks: Sequence[Attack]) -> list[Section]:
    """A panel for each ascent; no section where there was none."""
    told = [(one.name, one.story) for one in attacks if one.story]
    if not told:
        return []
    title = "Line charts of the loss of a typical member and non-member before, during and after an ascent"
    said = " ".join(map(_said, told))
    picture = Picture(
        wide=_draw(told, title, said, ACROSS, 920.0),
        narrow=_draw(told, title, said, 1, 360.0),
        caption=EXPLAINED,
        tables=[
            Table(
                f"{name}: the loss (cross-entropy) of each record.",
                ("", *map(words.capital, story.moments)),
                [
                    (kind, *(words.number(loss, 3) for loss in losses))
                    for kind, losses in story.records.items()
                ],
                numeric=frozenset(range(1, 1 + len(story.moments))),
            )
            for name, story in told
        ],
    )
    return [Section("ascent", "How an ascent gives a member away", [picture])]


def _said(told: tuple[str, Story]) -> str:
    name, story = told
    each = (
        f"{kind}: {', '.join(words.number(loss, 3) for loss in losses)}"
        for kind, losses in story.records.items()
    )
    return f"{name}: the loss {', '.join(story.moments)}. {'; '.join(each)}."


def _draw(told: Sequence[tuple[str, Story]], title: str, said: str, across: int, width: float) -> str:
    across = min(across, len(told))
    each, tall = width / across if across > 1 else min(width, 460.0), TOP + HEIGHT + BELOW
    head = 2 * keys.LINE + 12
    height = head + tall * math.ceil(len(told) / across)
    with svg.style():
        drawn = svg.figure(width, height)
        entries = [
            keys.Entry(f"A typical {kind.lower()}", color, line, marker)
            for kind, (color, marker, line) in LOOKS.items()
        ]
        keys.write(drawn, entries, 4, 2)
        for place, (name, story) in enumerate(told):
            row, column = divmod(place, across)
            top, left = head + tall * row + TOP, each * column
            axes = svg.place(drawn, left + 40, top, width - left - each + 58, height - top - HEIGHT)
            _panel(drawn, axes, story)
            plots.heading(axes, marks.short(name, 28), shift=-36, color=svg.INK, bold=True)
        return svg.write(drawn, f"story-{'narrow' if width < 600 else 'wide'}", title, said)


def _panel(drawn: Figure, axes: Axes, story: Story) -> None:
    places = range(len(story.moments))
    every = [loss for losses in story.records.values() for loss in losses]
    low, high = min(0.0, *every), max(every)
    axes.set_ylim(low, 1.08 * high if high > low else low + 1.0)
    axes.set_xlim(-0.15, len(places) - 0.85)
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: textwrap.fill(words.capital(marks.short(story.moments[round(x)], 32)), 12))
    )
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(float(f"{y:.4g}"))))
    for kind, losses in story.records.items():
        color, marker, line = LOOKS[kind]
        axes.plot(
            list(places), losses, color=color, linestyle=line, marker=marker,
            markeredgecolor=svg.PAPER, clip_on=False,
        )  # fmt: skip
    ends = [(losses[-1], plots.LINE, kind) for kind, losses in story.records.items()]
    for y, _, kind in plots.spread(axes, ends):
        axes.annotate(
            words.number(story.records[kind][-1], 3), xy=(1, 0), xycoords="axes fraction", xytext=(8, y),
            textcoords="offset pixels", va="center_baseline", annotation_clip=False,
            color=LOOKS[kind][0], fontsize=13, fontweight="bold",
        )  # fmt: skip
