"""What a person sees in the terminal of attacks: their figures, who learns what, where the record is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedprivacy.report.attacks import figures, finding, levels, released
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack
from fedprivacy.report.blocks import Entry
from fedprivacy.report.reading import read


def show_replay(document: Mapping[str, Any]) -> None:
    """The attacks with their intervals and bounds, finding and verdict, every seat's guarantee in words."""
    console, plain = Console(highlight=False), Console(highlight=False, soft_wrap=True)
    result = read(document)
    assert isinstance(result, ReplayDocument)
    table = Table(title=escape(document["name"]), title_justify="left")
    for name in ("attack", "seat", "AUC [95 %]", "TPR at 1 %", "bound"):
        left = name in ("attack", "seat")
        table.add_column(name, overflow="fold", justify="left" if left else "right", no_wrap=not left)
    for (_, level), attacks in result.cells.items():
        if result.several:
            table.add_section()
            table.add_row(levels.at(level), style="bold")
        for attack in attacks:
            table.add_row(*map(escape, _row(attack)))
    console.print(table)
    _show_released(console, result)
    for sentence in finding.sentences(result):
        plain.print(sentence, markup=False)
    if result.several:
        plain.print(levels.terms(result), markup=False)
    if result.judged:
        plain.print(result.judged.words, markup=False)
    for words in dict.fromkeys(attack["guarantee"]["words"] for attack in document["attacks"]):
        plain.print(f"- {words}", markup=False)
    lost = sum(attack["targets_lost"] for attack in document["attacks"])
    if lost:
        plain.print(f"{lost:,} targets were lost: the victim refused to answer any more", markup=False)
    for attack in document["attacks"]:
        if attack["rounds_refused"]:
            refused = f"the victim refused {attack['rounds_refused']:,} of the rounds that it was to observe"
            plain.print(f"{attack['name']}: {refused}", markup=False)
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB", markup=False)
    plain.print(f"report: {document['path']}/report.html", markup=False)


def _show_released(console: Console, result: ReplayDocument) -> None:
    """How often the released model is right, and each attack on it."""
    head, rows = released.table(result)
    if not rows:
        return
    table = Table(title="Accuracy; of attacks, balanced accuracy", title_justify="left")
    for place, name in enumerate(head):
        table.add_column(escape(name.lower()), overflow="fold", justify="right" if place else "left")
    for row in rows:
        cells = (f"{one.text} [{one.note}]" if isinstance(one, Entry) else str(one) for one in row)
        table.add_row(*map(escape, cells))
    console.print(table)


def _row(attack: Attack) -> tuple[str, ...]:
    auc, rate = attack.auc, attack.tpr_at_fpr.get("0.01")
    return (
        attack.name,
        attack.seat,
        f"{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]",
        "too few" if rate is None else figures.percent(rate.value),
        "none" if attack.bound.auc is None else figures.at_most(attack.bound.auc),
    )
