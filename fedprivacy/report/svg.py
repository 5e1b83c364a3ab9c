"""Matplotlib figures as inline SVG that follows the page: its colours, its fonts, no global state.

Colours are placeholders in the figure and become CSS variables in the SVG, so that one picture suits
light, dark and print. The same figure gives the same text: fixed hash salt, no date, no metadata.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedprivacy.report.compact import compact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Placeholder -> CSS variable of page.css.
INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
NONE, CENTRAL, LOCAL, DISTRIBUTED = "#050505", "#060606", "#070707", "#080808"
SECOND, THIRD, FOURTH, FIFTH = "#090909", "#0a0a0a", "#0b0b0b", "#0c0c0c"
SIXTH, SEVENTH, EIGHTH, NINTH = "#0d0d0d", "#0e0e0e", "#0f0f0f", "#101010"
_VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper",
    NONE: "--none", CENTRAL: "--central", LOCAL: "--local", DISTRIBUTED: "--distributed",
    SECOND: "--second", THIRD: "--third", FOURTH: "--fourth", FIFTH: "--fifth",
    SIXTH: "--sixth", SEVENTH: "--seventh", EIGHTH: "--eighth", NINTH: "--ninth",
}  # fmt: skip

MARGIN = 12.0  # pixels around a picture that is a file by itself
_COLOURED = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")  # of an artist
_SETTINGS = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and scaled
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 13,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 13,
    "axes.edgecolor": GRID,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 1.0,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "ytick.major.size": 0,
    "ytick.major.pad": 8,
    "xtick.major.size": 5,
    "xtick.major.pad": 5,
    "lines.linewidth": 2.25,
    "lines.markersize": 8,
    "figure.facecolor": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """Our settings while a figure is made and drawn; those of the process come back after."""
    import matplotlib as mpl

    process_wide = ("backend", "backend_fallback", "interactive", "toolbar")
    settings: dict[Any, Any] = {k: v for k, v in mpl.rcParamsDefault.items() if k not in process_wide}
    with mpl.rc_context(settings | _SETTINGS):
        yield


def figure(width: float, height: float) -> Figure:
    """A figure of so many CSS pixels, with a canvas of its own (pyplot never sees it)."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width / 72, height / 72), dpi=72)
    FigureCanvasSVG(drawn)
    return drawn


def place(drawn: Figure, left: float, top: float, right: float, bottom: float) -> Axes:
    """Axes at these margins of the figure, in pixels."""
    width, height = drawn.get_size_inches() * 72
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    return drawn.add_axes(box)


def saved(drawn: Figure, kind: str, title: str) -> bytes:
    """Returns the file of a figure by itself, with the light colours of the page in place of placeholders.

    Args:
        drawn: The figure, made within `style()`. Its colours are changed.
        kind: The format: "png" or "pdf".
        title: The title in the file's metadata.
    """
    import matplotlib as mpl
    from matplotlib.colors import is_color_like, to_rgba

    colours = {to_rgba(placeholder): colour for placeholder, colour in _light().items()}
    for artist in drawn.findobj():
        for part in _COLOURED:
            if (get := getattr(artist, f"get_{part}", None)) is None or not hasattr(artist, f"set_{part}"):
                continue
            colour = get()
            if isinstance(colour, np.ndarray) and colour.ndim == 2:  # of a collection, one for each path
                getattr(artist, f"set_{part}")([_recoloured(each, colours) for each in colour])
            elif is_color_like(colour):
                getattr(artist, f"set_{part}")(_recoloured(colour, colours))
    stream = io.BytesIO()
    metadata = {"Title": title} | ({"CreationDate": None} if kind == "pdf" else {})
    with mpl.rc_context({"pdf.fonttype": 42, "font.family": "DejaVu Sans"}):
        drawn.savefig(
            stream,
            format=kind,
            dpi=216,
            facecolor="white",
            metadata=metadata,
            bbox_inches="tight",
            pad_inches=0.15,
        )
    return stream.getvalue()


def _recoloured(colour: Any, colours: Mapping[Any, str]) -> Any:
    """The colour in place of a placeholder, with the same opacity; any other colour as it is."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(colour)
    known = colours.get((red, green, blue, 1.0))
    return colour if known is None else to_rgba(known, alpha)


@cache
def _light() -> Mapping[str, str]:
    """Placeholder -> colour in the light scheme of page.css."""
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    scheme = css[css.index(":root") : css.index("@media")]
    colours: dict[str, str] = dict(re.findall(r"(--[a-z]+): (#[0-9a-f]{6});", scheme))
    return {placeholder: colours[variable] for placeholder, variable in _VARIABLES.items()}


def alone(drawing: str, caption: str = "") -> str:
    """An `<svg>` element of a page as a file by itself: on white, in the light colours of the page.

    Args:
        drawing: The element.
        caption: That of the page, as HTML, which states the terms of the epsilons; kept as metadata.
    """
    drawing = re.sub(r'<g class="spot".*?</g>', "", drawing, flags=re.DOTALL)  # hover texts need the page
    colours = {_VARIABLES[placeholder]: colour for placeholder, colour in _light().items()}
    drawing = re.sub(r"var\((--[a-z]+)\)", lambda variable: colours[variable.group(1)], drawing)
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)"', drawing)[:2])
    width, height = width + 2 * MARGIN, height + 2 * MARGIN
    box = f'viewBox="{-MARGIN:g} {-MARGIN:g} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    drawing = re.sub(
        r' class="[^"]*" viewBox="[^"]*" width="[^"]*" height="[^"]*"',
        f' xmlns="http://www.w3.org/2000/svg" {box}',
        drawing,
        count=1,
    )
    paper = f'<rect x="{-MARGIN:g}" y="{-MARGIN:g}" width="100%" height="100%" fill="{colours["--paper"]}"/>'
    drawing = drawing.replace('role="group"', 'role="img"', 1)
    if caption:
        drawing = drawing.replace("</title>", f"</title><metadata>{caption}</metadata>", 1)
    return drawing.replace(
        "</desc>", f'</desc>{paper}<g font-family="Arial, sans-serif" fill="{colours["--ink"]}">', 1
    ).replace("</svg>", "</g></svg>")


def write(drawn: Figure, name: str, title: str, alt: str, over: str = "") -> str:
    """The figure as one `<svg>` element to be put into an HTML page.

    Args:
        drawn: The figure, made within `style()`.
        name: Unique on the page; every id of the picture begins with it.
        title: The kind of picture, and its subject.
        alt: A description for readers who cannot see the picture.
        over: What lies over the figure, as SVG.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    width, height = drawn.get_size_inches() * 72
    body = re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", buffer.getvalue(), flags=re.DOTALL)
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r" font-family: [^;\"]*;?", "", body)  # the page's own font
    body = re.sub(r'\bid="', f'id="{name}-', compact(body))
    body = re.sub(r'xlink:href="#', f'href="#{name}-', body).replace("url(#", f"url(#{name}-")
    for placeholder, variable in _VARIABLES.items():
        body = re.sub(rf"(fill|stroke): {placeholder}\b", rf"\1: var({variable})", body)
    return (
        f'<svg class="{name}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="{"group" if over else "img"}" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-desc">{html.escape(alt)}</desc>{body.strip()}{over}</svg>'
    )
