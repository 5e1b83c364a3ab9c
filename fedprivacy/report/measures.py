"""The measures of a model beside its accuracy, on a page."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.quality import Measures
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Entry, Section, Table, Text, Value

FAR = 0.1  # accuracy above balanced accuracy, from where on classes of unequal size are named
MOST_NAMED = 3  # cells in the sentence; the table has all
MEANING = {
    "balanced_accuracy": (
        "Balanced accuracy",
        "the mean accuracy within the k classes; guessing gives 1/k",
    ),
    "f1": ("F1", "the mean over classes of the harmonic mean of precision and recall"),
    "auroc": (
        "AUROC",
        "the mean over classes of the area under the ROC curve; guessing gives 50 %",
    ),
    "calibration_error": (
        "Calibration error",
        "how far the probability of the named class is from its accuracy, in 15 bins; 0 is best",
    ),
    "brier": ("Brier score", "half the squared distance of the probabilities from the truth; 0 is best"),
}


def of_run(document: RunDocument) -> list[Section]:
    """The measures of a run; no section where they were not computed."""
    stated = document.final.measures if document.final else None
    if stated is None:
        return []
    rows = [
        (title, words.accuracy(getattr(stated, name)), words.capital(meaning))
        for name, (title, meaning) in MEANING.items()
    ]
    where = f"The final model on {words.evaluated_on(document.evaluated_on)}."
    table = Table(where, ("Measure", "Value", "Meaning"), rows, numeric=frozenset({1}), stacked=True)
    hidden = _hidden(document.final.accuracy if document.final else None, stated.balanced_accuracy)
    return _section(table, f"{hidden}." if hidden else "")


def of_comparison(document: CompareDocument) -> list[Section]:
    """The measures of every cell; no section where they were not computed."""
    rows: list[Sequence[Value]] = []
    hidden = []
    for arm in document.arms:
        for cell in document.of(arm):
            if cell.measures is not None:
                figures = [getattr(cell.measures, name) for name in Measures.model_fields]
                label = arm_labels.cell(arm, cell.epsilon)
                rows.append((label, *map(_figure, figures)))
                balanced = cell.measures.balanced_accuracy
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
    head = ("Cell", *(title for title, _ in MEANING.values()))
    table = Table(caption, head, rows, numeric=frozenset(range(1, len(head))))
    return _section(table, " ".join(hidden[:MOST_NAMED]))


def _hidden(accuracy: float | None, balanced: float | None) -> str:
    """Says so where classes of unequal size make an accuracy look better than the model is."""
    if accuracy is None or balanced is None or accuracy - balanced < FAR:
        return ""
    return (
        f"Accuracy {words.accuracy(accuracy)} looks better than the model is, since classes are of unequal "
        f"size: balanced accuracy is {words.accuracy(balanced)}"
    )


def _section(table: Table, hidden: str) -> list[Section]:
    blocks: list[Block | Details] = [Text(hidden)] if hidden else []
    blocks += [Details("Balanced accuracy, F1, AUROC, calibration", [table])]
    return [Section("measures", "Measures beside accuracy", blocks)]


def _figure(figure: Figures | None) -> Value:
    if figure is None or figure.mean is None:
        return "—"
    if (ends := figure.interval) is None:
        return words.accuracy(figure.mean)
    return Entry(words.accuracy(figure.mean), words.share_interval(*ends))
