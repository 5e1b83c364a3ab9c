"""The measures of a model beside its accuracy, on a page."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.headline import task_of
from fedprivacy.documents.run import RunDocument
from fedprivacy.models.metrics.metric import Metric
from fedprivacy.models.metrics.registry import metrics_of
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Entry, Section, Table, Text, Value

FAR = 0.1  # accuracy above balanced accuracy, from where on classes of unequal size are named
MOST_NAMED = 3  # cells in the sentence; the table has all


def of_run(document: RunDocument) -> list[Section]:
    """The measures of a run; no section where they were not computed."""
    stated = document.final.measures if document.final else None
    if stated is None:
        return []
    metrics = metrics_of(task_of(document.scenario))
    rows = [
        (words.capital(metric.title), _text(metric, stated.get(metric.name)), words.capital(metric.meaning))
        for metric in metrics
    ]
    where = f"The final model on {words.evaluated_on(document.evaluated_on)}."
    table = Table(where, ("Measure", "Value", "Meaning"), rows, numeric=frozenset({1}), stacked=True)
    hidden = _hidden(document.final.accuracy if document.final else None, stated.get("balanced_accuracy"))
    return _section(table, f"{hidden}." if hidden else "", document.primary, metrics)


def of_comparison(document: CompareDocument) -> list[Section]:
    """The measures of every cell; no section where they were not computed."""
    rows: list[Sequence[Value]] = []
    hidden, metrics = [], metrics_of(task_of(document.scenario))
    for arm in document.arms:
        for cell in document.of(arm):
            if cell.measures is not None:
                figures = [_figure(metric, cell.measures.get(metric.name)) for metric in metrics]
                label = arm_labels.cell(arm, cell.epsilon)
                rows.append((label, *figures))
                balanced = cell.measures.get("balanced_accuracy")
                if sentence := _hidden(cell.accuracy.mean, balanced.mean if balanced else None):
                    hidden.append(f"{label}: {sentence[0].lower()}{sentence[1:]}.")
    if not rows:
        return []
    epsilon_terms = words.terms(document.guarantees())
    epsilon = f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    caption = (
        f"The final models on {words.evaluated_on(document.evaluated_on)}, {document.averaged}, with 95 % "
        f"intervals over seeds.{epsilon}"
    )
    head = ("Cell", *(words.capital(metric.title) for metric in metrics))
    table = Table(caption, head, rows, numeric=frozenset(range(1, len(head))))
    return _section(table, " ".join(hidden[:MOST_NAMED]), document.primary, metrics)


def _hidden(accuracy: float | None, balanced: float | None) -> str:
    """Says so where classes of unequal size make an accuracy look better than the model is."""
    if accuracy is None or balanced is None or accuracy - balanced < FAR:
        return ""
    return (
        f"Accuracy {words.accuracy(accuracy)} looks better than the model is, since classes are of unequal "
        f"size: balanced accuracy is {words.accuracy(balanced)}"
    )


def _section(
    table: Table, hidden: str, primary: type[Metric], metrics: Sequence[type[Metric]]
) -> list[Section]:
    blocks: list[Block | Details] = [Text(hidden)] if hidden else []
    titles = ", ".join(metric.title for metric in metrics[:4])
    blocks += [Details(words.capital(titles), [table])]
    return [Section("measures", f"Measures beside {primary.title}", blocks)]


def _text(metric: type[Metric], value: float | None) -> str:
    return words.accuracy(value) if metric.is_share else words.number(value)


def _figure(metric: type[Metric], figure: Figures | None) -> Value:
    if figure is None or figure.mean is None:
        return "—"
    text = _text(metric, figure.mean)
    if (ends := figure.interval) is None:
        return text
    low, high = ends
    between = f"{words.number(low)} to {words.number(high)}"
    return Entry(text, words.share_interval(low, high) if metric.is_share else between)
