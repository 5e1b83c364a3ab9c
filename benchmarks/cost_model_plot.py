"""The picture of `cost_model`: time and memory against clients, records, parameters and rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.cost_law import Law, Row

# Colours of Okabe and Ito, which colour-blind eyes tell apart; the marker says it again.
LOOKS = {"lr": ("#0072B2", "o", "logistic regression 64-10"), "mlp": ("#D55E00", "s", "MLP 784-200-10")}
LABELS = {
    "clients": "clients of a round",
    "records": "records of a client",
    "parameters": "parameters (MLP 784-h-10)",
    "rounds": "rounds",
}
_SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "cost-model",
}


def draw(rows: Sequence[Row], laws: Mapping[tuple[str, str], tuple[Law, Law]], stem: Path) -> None:
    """Writes `stem`.svg and `stem`.png: a column for each axis, time above and memory below.

    Args:
        rows: All that was measured.
        laws: Of each axis and work, those of seconds and of bytes.
        stem: The path without its ending.
    """
    axes = list(dict.fromkeys(row.axis for row in rows))
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(0.6 + 3.6 * len(axes), 6.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, len(axes), squeeze=False, sharex="col")
        for axis, (above, below) in zip(axes, panels.T, strict=True):
            for (place, work), (time, memory) in laws.items():
                if place != axis:
                    continue
                group = sorted((row for row in rows if (row.axis, row.work) == (axis, work)), key=_value)
                at = [row.value for row in group]
                _curve(above, work, at, [row.seconds for row in group], time, 1.0)
                _curve(below, work, at, [row.peak for row in group], memory, 1e-6)
                held = [(row.value, row.worker_peak / 1e6) for row in group if row.worker_peak is not None]
                color, marker, _ = LOOKS[work]
                below.plot(*zip(*held, strict=True) if held else ([], []), marker, color=color, mfc="none")
            above.set_title("seconds of the run" if axis == "rounds" else "seconds of a round", loc="left")
            below.set_title("MB at most", loc="left")
            below.set_xlabel(LABELS[axis])
            for panel in (above, below):
                panel.set(xscale="log", yscale="log")
                panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
                panel.yaxis.set_minor_formatter(NullFormatter())
        for panel in panels[1]:
            panel.set_ylim(*_range(rows))
        figure.legend(handles=_legend(rows), loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=110)


def _value(row: Row) -> int:
    return row.value


def _range(rows: Sequence[Row]) -> tuple[float, float]:
    """One scale of memory, of a factor of ten at least, so that noise does not look like growth."""
    held = [peak / 1e6 for row in rows for peak in (row.peak, row.worker_peak) if peak is not None]
    return min(0.7 * min(held), max(held) / 10), max(1.4 * max(held), 100.0)


def _curve(axes: Axes, work: str, at: list[int], values: list[float], law: Law, scale: float) -> None:
    color, marker, _ = LOOKS[work]
    line = np.geomspace(at[0], at[-1], 60)
    axes.plot(line, [scale * law.at(x) for x in line], color=color, linewidth=1.5)
    axes.plot(at, [scale * y for y in values], marker, color=color, markersize=6)


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    there = {row.work for row in rows}
    works = [
        Line2D([], [], color=color, marker=marker, label=name)
        for work, (color, marker, name) in LOOKS.items()
        if work in there
    ]
    law = Line2D([], [], color="black", label="line: fixed + so much for each unit")
    worker = Line2D([], [], color="black", linestyle="", marker="o", mfc="none", label="the largest worker")
    return [*works, law, worker]
