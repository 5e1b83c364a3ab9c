"""Figures that a notebook shows, whether or not pyplot is in use."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure as the last value of a cell is its picture."""

    def _repr_png_(self) -> bytes:
        """Returns the picture as PNG."""
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()
