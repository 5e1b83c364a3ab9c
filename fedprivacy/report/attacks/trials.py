"""Attacks in trials: the success of each beside chance and bound, as a picture and a table."""

from __future__ import annotations

from fedprivacy.documents.attack import Level, Measure
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.trial import TrialResult
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import figures, levels, rebuilt, trial_bounds
from fedprivacy.report.blocks import Block, Details, Entry, Finding, Picture, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Row, Series
from fedprivacy.report.charts.looks import Look

HEADING = "Attacks that repeat an experiment"
ALLOWED = "The most that the guarantee allows"
MOST_IN_WORDS = 4  # results
LOOK: Look = (svg.LOCAL, "o", "")
CHANCE: Look = (svg.NONE, "x", "")
BOUND: Look = (svg.CENTRAL, "|", "")
CAPTION = (
    "How often each attack succeeds, with its 95 % interval, beside {baseline} (crosses). The upright blue "
    "line is the most that the guarantee against that seat allows; where none is drawn there is no guarantee."
)


def sections(document: ReplayDocument) -> list[Section]:
    """All attacks in trials, and what bounds them; alone, their picture is at the top of the page."""
    if not document.trials:
        return []
    blocks: list[Block | Details] = [table(document), *map(Text, trial_bounds.texts(document))]
    if document.attacks:
        blocks.insert(0, picture(document))
    pictures = rebuilt.public_blocks(document.trials)
    return [
        *([Section("rebuilt", rebuilt.HEADING, pictures, folded=False)] if pictures else []),
        Section("trials", HEADING, blocks),
    ]


def picture(document: ReplayDocument) -> Picture:
    """A row for each attack at each level of privacy."""
    rows, measured, chances, bounds = [], [], [], []
    for place, trial in enumerate(document.trials):
        rate = trial.success
        at = float(place)
        rows.append(Row(label(document, trial), _described(trial)))
        measured.append(Point(rate.value, at, (rate.low, rate.high)))
        chances.append(Point(trial.chance, at))
        if trial.bound.success is not None:
            bounds.append(Point(trial.bound.success, at))
    panel = Dots(
        Axis("share of trials", figures.percent, tick_text=figures.percent, limits=(0.0, 1.0)),
        tuple(rows),
        (
            Series(LOOK, "Measured", tuple(measured)),
            Series(CHANCE, words.capital(baseline(document)), tuple(chances)),
            Series(BOUND, ALLOWED, tuple(bounds)),
        ),
        missing="no guarantee",
    )
    terms = levels.terms(document)
    text = f"{CAPTION.format(baseline=baseline(document))} {terms}".strip()
    alt = f"Rate of success of each attack with its 95 % interval, {baseline(document)} and bound"
    return Chart("trials", alt, text, (panel,), terms=terms).picture


def table(document: ReplayDocument) -> Table:
    """A row for each attack: its rate of success, chance, bound, and further figures."""
    names = list(dict.fromkeys(name for trial in document.trials for name in trial.figures))
    numbers = list(dict.fromkeys(name for trial in document.trials for name in trial.numbers))
    rows = [
        (
            Entry(label(document, trial), f"{_described(trial)}: {trial.means}"),
            _measure(trial.success, rate=True),
            figures.percent(trial.chance),
            figures.at_most(trial.bound.success, rate=True),
            *(_further(trial, name) for name in names),
            *(f"{trial.numbers[name]:.1f}" if name in trial.numbers else "—" for name in numbers),
            words.counted(sum(run["trials"] for run in trial.runs), "trial")
            + (", scored again" if any(run.get("scored_again") for run in trial.runs) else ""),
        )
        for trial in document.trials
    ]
    further = map(words.capital, [*names, *numbers])
    head = ("Attack", "Success", words.capital(baseline(document)), "Allowed", *further, "Trials")
    caption = f"Below each figure its 95 % interval. {levels.terms(document)}".strip()
    return Table(caption, head, rows, stacked=True)


def baseline(document: ReplayDocument) -> str:
    """The noun for what attacks in trials are compared with."""
    kinds = dict.fromkeys("guessing" if trial.without is None else "no attack" for trial in document.trials)
    return " or ".join(kinds)


def label(document: ReplayDocument, trial: TrialResult) -> str:
    """The name of an attack, with its arm and its privacy level where there are several."""
    arm = f"{trial.arm}, " if trial.arm else ""
    several = document.several or bool(document.arms)
    return f"{arm}{trial.name}, {levels.name(trial.level)}" if several else f"{arm}{trial.name}"


def sentence(document: ReplayDocument) -> str:
    """The largest success of an attack beside that at the most privacy, without a full stop."""
    ranked = ranking(document)
    first, last = ranked[0], next(trial for trial in reversed(ranked) if trial.name == ranked[0].name)
    several = document.several or bool(document.arms)
    beginning = f"{where(first)} " if several else ""
    text = words.capital(f"{beginning}{first.means} in {figures.percent(first.success.value)} of trials")
    if last is first:
        return f"{text}; {first.comparison} in {figures.percent(first.chance)}"
    return f"{text}; {where(last)} in {figures.percent(last.success.value)}"


def ranking(document: ReplayDocument) -> list[TrialResult]:
    """All attacks in trials, the one furthest above guessing first."""
    return sorted(document.trials, key=lambda trial: trial.chance - trial.success.value)


def finding(document: ReplayDocument) -> Finding:
    """The result of each attack at its ends of privacy, beside what is allowed."""
    verdict = document.judged
    agreed = verdict.words if verdict and not verdict.refuted else ""
    # The picture above has every result; of many a text would be a wall.
    texts = sentences(document) if len(document.trials) <= MOST_IN_WORDS else [f"{sentence(document)}."]
    return Finding(" ".join(texts), levels.terms(document), "What is guaranteed", agreed)


def sentences(document: ReplayDocument) -> list[str]:
    """One sentence for each attack: success at every level of privacy, and the bound."""
    texts = []
    for name in dict.fromkeys(trial.name for trial in document.trials):
        group = [trial for trial in document.trials if trial.name == name]
        first, same = group[0], len({trial.chance for trial in group}) == 1
        parts = [
            f"{where(trial)} in {figures.percent(trial.success.value)} of trials "
            f"({figures.ends(trial.success, rate=True)}; {_allowed(trial)}"
            + ("" if same else f"; {trial.comparison} in {figures.percent(trial.chance)}")
            + ")"
            for trial in group
        ]
        compared = f"; {first.comparison} in {figures.percent(first.chance)}" if same else ""
        texts.append(f"{words.capital(first.means)} {words.listed(parts)}{compared}.")
    return texts


def above_guessing(trial: TrialResult) -> bool:
    """Whether the attack succeeds more often than guessing: its interval lies above chance."""
    without = trial.chance if trial.without is None else trial.without.success.high
    return trial.success.low > without


def where(trial: TrialResult) -> str:
    """The arm and the privacy level of an attack, as part of a sentence."""
    level: Level = trial.level
    if not trial.arm:
        return levels.at(level)
    return f"against {trial.arm}" + (f" {levels.at(level)}" if isinstance(level, float) else "")


def _allowed(trial: TrialResult) -> str:
    most = trial.bound.success
    if most is None:
        return "no guarantee"
    condition = f", {trial.bound.provided}" if trial.bound.provided else ""
    return f"at most {figures.at_most(most, rate=True)} allowed{condition}"


def _described(trial: TrialResult) -> str:
    return f"{figures.kind_label(trial.attack)}, by {figures.seat(trial.seat)}"


def _measure(measure: Measure, *, rate: bool = False) -> Value:
    value = figures.percent(measure.value) if rate else figures.share(measure.value)
    return Entry(value, figures.ends(measure, rate=rate))


def _further(trial: TrialResult, name: str) -> Value:
    measure = trial.figures.get(name)
    if measure is None:
        return "—"
    most, least = trial.bound.figures.get(name), trial.bound.floors.get(name)
    parts = [figures.ends(measure)]
    if trial.without is not None and (before := trial.without.figures.get(name)) is not None:
        parts.append(f"without the attack {figures.share(before.value)} ({figures.ends(before)})")
    parts += [] if most is None else [f"allowed {figures.at_most(most)}"]
    parts += [] if least is None else [f"at least {figures.at_least(least)} guaranteed"]
    return Entry(figures.share(measure.value), "; ".join(parts))
