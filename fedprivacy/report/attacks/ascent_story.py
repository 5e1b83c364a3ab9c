"""The signal of gradient ascent: a member's raised loss, which training corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.attack import Attack, Story
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import levels
from fedprivacy.report.blocks import Section, Table
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Series
from fedprivacy.report.charts.axis import categories
from fedprivacy.report.charts.looks import Look

MOST = 9  # panels in all
THIN = 0.9  # pixels of the lines of other runs
LOOKS: dict[str, Look] = {"Member": (svg.LOCAL, "o", "-"), "Non-member": (svg.NONE, "s", "--")}
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
class AttackStories:
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
    private = any(story.attack.epsilon is not None for story in every)
    caption = " ".join(
        [
            EXPLAINED,
            *([OTHERS] if any(story.others for story in every) else []),
            *([LEVELS, levels.terms(document)] if document.several and private else []),
        ]
    )
    terms = levels.terms(document)
    chart = Chart(
        "story",
        "Line charts of the loss of a typical member and non-member before, during and after an ascent",
        caption,
        tuple(_panel(document, story) for story in every),
        tables=tuple(_table(story, terms if story.attack.epsilon is not None else "") for story in every),
    )
    return [Section("ascent", "How an ascent gives a member away", [chart.picture])]


def _stories(document: ReplayDocument) -> list[AttackStories]:
    shown = dict.fromkeys([document.levels[-1], document.levels[0]]) if document.levels else ()
    attacks = [
        attack for level in shown for attack in document.attacks if attack.level == level and attack.stories
    ]
    return [
        AttackStories(
            attack,
            levels.label(document, attack),
            attack.stories[0],
            tuple(other for other in attack.stories[1:] if other.moments == attack.stories[0].moments),
        )
        for attack in attacks[:MOST]
    ]


def _table(drawn_story: AttackStories, terms: str) -> Table:
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


def _panel(document: ReplayDocument, story: AttackStories) -> Lines:
    """The losses of the first run with their last values, and thin lines for those of the others."""
    of_first = " of the first run" if story.others else ""
    moments = story.first.moments
    every = [
        loss for run in (story.first, *story.others) for losses in run.records.values() for loss in losses
    ]
    low, high = min(0.0, *every), max(every)
    series = []
    for kind, losses in story.first.records.items():
        label, end = f"A typical {kind.lower()}{of_first}", words.number(losses[-1], 3)
        series.append(Series(LOOKS[kind], label, _points(losses), end=end))
    for kind, (color, _, line) in LOOKS.items():
        label = f"Of the other runs: {kind.lower()}s"
        runs = [run.records[kind] for run in story.others if kind in run.records]
        series += [Series((color, "", line), label, _points(losses), width=THIN) for losses in runs]
    level = words.capital(levels.name(story.attack.level)) if document.several else ""
    return Lines(
        Axis(
            ticks=categories([words.capital(moment) for moment in moments]),
            limits=(-0.15, len(moments) - 0.85),
            says=lambda place: moments[round(place)],
        ),
        Axis(
            level,
            lambda loss: words.number(loss, 3),
            limits=(low, 1.08 * high if high > low else low + 1.0),
        ),
        tuple(series),
        title=story.attack.name,
    )


def _points(losses: Sequence[float]) -> tuple[Point, ...]:
    return tuple(Point(float(place), loss) for place, loss in enumerate(losses))
