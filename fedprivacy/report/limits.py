"""What limits a run, from its ablations, and the baselines beside which an accuracy is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedprivacy.documents.cell import Ablated, Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.quality import ClassAccuracy
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import arm_labels, majority, svg, words
from fedprivacy.report.blocks import Block, Section, Table, Text
from fedprivacy.report.charts import Reference

LABELS: Mapping[str, str] = {
    "no-noise": "Clipping alone, no noise",
    "no-clipping": "No noise and no clipping",
    "norm-half": "Half the clipping norm",
    "norm-double": "Twice the clipping norm",
    "rounds-double": "Twice the rounds",
    "cohort-double": "Twice the sampling rate",
    "data-half": "Half the records",
}
UNCHARGED = (
    "Every variant was trained on the same records. Those without noise have no guarantee, and no epsilon "
    "covers a setting that is chosen by this table: outside of a simulation both would have to be charged."
)
UNMEASURED = (
    "What limits this run was not measured. In a simulation, fedprivacy run --limits trains "
    "variants of it without noise, without clipping, with more rounds and with other clipping norms."
)
UNMEASURED_BY_COMPARISON = (
    "What limits these accuracies was not measured. In a simulation, fedprivacy compare with --set "
    'compare.limits=["no-noise","no-clipping","norm-half","rounds-double"] trains variants of the '
    "scenario's cell without noise, without clipping, with more rounds and with other clipping norms."
)
CLIPPED = (svg.THIRD, "", (0, (4, 1.5)))
MAJORITY = (svg.MUTED, "", (0, (1, 2)))


def majority_level(classes: Sequence[ClassAccuracy] | None) -> tuple[Reference, ...]:
    """The majority class as a line in a chart of accuracies."""
    share = majority.share(classes)
    label = "Most frequent class"
    return () if share is None else (Reference(share, MAJORITY, label, width=1.5),)


def levels(document: CompareDocument) -> tuple[Reference, ...]:
    """The baselines of a comparison as lines: clipping alone, and the majority class."""
    clipped, lines = document.clipped, []
    if clipped is not None and clipped.accuracy.mean is not None:
        at, ends, reach = clipped.accuracy.mean, clipped.accuracy.interval, words.reach(clipped.guarantees)
        lines.append(Reference(at, CLIPPED, LABELS["no-noise"], reach, interval=ends))
    return (*lines, *majority_level(_classes(document.cells)))


def rows(document: CompareDocument) -> list[tuple[str, Cell]]:
    """The trained baselines of a comparison, named."""
    return [] if document.clipped is None else [(LABELS["no-noise"], document.clipped)]


def lead_of_run(document: RunDocument) -> list[Block]:
    """The sentences for the top of a run's page: what limits it, and the majority class."""
    classes = document.final.per_class if document.final else None
    blocks = _majority_text(classes, majority.of_run(document))
    if document.limits is not None and document.limits.limiting:
        return [Text(document.limits.limiting), *_caution(cells_of(document)[1]), *blocks]
    return [*blocks, Text(UNMEASURED)] if document.setting("privacy", "epsilon") else blocks


def lead_of_comparison(document: CompareDocument) -> list[Block]:
    """The sentences for the top of a comparison's page."""
    blocks = _majority_text(_classes(document.cells))
    if document.limiting:
        return [Text(document.limiting), *_caution(document.limits), *blocks]
    private = any(cell.epsilon is not None for cell in document.cells)
    planned = (document.scenario.get("compare") or {}).get("limits")
    return [*blocks, Text(UNMEASURED_BY_COMPARISON)] if private and not planned else blocks


def of_run(document: RunDocument) -> list[Section]:
    """The section with the ablations of a run; none where they were not trained."""
    planned, variants = cells_of(document)
    if planned is None or not variants:
        return []
    return [_section(planned, variants, document.evaluated_on, document.primary.title)]


def cells_of(document: RunDocument) -> tuple[Cell | None, Sequence[Ablated]]:
    """The planned cell of a run's ablations and the variants; None and nothing where there are none."""
    limits = document.limits
    return (None, ()) if limits is None else (limits.planned, limits.variants)


def of_comparison(document: CompareDocument) -> list[Section]:
    """The section with the ablations of a comparison; none where there are none."""
    planned = document.planned
    if planned is None or not document.limits:
        return []
    return [_section(planned, document.limits, document.evaluated_on, document.primary.title)]


def lines(limiting: str | None, variants: Sequence[Ablated], planned: Cell | None) -> list[str]:
    """The ablations for a terminal: the sentence, then a line for each."""
    if not variants or planned is None:
        return []
    texts = [f"As planned {words.accuracy(planned.accuracy.mean)}"]
    texts += [f"{LABELS.get(cell.ablation, cell.ablation)} {_reached(cell)}" for cell in variants]
    return [*([limiting] if limiting else []), f"  {'; '.join(texts)}."]


def _caution(variants: Sequence[Ablated]) -> list[Block]:
    bare = any(cell.trust == "none" for cell in variants)
    return [Text("No epsilon on this page covers the variants without noise.")] if bare else []


def _reached(cell: Ablated) -> str:
    gap = "" if cell.difference is None else f" ({cell.difference.points:+.1f})"
    return f"{words.accuracy(cell.accuracy.mean)}{gap}"


def _classes(cells: Sequence[Cell]) -> Sequence[ClassAccuracy] | None:
    return next((cell.per_class for cell in cells if cell.per_class), None)


def _majority_text(classes: Sequence[ClassAccuracy] | None, verdict: str = "") -> list[Block]:
    share = majority.share(classes)
    if share is None:
        return []
    conclusion = f" This model is {verdict}." if verdict else ""
    return [
        Text(
            f"Naming the most frequent class every time is right for {words.accuracy(share)} of held-out "
            f"records.{conclusion}"
        )
    ]


def _section(planned: Cell, variants: Sequence[Ablated], evaluated_on: str, title: str) -> Section:
    entries: list[tuple[str, ...]] = [
        ("As planned", words.accuracy(planned.accuracy.mean), "—", "—", _noise(planned))
    ]
    for cell in variants:
        gap = cell.difference
        ends = None if gap is None or gap.low is None or gap.high is None else (gap.low, gap.high)
        entries.append(
            (
                LABELS.get(cell.ablation, cell.ablation),
                words.accuracy(cell.accuracy.mean),
                "—" if gap is None else f"{gap.points:+.1f}",
                "—" if ends is None else f"{ends[0]:+.1f} to {ends[1]:+.1f}",
                _noise(cell),
            )
        )
    terms = words.terms(planned.guarantees)
    caption = (
        f"{words.capital(title)} on {words.evaluated_on(evaluated_on)}, "
        f"mean over {len(planned.accuracies)} seeds, with "
        "one thing changed at a time; variants with noise have the planned epsilon, their noise calibrated "
        "again. Difference to the planned run in points, seed by seed; intervals: 95 % for all rows together "
        "(Student t, Bonferroni)."
    )
    caption += f" Each epsilon: {terms}." if terms else ""
    head = ("Variant", words.capital(title), "Difference", "Interval", "Noise")
    table = Table(caption, head, entries, numeric=frozenset({1, 2, 3}))
    return Section("limits", f"What limits the {title}", [table, Text(UNCHARGED)])


def _noise(cell: Cell) -> str:
    return arm_labels.noise(cell.noise, cell.noise_multiplier) or "—"
