"""Terminal output of attacks: their figures, what each observer learns, the path of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from fedprivacy.documents.attack import Attack
from fedprivacy.documents.kinds import read_whole
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.console import Terminal
from fedprivacy.report.attacks import (
    answer,
    arms,
    figures,
    finding,
    headline,
    levels,
    outsider_table,
    strongest,
    trials,
)
from fedprivacy.report.blocks import Entry
from fedprivacy.report.words import accuracy
from scenarios.cli.brief import as_clause, cost_of, show_brief


def show_replay(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the strongest attack in at most six lines; `verbose`: every attack, bound and guarantee."""
    result = read_whole(ReplayDocument, document)
    if not verbose:
        parts = [as_clause(answer.sentence(result, intervals=True)), *_caveats(result)]
        show_brief(document, "; ".join(filter(None, parts)), _guarantees(result))
        return
    console, plain = Terminal(), Terminal(soft_wrap=True)
    if result.trials:
        _show_trials(console, plain, result)
    if result.arms and result.attacks:
        _show_arms(console, plain, result)
    elif result.attacks:
        _show_attacks(console, plain, result)
    if result.judged and not result.judged.refuted:
        plain.print(result.judged.words)
    if not result.arms:  # whose many guarantees the report says in words
        completed = [*document["attacks"], *document.get("trials", ())]
        for words in dict.fromkeys(attack["guarantee"]["words"] for attack in completed):
            plain.print(f"- {words}")
    for caveat in _caveats(result):
        plain.print(caveat)
    for attack in result.attacks:
        if attack.rounds_refused:
            refused = f"the victim refused {attack.rounds_refused:,} of the rounds that it was to observe"
            plain.print(f"{attack.name}: {refused}")
    plain.print(cost_of(document))
    plain.print(f"report: {document['path']}/report.html")


def _guarantees(result: ReplayDocument) -> list[Guarantee]:
    """Returns the guarantees of all attacked runs, against the attacking seats; of arms against all."""
    if result.arms:
        return [guarantee for arm in result.arms for guarantee in arm.guarantees]
    return [attack.guarantee for attack in result.completed if attack.guarantee is not None]


def _caveats(result: ReplayDocument) -> list[str]:
    """Returns what changes the meaning of the figures: a refuted guarantee, targets that were lost."""
    refuted = [result.judged.words.removesuffix(".")] if result.judged and result.judged.refuted else []
    lost = sum(attack.targets_lost for attack in result.attacks)
    return [
        *refuted,
        *([f"{lost:,} targets were lost: the victim refused to answer any more"] if lost else []),
    ]


def _show_attacks(console: Terminal, plain: Terminal, result: ReplayDocument) -> None:
    """Prints every attack at every level of privacy."""
    table = Table(title=result.name, title_justify="left")
    for name in ("attack", "seat", "AUC [95 %]", "TPR at 1 %", "bound"):
        left = name in ("attack", "seat")
        table.add_column(name, overflow="fold", justify="left" if left else "right", no_wrap=not left)
    for (_, level), attacks in result.cells.items():
        if result.several:
            table.add_section()
            table.add_row(levels.at(level), style="bold")
        for attack in attacks:
            table.add_row(*_row(attack))
    console.print(table)
    _show_released(console, result)
    for sentence in finding.sentences(result):
        plain.print(sentence)
    if result.several:
        plain.print(levels.terms(result))


def _show_trials(console: Terminal, plain: Terminal, result: ReplayDocument) -> None:
    """Prints the rate of success of each attack in trials beside its baseline and its bound."""
    table = Table(title=result.name, title_justify="left")
    for name in ("attack", "success [95 %]", trials.baseline(result), "bound"):
        table.add_column(name, overflow="fold", justify="left" if name == "attack" else "right")
    for trial in result.trials:
        rate, most = trial.success, trial.bound.success
        table.add_row(
            trials.label(result, trial),
            f"{figures.percent(rate.value)} [{figures.ends(rate, rate=True)}]",
            figures.percent(trial.chance),
            "none" if most is None else figures.at_most(most, rate=True),
        )
    console.print(table)
    for sentence in trials.sentences(result):
        plain.print(sentence)
    if not result.attacks:
        plain.print(levels.terms(result))


def _show_arms(console: Terminal, plain: Terminal, result: ReplayDocument) -> None:
    """Prints each arm at each epsilon: the accuracy of its model, and the strongest attack at each seat."""
    table = Table(title=result.name, title_justify="left")
    reached = strongest.reached(result)
    for name in ("arm", "test [95 %]", *(f"AUC: {seat}" for seat in reached)):
        table.add_column(name, overflow="fold", justify="left" if name == "arm" else "right")
    for place, arm in enumerate(result.arms):
        test, ends = arm.accuracy.test.mean, arm.accuracy.test.interval
        within = "" if ends is None else f"\n[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"
        row = [strongest.label(arm), f"{accuracy(test)}{within}"]
        for group in reached.values():
            best, bound = group[place].best, group[place].bound.auc
            area = "-" if best is None else f"{best.auc.value:.3f} [{best.auc.low:.3f}, {best.auc.high:.3f}]"
            row.append(f"{area}\nbound {'none' if bound is None else figures.at_most(bound)}")
        table.add_row(*row)
    console.print(table)
    sentences = [*arms.sentences(result), *arms.cautions(result), strongest.CHOSEN, strongest.terms(result)]
    for sentence in filter(None, sentences):
        plain.print(sentence)
    for sentence in arms.skipped(result):
        plain.print(f"left out: {sentence}")


def _show_released(console: Terminal, result: ReplayDocument) -> None:
    """Prints the accuracy of the released model, and of each attack on it."""
    head, rows = outsider_table.table(result)
    if not rows:
        return
    table = Table(title="Accuracy; of attacks, balanced accuracy", title_justify="left")
    for place, name in enumerate(head):
        table.add_column(name.lower(), overflow="fold", justify="right" if place else "left")
    for row in rows:
        cells = (f"{entry.text} [{entry.note}]" if isinstance(entry, Entry) else str(entry) for entry in row)
        table.add_row(*cells)
    console.print(table)


def _row(attack: Attack) -> tuple[str, ...]:
    auc, rate = attack.auc, headline.telling(attack.tpr_at_fpr.get("0.01"))
    area = headline.telling(auc)
    return (
        attack.name,
        attack.seat,
        f"{headline.SHORT if area is None else f'{auc.value:.3f}'} [{auc.low:.3f}, {auc.high:.3f}]",
        headline.SHORT if rate is None else figures.percent(rate.value),
        "none" if attack.bound.auc is None else figures.at_most(attack.bound.auc),
    )
