"""The picture of `local_errors`: error against epsilon, and against the number of answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.local_error_row import Row

# Colours of Okabe and Ito, which colour-blind eyes tell apart; marker and line style say it again.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "sign-bits, epsilon/d a bit": ("#999999", "v", (0, (1, 2))),
    "sign-bits": ("#CC79A7", "^", (0, (1, 1))),
    "gaussian": ("#0072B2", "o", "-"),
    "sqkr": ("#009E73", "D", "-."),
    "privunit": ("#D55E00", "s", "--"),
}
_SETTINGS: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "local-errors",
}


def draw(rows: Sequence[Row], total: float, stem: Path) -> None:
    """Writes `stem`.svg and `stem`.png, of the first dimension among the rows.

    Args:
        rows: All that was measured.
        total: The epsilon of the rows with several answers.
        stem: The path without its ending.
    """
    dimension = rows[0].dimension
    group = [row for row in rows if row.dimension == dimension]
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(12.5, 5.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        _panel(left, [row for row in group if row.answers == 1], "epsilon")
        left.set(xlabel=f"epsilon, one answer of each client (d = {dimension})")
        left.set_title("Mean squared error per coordinate of a message", loc="left", fontsize=11)
        listed = [
            row for row in group if row.epsilon == total and row.mechanism != "sign-bits, epsilon/d a bit"
        ]
        _panel(right, listed, "answers")
        right.set(xlabel=f"answers of each client, at epsilon = {total:g} together (d = {dimension})")
        right.set_title("Line: by formula. Mark: measured, ± 2 standard errors.", loc="left", fontsize=11)
        figure.legend(handles=_legend(group), loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=110)


def _panel(axes: Axes, rows: Sequence[Row], key: str) -> None:
    ticks = sorted({getattr(row, key) for row in rows})
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
    for name, (color, marker, line) in LOOKS.items():
        group = sorted((row for row in rows if row.mechanism == name), key=lambda row: getattr(row, key))
        at = [getattr(row, key) for row in group]
        axes.plot(at, [row.predicted for row in group], color=color, linestyle=line, linewidth=1.8)
        bars = [2 * row.standard_error for row in group]
        axes.errorbar(
            at, [row.measured for row in group], bars, color=color, fmt=marker, markersize=6, capsize=3
        )
        known = [(place, row.reference) for place, row in zip(at, group, strict=True) if row.reference]
        axes.plot(
            *zip(*known, strict=True) if known else ([], []), "x", color="black", markersize=9, zorder=4
        )


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    there = {row.mechanism for row in rows}
    lines = [
        Line2D([], [], color=color, marker=marker, linestyle=line, label=name)
        for name, (color, marker, line) in LOOKS.items()
        if name in there
    ]
    known = "known figure (of sqkr: with a Kashin frame)"
    return [*lines, Line2D([], [], color="black", linestyle="", marker="x", markersize=9, label=known)]
