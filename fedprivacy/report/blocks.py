"""The blocks of a page. The template renders each kind; blocks contain text, never HTML.

The one exception is the SVG of a picture, which `charts` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol


@dataclass(frozen=True)
class Entry:
    """A cell of a table, or a line of a card: a text, a smaller note below it, and a tone.

    The tone is "good", "bad", "" or a level of `guarantees.certainty`; a sign stands beside its colour.
    """

    text: str
    note: str = ""
    tone: str = ""


ANSWER_WORDS = 30  # the most words of the sentence that a page opens with

Value = str | Entry | tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """A row of a table that heads the rows below it."""

    text: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table; the first entry of each row is the row's heading.

    Args:
        caption: A description of the table, with the terms of its epsilons.
        head: The column headings.
        rows: One sequence of texts, entries or lists of texts per row, as many as there are headings;
            or the heading of a group of rows.
        numeric: The indices of the columns of numbers (set right).
        stacked: Whether, on a phone, each row becomes a block of its own (for long texts).
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Value] | Group]
    numeric: frozenset[int] = frozenset()
    stacked: bool = False
    kind: ClassVar[str] = "table"


class Drawing(Protocol):
    """A drawing of a picture."""

    @property
    def name(self) -> str:
        """Unique on the page."""
        ...

    @property
    def alt(self) -> str:
        """What it shows, for those who cannot see it."""
        ...

    def draw(self, *, narrow: bool) -> str:
        """Inline SVG for wide or narrow windows."""
        ...

    def saved(self, kind: str) -> bytes:
        """Returns it as a file: "svg", "png" or "pdf"."""
        ...


@dataclass(frozen=True)
class Picture:
    """A picture in two shapes (for wide and narrow windows), with tables of the same figures.

    Args:
        drawing: Drawn only when the page is printed, because it takes long.
        caption: A description of the picture, with the terms of its epsilons.
        tables: The figures that it was drawn from.
    """

    drawing: Drawing
    caption: str
    tables: Sequence[Table]
    kind: ClassVar[str] = "picture"

    @property
    def wide(self) -> str:
        """For a screen or a print."""
        return self.drawing.draw(narrow=False)

    @property
    def narrow(self) -> str:
        """For a phone."""
        return self.drawing.draw(narrow=True)


@dataclass(frozen=True)
class Text:
    """A paragraph, with a tone (a class of the style sheet), and a link to a section of the page."""

    text: str
    tone: str = ""
    link: str = ""
    link_text: str = ""
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Finding:
    """The main result, with its caveat right beside it."""

    text: str
    terms: str
    heading: str
    caution: str
    kind: ClassVar[str] = "finding"


@dataclass(frozen=True)
class Tiles:
    """A few figures in large type: (label, value, note)."""

    tiles: Sequence[tuple[str, str, str]]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    facts: Sequence[tuple[str, str]]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: Sequence[str]
    kind: ClassVar[str] = "items"


@dataclass(frozen=True)
class Code:
    """Text to be copied as it is."""

    text: str
    kind: ClassVar[str] = "code"


Block = Table | Picture | Text | Finding | Tiles | Facts | Items | Code


@dataclass(frozen=True)
class Details:
    """Blocks that are folded until opened; a print shows the open ones."""

    summary: str
    blocks: Sequence[Block]
    kind: ClassVar[str] = "details"


@dataclass(frozen=True)
class Section:
    """A headed part of the page; an operator section is set apart from all others.

    Args:
        id: Unique on the page; a link to it opens the section.
        heading: Its heading, also in the table of contents.
        blocks: Its content.
        operator: Whether it is the operator's alone.
        folded: Whether its content is hidden until it is opened.
    """

    id: str
    heading: str
    blocks: Sequence[Block | Details]
    operator: bool = False
    folded: bool = True


@dataclass(frozen=True)
class Card:
    """A question and its answer in a few lines, and what the lines rest on."""

    question: str
    lines: Sequence[Entry]
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """The result, before everything else on the page.

    Args:
        sentence: At most `ANSWER_WORDS` words.
        value: The number in focus.
        label: What the number is.
        terms: The terms of every epsilon in it.
        cards: The cost of privacy, who is protected, and what an attacker would learn.
    """

    sentence: str
    value: str
    label: str
    terms: str
    cards: Sequence[Card]


@dataclass(frozen=True)
class Page:
    """A report: its title, the answer, what ran, its blocks before the first heading, and its sections.

    Args:
        title: What ran, on which data.
        eyebrow: The kind of report.
        subtitle: The description of what ran.
        answer: The result, above everything else; None where a page has no public part.
        lead: Blocks that are never folded, the picture first.
        sections: The details; most are folded.
    """

    title: str
    eyebrow: str
    subtitle: str
    answer: Answer | None
    lead: Sequence[Block | Details]
    sections: Sequence[Section]
