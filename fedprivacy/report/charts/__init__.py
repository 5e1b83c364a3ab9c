"""Charts as values: a `Chart` lays itself out, wide and narrow, and derives its words and tables.

A module describes its chart (series, axes, reference lines, bands); nothing outside this folder places
anything by pixels. Kinds of panel: `Lines` (with intervals), `Dots`, `Histogram`, `Mosaic`,
`Roc` and `Surface`.
"""

from __future__ import annotations

from fedprivacy.report.charts import looks
from fedprivacy.report.charts.axis import Axis, accuracy_range
from fedprivacy.report.charts.chart import Chart
from fedprivacy.report.charts.dots import Dots, Row
from fedprivacy.report.charts.histogram import Bars, Histogram
from fedprivacy.report.charts.lines import Lines
from fedprivacy.report.charts.mosaic import Mosaic, Pixels
from fedprivacy.report.charts.roc import Roc, roc
from fedprivacy.report.charts.series import Band, Point, Reference, Series
from fedprivacy.report.charts.surface import Surface, surface

__all__ = [
    "Axis",
    "Band",
    "Bars",
    "Chart",
    "Dots",
    "Histogram",
    "Lines",
    "Mosaic",
    "Pixels",
    "Point",
    "Reference",
    "Roc",
    "Row",
    "Series",
    "Surface",
    "accuracy_range",
    "looks",
    "roc",
    "surface",
]
