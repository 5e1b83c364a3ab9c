"""The objective over the plane of two coefficients, with the path of a noisy descent drawn on it."""

from __future__ import annotations

from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.report import charts, words
from fedprivacy.report.blocks import Section
from fedprivacy.report.charts import Chart
from fedprivacy.report.charts.spacing import spaced

STEPS = 300  # points of a path that are drawn


def section(document: EstimatesDocument) -> list[Section]:
    """The section; none where there is no surface."""
    surface = document.surface
    if (
        surface is None
        or len({len(row) for row in surface.values} | {len(surface.values), len(surface.axis)}) != 1
    ):
        return []
    g = surface.guarantee
    caption = (
        f"The objective, as lines of equal height around its minimum (cross), and the iterates of "
        f"{surface.approach} at "
        f"epsilon {words.epsilon(surface.epsilon)} ({words.terms([g])}), from 0 to their average (dot), "
        "which "
        f"is what is "
        "published. Coordinates are those of scaled features. The surface and the minimum are known to this "
        "simulation alone."
    )
    panel = charts.surface(
        surface.names,
        surface.axis,
        surface.values,
        spaced(list(surface.path), STEPS),
        surface.minimum,
        surface.estimate,
    )
    chart = Chart("surface", "The objective with a private path", caption, (panel,))
    return [Section("surface", "The surface and the private path", [chart.picture])]
