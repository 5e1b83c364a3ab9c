"""The exposure of made-up secrets in clients' texts, beside chance and beside its bound."""

from __future__ import annotations

import math

from fedprivacy.documents.quality import Exposure, ExposureBound
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.statement import SEES
from fedprivacy.report import svg
from fedprivacy.report.blocks import Section, Text
from fedprivacy.report.charts import Axis, Chart, Dots, Point, Reference, Row, Series
from fedprivacy.report.charts.looks import Look

MOST_ROWS = 40  # of a picture; the sentence has the mean of all
MEANING = (
    "A secret is a made-up number of digits, written in the text of one client. Its exposure is log2 of all "
    "numbers of as many digits less log2 of its rank by the final model's likelihood: 0 bits for the least "
    "likely (Carlini et al. 2019)."
)


def bits(value: float) -> str:
    """A number of bits.

    >>> bits(13.2877)
    '13.3 bits'
    """
    return f"{value:.1f} bits"


def of_run(document: RunDocument) -> list[Section]:
    """The secrets of a run; no section where it has none."""
    exposure = document.final.exposure if document.final else None
    if exposure is None:
        return []
    chart = Chart("exposure", "Dots of the secrets' exposure", MEANING, (_panel(exposure),))
    return [Section("exposure", "What the model remembers", [Text(sentence(exposure)), chart.picture])]


def sentence(exposure: Exposure) -> str:
    """The mean exposure beside its bound, in words."""
    count, most = len(exposure.bits), math.log2(exposure.candidates)
    bound = "No guarantee for a client bounds it."
    if exposure.bound is not None:
        bound = bound_sentence(exposure.bound)
    each = f"of {count} secrets, each written {exposure.copies} times in the text of one client,"
    return (
        f"The mean exposure {each} is {bits(exposure.mean)} of {most:.1f}; a model that has not seen them "
        f"has {bits(exposure.chance)} on average. {bound}"
    )


def bound_sentence(bound: ExposureBound) -> str:
    """The bound of the mean exposure with its observer, adjacency and assumptions."""
    steps = ""
    if bound.steps == 2:
        steps = ", in two steps (a client is taken away and put back changed: group privacy)"
    return (
        f"Whatever {SEES.get(bound.observer, bound.observer)}, does with it: the guarantee for a client "
        f"({bound.adjacency}{steps}; {bound.basis}) allows a mean of at most {_up(bound)} over draws of the "
        "secrets, which the mean of one run may exceed by chance; provided that "
        f"{'; '.join(bound.assumptions)}."
    )


def _up(bound: ExposureBound) -> str:
    """The bound rounded up, so that the print does not promise too much."""
    return bits(math.ceil(bound.bits * 10) / 10)


def _panel(exposure: Exposure) -> Dots:
    shown = sorted(exposure.bits, reverse=True)[:MOST_ROWS]
    rows = (Row("Mean of all"), *(Row(f"Secret {place}") for place in range(1, len(shown) + 1)))
    points = tuple(Point(value, row) for row, value in enumerate([exposure.mean, *shown]))
    references = [Reference(exposure.chance, label=f"Chance: {bits(exposure.chance)} on average")]
    if exposure.bound is not None:
        label = f"Bound of the mean: {_up(exposure.bound)}"
        references.append(Reference(exposure.bound.bits, (svg.INK, "", "-"), label))
    look: Look = (svg.MUTED, "o", "")
    axis = Axis("Exposure, bits", bits, limits=(0.0, math.log2(exposure.candidates)))
    return Dots(axis, rows, (Series(look, "Exposure", points),), references=tuple(references), values=True)
