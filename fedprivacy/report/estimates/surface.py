"""The objective over the plane of two coefficients, with the path of a noisy descent drawn on it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from matplotlib.ticker import MaxNLocator

from fedprivacy.documents.estimates import EstimatesDocument, Surface
from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Picture, Section, Table
from fedprivacy.report.common import spaced

_LEVELS = 12
_STEPS = 300  # points of a path that are drawn


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
    rows = [
        (name, words.number(exact), words.number(estimate))
        for name, exact, estimate in zip(surface.names, surface.minimum, surface.estimate, strict=True)
    ]
    table = Table(caption, ("Coordinate", "Minimum", "Private estimate"), rows, numeric=frozenset({1, 2}))
    picture = Picture(partial(_draw, surface), caption, [table])
    return [Section("surface", "The surface and the private path", [picture])]


def _draw(surface: Surface, *, narrow: bool) -> str:
    axis, values = np.array(surface.axis), np.array(surface.values)
    path = np.array(spaced(list(surface.path), _STEPS)) if surface.path else np.zeros((0, 2))
    with svg.style():
        drawn = svg.figure(360.0 if narrow else 920.0, 380.0 if narrow else 600.0)
        axes = svg.place(drawn, 60, 20, 16, 60)
        # Heights that grow by a constant factor above the minimum: it lies in a narrow valley.
        rise = values - values.min()
        top = float(rise.max()) or 1.0
        levels = values.min() + np.geomspace(top * 1e-3, top, _LEVELS)
        axes.contour(axis, axis, values, levels=levels, colors=svg.MUTED, linewidths=0.8)
        axes.plot(path[:, 0], path[:, 1], color=svg.CENTRAL, linewidth=1.0)
        axes.plot(
            *surface.minimum, color=svg.INK, marker="x", markersize=11, markeredgewidth=2.5, linestyle=""
        )
        axes.plot(*surface.estimate, color=svg.LOCAL, marker="o", markersize=9, linestyle="")
        points = np.vstack([path, [surface.minimum], [surface.estimate], np.zeros((1, 2))])
        for low, high, set_limits in (
            (points[:, 0].min(), points[:, 0].max(), axes.set_xlim),
            (points[:, 1].min(), points[:, 1].max(), axes.set_ylim),
        ):
            pad = 0.25 * (high - low) or 0.5
            set_limits(max(low - pad, axis[0]), min(high + pad, axis[-1]))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(surface.names[0])
        axes.set_ylabel(surface.names[1])
        apart = math.dist(surface.estimate, surface.minimum)
        alt = (
            "Lines of equal height of the objective around its minimum, and the path of a private descent "
            f"from 0, whose average lies {apart:.3g} from the minimum."
        )
        return svg.write(
            drawn, f"surface-{'narrow' if narrow else 'wide'}", "The objective with a private path", alt
        )
