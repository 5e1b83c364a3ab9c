"""The attacks in rows: their figures with intervals, the bound, and the price."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack, Measure
from fedprivacy.report.blocks import Block, Details, Entry, Facts, Group, Section, Table, Text, Value

MOST_CLASSES = 400


def sections(document: ReplayDocument) -> list[Section]:
    """The table of all attacks; folded the scores, the empirical epsilon and the classes."""
    attacks = [one for own in document.cells.values() for one in own]
    if not attacks:
        return []
    blocks: list[Block | Details] = [figured(document), _setting(document, attacks)]
    proved = [(levels.label(document, one), found) for one in attacks if (found := _empirical(one))]
    if proved:
        blocks.append(Details("The epsilon that each attack proves", [Facts(proved)]))
    scores = [
        _scores(document, scored)
        for level in document.levels
        if (scored := [one for one in attacks if one.level == level and (one.scores or one.blind)])
    ]
    if scores:
        blocks.append(Details("Every score by itself, and a look at the record alone", scores))
    classed = [one for one in attacks if one.per_class]
    if classed:
        blocks.append(Details("Each class by itself", [_classes(document, one) for one in classed]))
    return [Section("figures", "Every attack in figures", blocks)]


def figured(document: ReplayDocument) -> Table:
    """A row for each attack, those of one seat and level together."""
    rows: list[Sequence[Value] | Group] = []
    for (seat, level), attacks in document.cells.items():
        where = f", {levels.at(level)}" if document.several else ""
        rows.append(Group(f"From the seat of {figures.seat(seat)}{where}", _bound(attacks[0])))
        rows += [_row(one) for one in attacks]
    rates = [f"TPR at {figures.at(rate)}" for rate in figures.RATES]
    head = ("Attack", "AUC", "Balanced accuracy", *rates, "Advantage")
    return Table(
        "Below each figure its 95 % interval. All are measured on targets that neither a score nor a "
        f"threshold was chosen on. A TPR stands only where at least 5/FPR non-members were scored. "
        f"{_with(figures.covered(document.attacks), levels.terms(document))}",
        head,
        rows,
        stacked=True,
    )


def _with(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _row(one: Attack) -> Sequence[Value]:
    return (
        Entry(one.name, figures.described(one)),
        _measure(one.auc),
        _measure(one.balanced_accuracy, rate=True),
        *(_tpr(one, rate) for rate in figures.RATES),
        _measure(one.advantage),
    )


def _tpr(one: Attack, rate: str) -> Value:
    found = one.tpr_at_fpr.get(rate)
    return Entry("—", figures.TOO_FEW) if found is None else _measure(found, rate=True)


def _measure(one: Measure | None, *, rate: bool = False) -> Value:
    if one is None:
        return "—"
    return Entry(
        figures.percent(one.value) if rate else figures.share(one.value), figures.ends(one, rate=rate)
    )


def _bound(one: Attack) -> str:
    bound = one.bound
    if bound.auc is None:
        return "no guarantee, hence no bound"
    rates = [
        f"TPR at {figures.at(rate)} {figures.at_most(allowed, rate=True)}"
        for rate in figures.RATES
        if (allowed := figures.allowed(bound, rate)) is not None
    ]
    return (
        f"the guarantee allows at most AUC {figures.at_most(bound.auc)}, balanced accuracy "
        f"{figures.at_most(bound.balanced_accuracy, rate=True)}, {', '.join(rates)}, advantage "
        f"{figures.at_most(bound.advantage)}"
    )


def _setting(document: ReplayDocument, attacks: Sequence[Attack]) -> Table:
    """What each attack had to work with, and what it cost."""
    rows = [
        (
            levels.label(document, one),
            words.capital(figures.seat(one.seat).removeprefix("the ").removeprefix("a ").removeprefix("an ")),
            "yes" if one.isolating else "no",
            "—" if one.targets_per_round is None else f"{one.targets_per_round:,}",
            "—" if one.rounds is None else Entry(f"{one.rounds:,}", _observed(one)),
            f"{one.members or 0:,} and {one.nonmembers or 0:,}",
            f"{one.targets_lost:,}",
            words.accuracy(one.model_accuracy.before),
            words.accuracy(one.model_accuracy.after),
        )
        for one in attacks
    ]
    head = (
        "Attack", "Seat", "Isolating", "Targets a round", "Rounds", "Members and non-members",
        "Targets lost", "Model accuracy before", "after",
    )  # fmt: skip
    return Table(
        _with(
            "What each attack had, and what it did to the model. Targets are lost where the victim refuses "
            "to answer any more. Accuracy is that of the attacked model on held-out records; training goes "
            "on while it is attacked.",
            levels.terms(document),
        ),
        head,
        rows,
        stacked=True,
    )


def _observed(one: Attack) -> str:
    return f"of training: {figures.observed(one.observed)}" if one.observed else ""


def _scores(document: ReplayDocument, attacks: Sequence[Attack]) -> Table:
    names = list(dict.fromkeys(name for one in attacks for name in one.scores))
    rows: list[Sequence[Value]] = [
        (figures.score(name), *(_score(one, name) for one in attacks)) for name in names
    ]
    rows.append(
        (
            Entry("The record alone, no model", "baseline of the game: must be near 0.5"),
            *(_measure(one.blind) for one in attacks),
        )
    )
    level = attacks[0].level
    return Table(
        _with(
            f"{words.capital(levels.at(level))}:" if document.several else "",
            "AUC of each score with its 95 % interval over targets (of several runs their means). The one "
            "marked as chosen did best on the calibration half, or as well as that and stands higher, and is "
            "the one told above; a larger one here was not known to be larger before.",
            levels.terms(document) if isinstance(level, float) else "",
        ),
        ("Score", *(one.name for one in attacks)),
        rows,
        stacked=True,
    )


def _score(one: Attack, name: str) -> Value:
    found = one.scores.get(name)
    if found is None:
        return "—"
    chosen = sum(name == taken for taken in one.score)
    note = figures.ends(found)
    if chosen:
        note += "\nchosen" if chosen == len(one.score) else f"\nchosen in {chosen} of {len(one.score)} runs"
    return Entry(figures.share(found.value), note)


def _empirical(one: Attack) -> str:
    """What the guesses prove about epsilon, or why they cannot."""
    found = one.empirical_epsilon
    if found is None:
        return ""
    if found.epsilon is None:
        return f"None: {found.reason or 'the record does not say why'}."
    sure = "" if found.confidence is None else f" with confidence {figures.percent(found.confidence)}"
    most = (
        "" if found.ceiling is None else f"; so many guesses can prove at most {words.number(found.ceiling)}"
    )
    by = f" ({found.method})" if found.method else ""
    return f"At least {words.number(found.epsilon)}{sure}{most}{by}."


def _classes(document: ReplayDocument, one: Attack) -> Table | Text:
    told = [(label, found) for label, found in one.per_class.items() if found.auc is not None]
    missing = len(one.per_class) - len(told)
    rows = [
        (
            label,
            figures.share(found.auc.value if found.auc else None),
            figures.ends(found.auc) if found.auc else "—",
            f"{found.members:,}",
            f"{found.nonmembers:,}",
        )
        for label, found in told[:MOST_CLASSES]
    ]
    terms = levels.terms(document) if one.epsilon is not None else ""
    caption = _with(f"{levels.label(document, one)}: AUC within each class.", terms)
    if missing:
        caption += f" Of {len(one.per_class):,} classes {missing:,} have too few targets."
    if not rows:
        return Text(caption)
    head = ("Class", "AUC", "95 % interval", "Members", "Non-members")
    return Table(caption, head, rows, numeric=frozenset({1, 2, 3, 4}))
