"""What a person sees in the terminal of attacks: their figures, who learns what, where the record is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedprivacy.report.attacks import figures, finding
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.reading import read


def show_replay(document: Mapping[str, Any]) -> None:
    """The attacks with their intervals and bounds, the finding, every seat's guarantee in words."""
    console, plain = Console(highlight=False), Console(highlight=False, soft_wrap=True)
    table = Table(title=escape(document["name"]), title_justify="left")
    table.add_column("attack", overflow="fold")
    table.add_column("seat")
    for name in ("AUC", "balanced accuracy", "TPR at 10 / 1 / 0.1 % FPR", "bound on AUC", "lost", "accuracy"):
        table.add_column(name, justify="right")
    for attack in document["attacks"]:
        table.add_row(*map(escape, _row(attack)))
    console.print(table)
    result = read(document)
    assert isinstance(result, ReplayDocument)
    for seat in result.seats.values():
        plain.print(finding.sentence(seat), markup=False)
    exceeded = finding.exceeded(result.attacks)
    if exceeded:
        plain.print(exceeded, markup=False)
    for words in dict.fromkeys(attack["guarantee"]["words"] for attack in document["attacks"]):
        plain.print(f"- {words}", markup=False)
    performance = document["performance"]
    plain.print(f"{performance['seconds']:.1f} s, {performance['peak_memory_mb']:.0f} MB", markup=False)
    plain.print(f"report: {document['path']}/report.html", markup=False)


def _row(attack: Mapping[str, Any]) -> tuple[str, ...]:
    auc, accuracy, bound = attack["auc"], attack["model_accuracy"], attack["bound"]["auc"]
    rates = (attack["tpr_at_fpr"][rate] for rate in figures.RATES)
    return (
        attack["name"],
        attack["seat"] + (", isolating" if attack["isolating"] else ""),
        f"{auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}]",
        f"{100 * attack['balanced_accuracy']['value']:.1f} %",
        " / ".join("too few" if rate is None else f"{100 * rate['value']:.1f}" for rate in rates),
        "no guarantee" if bound is None else figures.at_most(bound),
        f"{attack['targets_lost']:,}",
        f"{100 * accuracy['before']:.1f} to {100 * accuracy['after']:.1f} %",
    )
