"""The attacks in rows: their figures with intervals, the bound, and the price."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.attacks.assessment import down
from fedprivacy.documents.attack import Attack, Measure
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.blocks import Block, Details, Entry, Facts, Group, Section, Table, Text, Value

MOST_CLASSES = 400


def sections(document: ReplayDocument) -> list[Section]:
    """The table of all attacks; folded the scores, the empirical epsilon and the classes."""
    attacks = [attack for group in document.cells.values() for attack in group]
    if not attacks:
        return []
    blocks: list[Block | Details] = [figured(document), _setting(document, attacks)]
    proved = [
        (levels.label(document, attack), result) for attack in attacks if (result := _empirical(attack))
    ]
    if proved:
        blocks.append(Details("The epsilon that each attack proves", [Facts(proved)]))
    scores = [
        _scores(document, scored)
        for level in document.levels
        if (
            scored := [
                attack for attack in attacks if attack.level == level and (attack.scores or attack.blind)
            ]
        )
    ]
    if scores:
        blocks.append(Details("Every score by itself, and a look at the record alone", scores))
    classed = [attack for attack in attacks if attack.per_class]
    if classed:
        blocks.append(Details("Each class by itself", [_classes(document, attack) for attack in classed]))
    return [Section("figures", "Every attack in figures", blocks)]


def figured(document: ReplayDocument) -> Table:
    """A row for each attack, those of one seat and level together."""
    rows: list[Sequence[Value] | Group] = []
    for (seat, level), attacks in document.cells.items():
        where = f", {levels.at(level)}" if document.several else ""
        rows.append(Group(f"From the seat of {figures.seat(seat)}{where}", _bound(attacks[0])))
        rows += [_row(attack) for attack in attacks]
    rates = [f"TPR at {figures.at(rate)}" for rate in figures.RATES]
    head = ("Attack", "AUC", "Balanced accuracy", *rates, "Advantage")
    return Table(
        "Below each figure its 95 % interval. Each target is measured by a score and thresholds that were "
        f"chosen without its fold. A TPR stands only where at least 5/FPR non-members were scored. "
        f"{_with(figures.covered(document.attacks), levels.terms(document))}",
        head,
        rows,
        stacked=True,
    )


def _with(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _row(attack: Attack) -> Sequence[Value]:
    return (
        Entry(attack.name, figures.described(attack)),
        _measure(attack.auc),
        _measure(attack.balanced_accuracy, rate=True),
        *(_tpr(attack, rate) for rate in figures.RATES),
        _measure(attack.advantage),
    )


def _tpr(attack: Attack, rate: str) -> Value:
    rate_figure = attack.tpr_at_fpr.get(rate)
    return Entry("—", figures.TOO_FEW) if rate_figure is None else _measure(rate_figure, rate=True)


def _measure(measure: Measure | None, *, rate: bool = False) -> Value:
    if measure is None:
        return "—"
    return Entry(
        figures.percent(measure.value) if rate else figures.share(measure.value),
        figures.ends(measure, rate=rate),
    )


def _bound(attack: Attack) -> str:
    bound = attack.bound
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
    """The resources and the cost of each attack."""
    rows = [
        (
            levels.label(document, attack),
            words.capital(
                figures.seat(attack.seat).removeprefix("the ").removeprefix("a ").removeprefix("an ")
            ),
            "yes" if attack.isolating else "no",
            "—" if attack.targets_per_round is None else f"{attack.targets_per_round:,}",
            "—" if attack.rounds is None else Entry(f"{attack.rounds:,}", _observed(attack)),
            f"{attack.members or 0:,} and {attack.nonmembers or 0:,}",
            f"{attack.targets_lost:,}",
            words.accuracy(attack.model_accuracy.before),
            words.accuracy(attack.model_accuracy.after),
        )
        for attack in attacks
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


def _observed(attack: Attack) -> str:
    return f"of training: {figures.observed(attack.observed)}" if attack.observed else ""


def _scores(document: ReplayDocument, attacks: Sequence[Attack]) -> Table:
    names = list(dict.fromkeys(name for attack in attacks for name in attack.scores))
    rows: list[Sequence[Value]] = [
        (figures.score(name), *(_score(attack, name) for attack in attacks)) for name in names
    ]
    rows.append(
        (
            Entry("The record alone, no model", "baseline of the game: must be near 0.5"),
            *(_measure(attack.blind) for attack in attacks),
        )
    )
    level = attacks[0].level
    return Table(
        _with(
            f"{words.capital(levels.at(level))}:" if document.several else "",
            "AUC of each score with its 95 % interval over targets (of several runs their means). The one "
            "marked as chosen did best on the other folds, or as well as that and stands higher, and is the "
            "one that measures a fold above, by pairs within it; a larger one here was not known before.",
            levels.terms(document) if isinstance(level, float) else "",
        ),
        ("Score", *(attack.name for attack in attacks)),
        rows,
        stacked=True,
    )


def _score(attack: Attack, name: str) -> Value:
    figure = attack.scores.get(name)
    if figure is None:
        return "—"
    chosen = sum(name == taken for taken in attack.score)
    note = figures.ends(figure)
    if chosen:
        folds = len(attack.score)
        note += "\nchosen" if chosen == folds else f"\nchosen in {chosen} of {folds} folds"
    return Entry(figures.share(figure.value), note)


def _empirical(attack: Attack) -> str:
    """The proved epsilon of the guesses, or the reason for none."""
    empirical = attack.empirical_epsilon
    if empirical is None:
        return ""
    if empirical.epsilon is None:
        return f"None: {empirical.reason or 'the record does not say why'}."
    sure = "" if empirical.confidence is None else f" with confidence {figures.percent(empirical.confidence)}"
    most = (
        ""
        if empirical.ceiling is None
        else f"; so many guesses can prove at most {words.number(empirical.ceiling)}"
    )
    by = f" ({empirical.method})" if empirical.method else ""
    return f"At least {down(empirical.epsilon)}{sure}{most}{by}."


def _classes(document: ReplayDocument, attack: Attack) -> Table | Text:
    figured_classes = [
        (label, figure) for label, figure in attack.per_class.items() if figure.auc is not None
    ]
    missing = len(attack.per_class) - len(figured_classes)
    rows = [
        (
            label,
            figures.share(figure.auc.value if figure.auc else None),
            figures.ends(figure.auc) if figure.auc else "—",
            f"{figure.members:,}",
            f"{figure.nonmembers:,}",
        )
        for label, figure in figured_classes[:MOST_CLASSES]
    ]
    terms = levels.terms(document) if attack.epsilon is not None else ""
    caption = _with(f"{levels.label(document, attack)}: AUC within each class.", terms)
    if missing:
        caption += f" Of {len(attack.per_class):,} classes {missing:,} have too few targets."
    if not rows:
        return Text(caption)
    head = ("Class", "AUC", "95 % interval", "Members", "Non-members")
    return Table(caption, head, rows, numeric=frozenset({1, 2, 3, 4}))
