"""Text in a chart: how wide it is, where its lines break, and the box that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fedprivacy.report import svg

SIZE, SMALL = 13.0, 12.0  # pixels of the type
LINE = 16.0  # pixels from a line to the next
_LARGE, _UNIT = 64.0, 65536.0  # pixels at which a letter is measured; FreeType counts in 65536ths of it


@dataclass(frozen=True)
class Label:
    """A line of text at a place of the picture, in pixels from its upper left corner.

    Args:
        text: One line.
        x: Its left end, middle or right end, as `align` specifies.
        y: The middle of its letters.
        align: "left", "center" or "right".
        color: One of `svg`.
        size: Of the type, in pixels.
        bold: Whether it is set in bold type.
    """

    text: str
    x: float
    y: float
    align: str = "left"
    color: str = svg.MUTED
    size: float = SIZE
    bold: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Its left, upper, right and lower edge."""
        wide = width(self.text, self.size, bold=self.bold)
        left = self.x - {"left": 0.0, "center": 0.5, "right": 1.0}[self.align] * wide
        return left, self.y - 0.5 * self.size, left + wide, self.y + 0.5 * self.size

    def moved(self, across: float, down: float) -> Label:
        """The same elsewhere."""
        return replace(self, x=self.x + across, y=self.y + down)


def overlap(first: Label, second: Label) -> bool:
    """Whether two labels share a spot."""
    (left, top, right, bottom), (x0, y0, x1, y1) = first.box, second.box
    return min(right, x1) > max(left, x0) and min(bottom, y1) > max(top, y0)


@lru_cache(maxsize=8192)
def width(text: str, size: float = SIZE, *, bold: bool = False) -> float:
    """How many pixels a line takes.

    Measured in DejaVu Sans, which comes with matplotlib and is wider than the fonts of the style sheet: what
    fits in it fits in them, on machines that have other fonts than this one.
    """
    return size * sum(_advance(letter, bold=bold) for letter in text)


@lru_cache(maxsize=4096)
def _advance(letter: str, *, bold: bool) -> float:
    """The width of a letter at size 1; that of a square where the font does not have it."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))
    if not font.get_char_index(ord(letter)):
        return 1.0
    font.set_size(_LARGE, 72)
    return float(font.load_char(ord(letter)).linearHoriAdvance) / _UNIT / _LARGE


def cut(text: str, room: float, size: float = SIZE, *, bold: bool = False) -> str:
    """A line that fits, cut in its middle: two names may differ only at their ends.

    >>> cut("epsilon 8", 200), cut("a name that has no end", 80)
    ('epsilon 8', 'a nam…end')
    """
    text = " ".join(text.split())
    if width(text, size, bold=bold) <= room:
        return text
    for most in range(len(text) - 1, 1, -1):
        end = most // 2 - 1
        shorter = f"{text[: most - 1 - end]}…{text[len(text) - end :]}"
        if width(shorter, size, bold=bold) <= room:
            return shorter
    return "…"


def wrapped(text: str, room: float, size: float = SIZE, *, bold: bool = False, most: int = 6) -> list[str]:
    """The lines of a text, each of which fits; of more than `most` the last ends with an ellipsis."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size, bold=bold) <= room:
            lines[-1] = longer
        elif len(lines) == most:
            lines[-1] = cut(f"{lines[-1]} …", room, size, bold=bold)
            break
        else:
            lines.append(cut(word, room, size, bold=bold))
    return lines


def thinned(labels: Sequence[Label], gap: float) -> list[Label]:
    """Labels beside each other of which none touches another; the first and the last stay."""
    ordered = sorted(labels, key=lambda label: label.x)
    if len(ordered) < 2:
        return ordered
    shown, last = [ordered[0]], ordered[-1]
    for label in ordered[1:-1]:
        if label.box[0] - shown[-1].box[2] >= gap and last.box[0] - label.box[2] >= gap:
            shown.append(label)
    if last.box[0] - shown[0].box[2] >= gap:
        shown.append(last)
    return shown
