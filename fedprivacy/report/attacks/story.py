"""The signal of gradient ascent: a member's raised loss, which training corrects."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from fedprivacy.documents.attack import Attack, Story
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import keys, levels
from fedprivacy.report.blocks import Picture, Section, Table

ACROSS, MOST = 3, 9  # panels beside each other, and in all
LEVEL, THIN = 17.0, 0.9  # pixels of the line that names a level of privacy; the width of other runs' lines
TOP, HEIGHT, BELOW = 34.0, 210.0, 62.0  # pixels above, of, and below the axes of a panel
LOOKS = {"Member": (keys.MEMBERS, "o", "-"), "Non-member": (keys.OTHERS, "s", "--")}
EXPLAINED = (
    "Gradient ascent explained: the attacker changes the model so that its loss on one record rises, and "
    "sends it to the victim, which trains as ever. Training brings the loss down again where the record is "
    "among the victim's own (a member); else it stays up, or falls only as far as similar records pull it "
    "down. Whoever sees the update sees the difference. Drawn are one typical member and one typical "
    "non-member: those whose loss recovered by the middle amount of their kind."
)
OTHERS = "The thin lines are the typical records of the other runs, each trained with a seed of its own."
LEVELS = "Shown are the attacks on the run of the least and on that of the most privacy."


@dataclass(frozen=True)
class Told:
    """The stories of one attack: that of the first run, and those of the others beside it."""

    attack: Attack
    label: str
    first: Story
    others: tuple[Story, ...]


def sections(document: ReplayDocument) -> list[Section]:
    """A panel for each ascent (at the least and the most privacy, where there are levels of it)."""
    every = _stories(document)
    if not every:
        return []
    title = "Line charts of the loss of a typical member and non-member before, during and after an ascent"
    alt = " ".join(map(_sentence_of, every))
    private = any(story.attack.epsilon is not None for story in every)
    caption = " ".join(
        [
            EXPLAINED,
            *([OTHERS] if any(story.others for story in every) else []),
            *([LEVELS, levels.terms(document)] if document.several and private else []),
        ]
    )
    terms = levels.terms(document)
    picture = Picture(
        draw=partial(_draw, document, every, title, alt),
        caption=caption,
        tables=[_table(story, terms if story.attack.epsilon is not None else "") for story in every],
    )
    return [Section("ascent", "How an ascent gives a member away", [picture])]


def _stories(document: ReplayDocument) -> list[Told]:
    shown = dict.fromkeys([document.levels[-1], document.levels[0]]) if document.levels else ()
    attacks = [
        attack for level in shown for attack in document.attacks if attack.level == level and attack.stories
    ]
    return [
        Told(
            attack,
            levels.label(document, attack),
            attack.stories[0],
            tuple(other for other in attack.stories[1:] if other.moments == attack.stories[0].moments),
        )
        for attack in attacks[:MOST]
    ]


def _table(drawn_story: Told, terms: str) -> Table:
    runs = (drawn_story.first, *drawn_story.others)
    rows = [
        (
            kind if len(runs) == 1 else f"{kind}, run {number} of {len(runs)}",
            *(words.number(loss, 3) for loss in story.records[kind]),
        )
        for number, story in enumerate(runs, start=1)
        for kind in story.records
    ]
    head = ("", *map(words.capital, drawn_story.first.moments))
    caption = f"{drawn_story.label}: the loss (cross-entropy) of each record. {terms}".strip()
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))


def _sentence_of(story: Told) -> str:
    each = (
        f"{kind}: {', '.join(words.number(loss, 3) for loss in losses)}"
        for kind, losses in story.first.records.items()
    )
    return f"{story.label}: the loss {', '.join(story.first.moments)}. {'; '.join(each)}."


def _draw(document: ReplayDocument, every: Sequence[Told], title: str, alt: str, *, narrow: bool) -> str:
    across, width = (1, 360.0) if narrow else (min(ACROSS, len(every)), 920.0)
    above = TOP + LEVEL * document.several
    each, tall = width / across if across > 1 else min(width, 460.0), above + HEIGHT + BELOW
    entries = [
        keys.Entry(f"A typical {kind.lower()}", color, line, marker)
        for kind, (color, marker, line) in LOOKS.items()
    ]
    if any(story.others for story in every):
        entries = [
            *(replace(entry, label=f"{entry.label} of the first run") for entry in entries),
            *(keys.Entry(f"Of the other runs: {kind.lower()}s", color, line, width=THIN)
              for kind, (color, _, line) in LOOKS.items()),
        ]  # fmt: skip
    head = len(entries) * keys.LINE + 12
    height = head + tall * math.ceil(len(every) / across)
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        for place, story in enumerate(every):
            row, column = divmod(place, across)
            top, left = head + tall * row + above, each * column
            axes = svg.place(drawn, left + 40, top, width - left - each + 58, height - top - HEIGHT)
            _panel(axes, story)
            name = marks.short(story.attack.name, 28)
            if document.several:
                plots.heading(axes, words.capital(levels.name(story.attack.level)), shift=-36)
            plots.heading(axes, name, shift=-36, up=LEVEL * document.several, color=svg.INK, bold=True)
        return svg.write(drawn, f"story-{'narrow' if narrow else 'wide'}", title, alt)


def _panel(axes: Axes, drawn_story: Told) -> None:
    story = drawn_story.first
    places = range(len(story.moments))
    runs = (story, *drawn_story.others)
    every = [loss for run in runs for losses in run.records.values() for loss in losses]
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
        for other in drawn_story.others:
            axes.plot(list(places), other.records[kind], color=color, linestyle=line, linewidth=THIN)
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
