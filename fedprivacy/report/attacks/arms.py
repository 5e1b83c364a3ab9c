"""A game in several arms on a page: the arms compared in sentences, one picture, and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from fedprivacy.documents.attack import ArmResult
from fedprivacy.documents.cell import Figures
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.io.validation import damaged
from fedprivacy.report import words
from fedprivacy.report.attacks import (
    attack_table,
    figures,
    frontier,
    headline,
    lecture_figures,
    strongest,
    sums,
)
from fedprivacy.report.attacks.strongest import Reached
from fedprivacy.report.blocks import (
    Block,
    Details,
    Entry,
    Finding,
    Group,
    Items,
    Picture,
    Section,
    Table,
    Value,
)
from fedprivacy.report.charts import Chart

# Above it the bound on the odds (e^20, 5e8) is too loose to be called protection.
USEFUL_EPSILON = 20.0
FIELD = "arms"  # of a replay document; the accuracy in training is for the operator alone
AREA = "AUC is the share of pairs of a member and a non-member that are ranked right; guessing gives 0.5."
WEAK = "An attack no better than guessing may be a weak one: only the guarantee's bound is proven."
BEFORE = (
    "Accuracy is that of the models before the attacks, while noise is made for the rounds of the attacks "
    "too: at equal epsilon a deployment without attacks is somewhat more accurate."
)


def finding(document: ReplayDocument) -> Finding:
    """The result without privacy, and for each seat the most accurate arm that stops its attack."""
    if not document.arms:
        return Finding("No arm was trained to its end.", "", "", "")
    verdict = document.judged
    agreed = [verdict.words] if verdict and not verdict.refuted else []
    parts = [strongest.CHOSEN, AREA, "In brackets: 95 % intervals.", figures.covered(document.attacks)]
    return Finding(
        text=" ".join(sentences(document)),
        terms=" ".join(filter(None, [*parts, strongest.terms(document)])),
        heading="What is proven, and what was only measured",
        caution=" ".join([*cautions(document), *agreed]),
    )


def cautions(document: ReplayDocument) -> list[str]:
    """Cautions: a weak attack is no proof, and equal epsilons are not equal guarantees."""
    by_change: dict[tuple[str | None, str | None], dict[str, None]] = {}
    for arm in document.arms:
        for held in arm.guarantees:
            if held.holds:
                by_change.setdefault((held.adjacency, held.unit), {})[arm.arm] = None
    if len(by_change) < 2:
        return [WEAK]
    parts = (f"of {words.listed(names)} about {words.change(*change)}" for change, names in by_change.items())
    return [WEAK, f"Equal epsilon is no equal promise here: it is {', '.join(parts)}."]


def sentences(document: ReplayDocument) -> list[str]:
    """The finding: a sentence for arms without noise, and for each seat the proven and measured."""
    reached = strongest.reached(document)
    bare = [arm for arm in document.arms if not any(g.holds for g in arm.guarantees)]
    lines = [
        f"In the arm {strongest.label(arm)}, the model is right on {_accuracy(arm)} of held-out records; "
        + words.listed(
            f"{figures.seat(seat)} reaches AUC {_area(group[place])}"
            for seat, group in reached.items()
            if group[place := document.arms.index(arm)].best is not None
        )
        + "."
        for arm in bare[:1]
    ]
    return lines + [sentence for seat, group in reached.items() for sentence in _decides(seat, group)]


def _decides(seat: str, group: list[Reached]) -> list[str]:
    """The most accurate arms against a seat: among equal guarantees, and among measured ones."""
    known = [reach for reach in group if reach.arm.accuracy.test.mean is not None]
    quiet = max((reach for reach in known if reach.hidden), key=_worth, default=None)
    who, useful = f"Against {figures.seat(seat)}:", f"an epsilon of {words.number(USEFUL_EPSILON)} or less"
    lines, best = [], {kind: max(equal, key=_worth) for kind, equal in _proven(known).items()}
    for (unit, adjacency), reach in best.items():
        also = ", which is also the most accurate where it is indistinguishable from guessing"
        lines.append(
            f"{who} with {useful} guaranteed for unit {unit}, adjacency {adjacency}, the most accurate is "
            f"{strongest.label(reach.arm)} (accuracy {_accuracy(reach.arm)}; {_reaches(reach)}, "
            "and AUC "
            f"{_most(reach)} at most is possible){also if reach is quiet else ''}."
        )
    if not best:
        lines.append(f"{who} no completed arm guarantees {useful}.")
    if quiet is None and any(reach.best is not None for reach in known):
        lines.append(
            f"{who} no arm is left in which the strongest attack is indistinguishable from guessing."
        )
    elif quiet is not None and not any(quiet is reach for reach in best.values()):
        proof = "nothing is proven" if quiet.bound.auc is None else f"proven is at most {_most(quiet)}"
        lines.append(
            f"{who} by measurement alone, the most accurate where the strongest attack is "
            f"indistinguishable from guessing is {strongest.label(quiet.arm)} (accuracy "
            f"{_accuracy(quiet.arm)}; AUC {_area(quiet)}, {proof})."
        )
    return lines


def _proven(known: Sequence[Reached]) -> dict[tuple[str | None, str | None], list[Reached]]:
    """The arms with a guarantee of a useful epsilon against their seat, by unit and adjacency."""
    by_change: dict[tuple[str | None, str | None], list[Reached]] = {}
    for reach in known:
        held = reach.arm.against(reach.seat)
        if held is not None and held.epsilon is not None and held.epsilon <= USEFUL_EPSILON:
            by_change.setdefault((held.unit, held.adjacency), []).append(reach)
    return by_change


def _reaches(reach: Reached) -> str:
    return "no attack was run" if reach.best is None else f"the strongest attack reaches AUC {_area(reach)}"


def _most(reach: Reached) -> str:
    return figures.at_most(reach.bound.auc)


def _worth(reach: Reached) -> float:
    return reach.arm.accuracy.test.mean or 0.0


def sections(document: ReplayDocument) -> list[Section]:
    """The picture that decides with its table, and every attack of every arm."""
    if not document.arms:
        return []
    blocks: list[Block | Details] = []
    if len({arm.level for arm in document.arms}) > 1:
        blocks.append(_picture(document))
    blocks.append(summary(document))
    if left := skipped(document):
        blocks.append(Details("Attacks that could not be had", [Items(left)]))
    shown = [
        *sums.sections(document),
        Section("frontier", "Accuracy, epsilon and the strongest attack", blocks, folded=False),
    ]
    details = [
        Details(f"Every attack in the arm {name}", [attack_table.figured(_alone(document, name))])
        for name in strongest.looks(document)
        if any(arm.arm == name for arm in document.attacks)
    ]
    return [*shown, Section("figures", "Every attack in figures", details)] if details else shown


def summary(document: ReplayDocument, *, training: bool = False) -> Table:
    """A row for each arm at each epsilon: its accuracy, and the AUC of the strongest attacks.

    Args:
        document: The replay.
        training: Whether it has the accuracy in training, which is for the operator.
    """
    reached = strongest.reached(document)
    rows: list[Sequence[Value] | Group] = []
    for place, arm in enumerate(document.arms):
        row: list[Value] = [
            Entry(strongest.label(arm), strongest.promise(arm) + _ended(arm)),
            *([_figures(arm.accuracy.train)] if training else []),
            _figures(arm.accuracy.test),
        ]
        for group in reached.values():
            row.append(_entry_of(group[place]))
        rows.append(row)
    rows += lecture_figures.beside(document, training=training)
    seats = (f"{words.capital(figures.seat(seat))}: AUC" for seat in reached)
    head = ("Arm", *(["Accuracy in training"] if training else []), "Accuracy in test", *seats)
    known = "what they were trained on and on held-out records" if training else "held-out records"
    caption = (
        f"Accuracy of the models on {known}, and the AUC of the strongest attack at each seat, which is "
        "chosen by AUC (guessing gives 0.5); below each its 95 % interval, of accuracies by Student's t over "
        "runs, and how often that same attack is right (balanced accuracy; guessing gives 50 %). An attack "
        "of less AUC may be right more often. "
        f"{f'{BEFORE} ' if any(g.holds for arm in document.arms for g in arm.guarantees) else ''}"
        f"{'' if training else 'Accuracy in training is for the operator. '}{strongest.terms(document)}"
    )
    return Table(caption.strip(), head, rows, numeric=frozenset(range(1, len(head))), stacked=True)


def _entry_of(reach: Reached) -> Value:
    """The AUC of the strongest attack, by which it was chosen, and how often it is right."""
    if reach.best is None:
        return "—"
    auc, right = reach.best.auc, reach.best.balanced_accuracy
    also = (
        "" if right is None else f"; right {figures.percent(right.value)} ({figures.ends(right, rate=True)})"
    )
    return Entry(figures.share(auc.value), f"{figures.ends(auc)}{also}")


def training(document: Mapping[str, Any], source: str = "report") -> list[Table]:
    """For the operator: the same with the accuracy on the training records.

    Args:
        document: The whole document, with its operator-only fields.
        source: The file that it came from, which errors name.

    Raises:
        InputError: the document is damaged.
    """
    if not document.get(FIELD):
        return []
    try:
        result = ReplayDocument.model_validate(document)
    except ValidationError as error:
        raise damaged(error, source, "Restore the file, or attack again.", "replay") from None
    known = any(arm.accuracy.train.mean is not None for arm in result.arms)
    return [summary(result, training=True)] if known else []


def _ended(arm: ArmResult) -> str:
    """After how many rounds early stopping has ended training, in words; empty where it has not."""
    if arm.rounds is None or all(rounds >= arm.rounds for rounds in arm.rounds_played):
        return ""
    return f"; ended after {words.listed(map(str, arm.rounds_played))} of {arm.rounds:,} rounds"


def skipped(document: ReplayDocument) -> list[str]:
    """The impossible attacks with their reasons; arms of the same reason together."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for arm in document.arms:
        for name, why in arm.skipped.items():
            reasons.setdefault((name, why), {})[arm.arm] = None
    return [f"{name} in {words.listed(arms)}: {why}." for (name, why), arms in reasons.items()]


def _picture(document: ReplayDocument) -> Picture:
    reached = strongest.reached(document)
    caption = (
        "Three panels: AUC of the strongest attack at each seat with its 95 % interval (points), and the "
        "most that the arm's guarantee allows any attack there (dashed in the arm's colour, proven at the "
        "epsilons that were run; an arm without one has no guarantee); guessing gives 0.5 (thin "
        "line). Fourth: accuracy on held-out records, with its 95 % interval over runs. Epsilon has a "
        "logarithmic axis, stricter to the left; the grey field is without any. "
        f"{strongest.CHOSEN} {strongest.terms(document)}"
    )
    return Chart(
        "frontier",
        "Four charts by epsilon: AUC of the strongest attack at each seat with its bound, and accuracy",
        caption,
        frontier.panels(document),
        tables=(_table(document, reached),),
    ).picture


def _table(document: ReplayDocument, reached: dict[str, list[Reached]]) -> Table:
    """The figures of the picture."""
    rows: list[list[Value] | Group] = []
    for seat, group in reached.items():
        rows.append(Group(f"From the seat of {figures.seat(seat)}"))
        for reach in group:
            held, best = reach.arm.against(seat), reach.best
            rate = None if best is None else best.tpr_at_fpr.get("0.01")
            rows.append(
                [
                    strongest.label(reach.arm),
                    "none" if held is None else words.epsilon(held.epsilon),
                    reach.name,
                    "—" if best is None else _area(reach),
                    figures.at_most(reach.bound.auc),
                    "—"
                    if rate is None
                    else f"{figures.percent(rate.value)} ({figures.ends(rate, rate=True)})",
                    figures.at_most(figures.allowed(reach.bound, "0.01"), rate=True),
                    _accuracy(reach.arm),
                ]
            )
    head = (
        "Arm", "Epsilon against this seat", "Strongest attack", "AUC (95 % interval)", "AUC allowed",
        "TPR at 1 % FPR", "TPR allowed", "Accuracy in test",
    )  # fmt: skip
    caption = (
        f"The strongest attack at each seat, what is allowed, and the price. {strongest.terms(document)}"
    )
    return Table(caption.strip(), head, rows, numeric=frozenset(range(3, len(head))), stacked=True)


def _area(reach: Reached) -> str:
    if reach.best is None:
        return "—"
    if not headline.telling(reach.best.auc):
        return f"in {figures.ends(reach.best.auc)} ({headline.too_few(reach.best.auc)})"
    return f"{figures.share(reach.best.auc.value)} ({figures.ends(reach.best.auc)})"


def _accuracy(arm: ArmResult) -> str:
    """The accuracy on held-out records with its interval, if it has one."""
    test = arm.accuracy.test
    ends = test.interval
    within = "" if ends is None else f" ({words.accuracy(ends[0], unit='')} to {words.accuracy(ends[1])})"
    return f"{words.accuracy(test.mean)}{within}"


def _figures(figures_of_arm: Figures) -> Entry:
    ends = figures_of_arm.interval
    note = "one run" if ends is None else f"{words.accuracy(ends[0], unit='')} to {words.accuracy(ends[1])}"
    return Entry(words.accuracy(figures_of_arm.mean), note)


def _alone(document: ReplayDocument, name: str) -> ReplayDocument:
    """The document of one arm."""
    attacks = tuple(attack for attack in document.attacks if attack.arm == name)
    return document.model_copy(update={"attacks": attacks, "arms": ()})
