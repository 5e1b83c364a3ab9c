"""Curves and scores of all attacks as small panels beside each other, with the figures they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedprivacy.documents.attack import Attack
from fedprivacy.documents.attack import Histogram as Scores
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import page_end, svg, words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.blocks import Block, Details, Picture, Section, Table, Text
from fedprivacy.report.charts import Axis, Bars, Chart, Histogram, Roc, roc
from fedprivacy.report.charts.roc import allowed, averaged
from fedprivacy.report.charts.spacing import spaced

PER_RATE = 5  # the fewest expected false alarms for which a TPR is reported
READ_AT = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CURVES = "ROC curve of each attack, on the same axes. Where no bound is drawn, nothing is guaranteed."
SCORES = "Scores of members and non-members under each attack."
HOW_TO_READ = (
    "Curve: how many members an attack finds (TPR) at how many false alarms (FPR), on logarithmic axes, "
    "since an attack that is sure of few records is worse for these than one that is a little right "
    "about all. A curve along the thin line knows nothing; where a guarantee bounds the seat, no attack "
    "may pass the dashed line by more than chance. In the grey field too few non-members were scored to "
    "tell a rate. Bars: the scores themselves; the less the two kinds overlap, the more is given away."
)
FOLLOWED = (
    "Drawn is for each seat the attack that is strongest where least is guaranteed, at each level of "
    "privacy, so that the pictures compare. The table above has the figures of all attacks."
)
MOST = 12  # panels of one picture


def sections(document: ReplayDocument) -> list[Section]:
    """All attacks one below the other; with several privacy levels, one of each seat at each level."""
    chosen = (
        followed(document) if document.several else [a for group in document.cells.values() for a in group]
    )
    drawn = [attack for attack in chosen if attack.roc or attack.histograms]
    if not drawn:
        return []
    blocks: list[Block | Details] = [Text(HOW_TO_READ)]
    blocks += [Text(FOLLOWED)] if document.several else []
    blocks += [picture for of in (curves, scores) if (picture := of(document, drawn)) is not None]
    heading = "One attack of each seat, closer" if document.several else "Each attack"
    return [Section("attacks", heading, blocks)]


def curves(document: ReplayDocument, attacks: Sequence[Attack]) -> Picture | None:
    """The ROC curves of all attacks as small panels on the same axes; None where there is none."""
    shown = [attack for attack in attacks if attack.roc]
    drawn = [
        replace(roc(attack.roc, attack.bound.curve, blind_below(attack)), title=_title(document, attack))
        for attack in shown
    ]
    tables = [
        table
        for attack in shown
        for table in _curve(attack, _caption(document, attack), _terms(document, attack))
    ]
    return _grid(document, shown, "attacks", CURVES, drawn, tables)


def scores(document: ReplayDocument, attacks: Sequence[Attack]) -> Picture | None:
    """The scores of members and non-members of all attacks as small panels; None where none are stored."""
    shown = [attack for attack in attacks if attack.histograms]
    drawn = [
        replace(scored, title=_title(document, attack)) for attack in shown for scored in histogram(attack)
    ]
    tables = [
        table
        for attack in shown
        for table in _histogram(attack, _title(document, attack), _terms(document, attack))
    ]
    return _grid(document, shown, "scores", SCORES, drawn, tables)


def _grid(
    document: ReplayDocument,
    attacks: Sequence[Attack],
    name: str,
    caption: str,
    drawn: Sequence[Roc | Histogram],
    tables: Sequence[Table],
) -> Picture | None:
    if not drawn:
        return None
    terms = levels.terms(document) if any(attack.epsilon is not None for attack in attacks) else ""
    described = " ".join(_caption(document, attack) for attack in attacks)
    text = f"{caption} {terms}".strip()
    return Chart(
        name, caption, text, tuple(drawn), terms=f"{described} {terms}".strip(), tables=tuple(tables)
    ).picture


def _title(document: ReplayDocument, attack: Attack) -> str:
    return f"{levels.label(document, attack)}, by {figures.seat(attack.seat)}"


def _terms(document: ReplayDocument, attack: Attack) -> str:
    return levels.terms(document) if attack.epsilon is not None else ""


def histogram(attack: Attack) -> tuple[Histogram, ...]:
    """Members upwards, non-members downwards; nothing where no scores are stored."""
    scores, runs = pooled(attack.histograms)
    if scores is None:
        return ()
    return (
        Histogram(
            Axis(f"Score{runs and f', {runs}'}", lambda score: words.number(float(f"{score:.4g}"))),
            tuple(scores.edges),
            (
                Bars("Members", svg.LOCAL, tuple(scores.members)),
                Bars("Non-members", svg.NONE, tuple(scores.nonmembers)),
            ),
            "Share of members above, of non-members below",
            mirrored=True,
        ),
    )


def pooled(histograms: Sequence[Scores]) -> tuple[Scores | None, str]:
    """The scores of all runs in one histogram where their edges agree, else those of the first run.

    Returns:
        The histogram, None where there is none; and of which runs, empty where there is one run alone.
    """
    if len(histograms) < 2:
        return (histograms[0], "") if histograms else (None, "")
    first, many = histograms[0], len(histograms)
    if any(histogram.edges != first.edges for histogram in histograms):
        return first, f"in run 1 of {many}"
    members = tuple(
        sum(counts) for counts in zip(*(histogram.members for histogram in histograms), strict=True)
    )
    others = tuple(
        sum(counts) for counts in zip(*(histogram.nonmembers for histogram in histograms), strict=True)
    )
    return Scores(edges=first.edges, members=members, nonmembers=others), f"{many} runs together"


def blind_below(attack: Attack) -> float:
    """The FPR below which too few non-members were scored for a TPR."""
    return PER_RATE / attack.nonmembers if attack.nonmembers else 1.0


def followed(document: ReplayDocument) -> list[Attack]:
    """For each seat its strongest attack where least is guaranteed, and the same attack at other levels."""
    shown: list[Attack] = []
    for seat, group in document.seats.items():
        loosest = [level for level in document.levels if (seat, level) in document.cells][-1]
        name = figures.strongest(document.cells[seat, loosest]).name
        same = sorted(
            (attack for attack in group if attack.name == name), key=lambda a: document.levels.index(a.level)
        )
        shown += spaced(same, max(2, MOST // len(document.seats)))
    return shown


def _caption(document: ReplayDocument, attack: Attack) -> str:
    label = levels.label(document, attack)
    scores = dict.fromkeys(map(figures.score, attack.score))
    by = f" Score: {words.listed(scores, 'or')}." if scores else ""
    return (
        f"{label}, from the seat of {figures.seat(attack.seat)} ({figures.described(attack)}): AUC "
        f"{figures.share(attack.auc.value)}, 95 % interval {figures.ends(attack.auc)}; the guarantee allows "
        f"{_allowed(attack)}.{by}"
    )


def _allowed(attack: Attack) -> str:
    bound = attack.bound.auc
    return "anything, for there is none" if bound is None else f"at most {figures.at_most(bound)}"


def _curve(attack: Attack, which: str, terms: str) -> list[Table]:
    rows = []
    for rate in READ_AT:
        enough = rate * (attack.nonmembers or 0) >= PER_RATE
        text = figures.percent(averaged(attack.roc, rate)) if enough else figures.TOO_FEW
        bound = attack.bound.curve
        most = figures.at_most(allowed(bound, rate), rate=True) if bound else "no guarantee"
        rows.append((f"{words.number(100 * rate)} %", text, most))
    runs = f", averaged over {len(attack.roc)} runs" if len(attack.roc) > 1 else ""
    caption = (
        f"{which} Read off the curve{runs}. Its thresholds are set on the targets that it is measured on; "
        "the table of all attacks sets them on others, and has intervals."
    )
    head = ("FPR", "TPR of the attack", "TPR that the guarantee allows")
    return [Table(f"{caption} {terms}".strip(), head, rows, numeric=frozenset({1, 2}))]


def _histogram(attack: Attack, which: str, terms: str) -> list[Table]:
    stored, runs = pooled(attack.histograms)
    if stored is None:
        return []
    rows = [
        (f"{words.number(low)} to {words.number(high)}", f"{members:,}", f"{others:,}")
        for low, high, members, others in zip(
            stored.edges, stored.edges[1:], stored.members, stored.nonmembers, strict=False
        )
    ]
    of_runs = f" {runs}" if runs else ""
    caption = (
        f"{which}: targets by score, of the folds that chose the same{of_runs}; scores beyond the ends count "
        "with the last."
    )
    return [page_end.sampled(f"{caption} {terms}".strip(), ("Score", "Members", "Non-members"), rows)]
