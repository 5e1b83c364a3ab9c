"""The effect of privacy on attacks and on accuracy: a picture and a table for each seat."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import Attack
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, headline, levels, price_chart
from fedprivacy.report.blocks import Block, Details, Picture, Section, Table, Text
from fedprivacy.report.charts import Chart

HOW_TO_READ = (
    "Above: AUC of each attack with its 95 % interval at each level of privacy; guessing gives 0.5 (thin "
    "line). Below: the accuracy on held-out records of the model that was attacked. Epsilon has a "
    "logarithmic axis, stricter to the left."
)


def sections(document: ReplayDocument) -> list[Section]:
    """A picture for each seat that attacks; no section where all runs were of one level."""
    if not document.several:
        return []
    blocks: list[Block | Details] = []
    for number, (seat, group) in enumerate(document.seats.items(), start=1):
        if len({attack.level for attack in group}) > 1:
            blocks += [
                Text(_seen(document, group, paid=number == 1)),
                _picture(document, seat, f"price-{number}"),
            ]
    heading = "What privacy takes from the attacker, and from the model"
    return [Section("price", heading, blocks, folded=False)] if blocks else []


def _seen(document: ReplayDocument, group: Sequence[Attack], *, paid: bool) -> str:
    """The attack that is strongest at the loosest guarantee, at the strictest one."""
    present = [level for level in document.levels if any(attack.level == level for attack in group)]
    loose, strict = present[-1], present[0]
    best = figures.strongest([attack for attack in group if attack.level == loose])
    there = next((attack for attack in group if attack.level == strict and attack.name == best.name), None)
    who = f"From the seat of {figures.seat(best.seat)}"
    if there is None:
        return f"{who}, {best.name} was not run {levels.at(strict)}. {levels.terms(document)}"
    fell = there.auc.high < best.auc.low
    area = (
        f"has AUC {figures.share(there.auc.value)} ({figures.ends(there.auc)}) {levels.at(strict)}"
        if headline.telling(there.auc)
        else f"has {headline.too_few(there.auc)} {levels.at(strict)} (AUC between "
        f"{figures.ends(there.auc).replace(' to ', ' and ')})"
    )
    overlap = "; the intervals overlap, so that no difference can be told"
    apart = area if figures.apart(best.auc, there.auc) else f"{area}{overlap}"
    left = (
        "" if figures.from_guessing(there.auc) or not fell else ", which is indistinguishable from guessing"
    )
    return (
        f"{who}, {best.name}, the strongest attack {levels.at(loose)} with AUC "
        f"{figures.share(best.auc.value)} (95 % interval {figures.ends(best.auc)}), {apart}{left}. "
        f"{_paid(best, there) if paid else ''}{levels.terms(document)}"
    )


def _paid(loose: Attack, strict: Attack) -> str:
    before, after = loose.model_accuracy.before, strict.model_accuracy.before
    if before is None or after is None:
        return ""
    return (
        f"The model's accuracy is {words.accuracy(before)} {levels.at(loose.level)} and "
        f"{words.accuracy(after)} {levels.at(strict.level)}. "
    )


def _picture(document: ReplayDocument, seat: str, name: str) -> Picture:
    group = document.seats[seat]
    lines, terms = price_chart.lines(group), levels.terms(document)
    bounded = {attack.level for attack in group if attack.bound.auc is not None}
    drawn = "dashed blue line" if len(bounded) > 1 else "blue square"  # a line needs two epsilons
    bound = (
        f"The {drawn} is the most that the guarantee allows any attack."
        if bounded
        else f"Nothing is guaranteed against {figures.seat(seat)}, so no bound is drawn."
    )
    bare = [levels.at(level) for level in document.levels if not isinstance(level, float)]
    aside = f" The grey field is {words.listed(bare, 'or')}." if bare else ""
    return Chart(
        name,
        "Two charts below each other: AUC of attacks, and accuracy of the model, by epsilon",
        f"From the seat of {figures.seat(seat)}. {HOW_TO_READ}{aside} {bound} {terms}",
        price_chart.panels(document.levels, lines),
        stacked=True,
        tables=(_table(document, seat, terms),),
    ).picture


def _by_level(document: ReplayDocument, seat: str) -> list[list[Attack]]:
    return [group for (who, _), group in document.cells.items() if who == seat]


def _table(document: ReplayDocument, seat: str, terms: str) -> Table:
    rows = []
    for attack in (attack for group in _by_level(document, seat) for attack in group):
        rate = headline.telling(attack.tpr_at_fpr.get("0.01"))
        rows.append(
            (
                words.capital(levels.name(attack.level)),
                attack.name,
                f"{figures.share(attack.auc.value)} ({figures.ends(attack.auc)})",
                figures.at_most(attack.bound.auc),
                headline.SHORT if rate is None else figures.percent(rate.value),
                figures.at_most(figures.allowed(attack.bound, "0.01"), rate=True),
                words.accuracy(attack.model_accuracy.before),
            )
        )
    head = (
        "Privacy", "Attack", "AUC (95 % interval)", "AUC allowed", "TPR at 1 % FPR", "TPR allowed",
        "Model accuracy",
    )  # fmt: skip
    caption = f"Attacks from the seat of {figures.seat(seat)}, what is allowed, and the price. {terms}"
    return Table(caption, head, rows, numeric=frozenset(range(2, len(head))))
