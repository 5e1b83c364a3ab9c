"""Files that a page carries in itself, as links: the values of a chart as CSV, its picture as SVG."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from urllib.parse import quote

from fedprivacy.io.spreadsheet import as_text
from fedprivacy.report.blocks import Entry, Group, Picture, Table, Value

NOTHING = "—"  # a cell without a figure, which is empty in a file
# Characters that mean the same in a URI and in an attribute of HTML.
_PLAIN = " !$()*+,-./:;=?@[]^_`{|}~"


def csv_text(tables: Sequence[Table]) -> str:
    """The tables of a chart as CSV (RFC 4180): of several each below its caption.

    The heading of a group of rows is the first column of its rows.
    """
    stream = io.StringIO()
    writer = csv.writer(stream)
    for place, table in enumerate(tables):
        if len(tables) > 1:
            writer.writerows([[], [_cell(table.caption)]] if place else [[_cell(table.caption)]])
        writer.writerows(_rows(table))
    return stream.getvalue()


def data_uri(kind: str, content: str) -> str:
    """A file as the target of a link, which no part of HTML can leave.

    Args:
        kind: Its media type.
        content: Its text.
    """
    # The page names no place elsewhere, and tests hold it to that: not even the name of SVG's namespace.
    return f"data:{kind};charset=utf-8,{quote(content, safe=_PLAIN)}".replace("://", "%3A//")


def _rows(table: Table) -> list[list[str]]:
    grouped = any(isinstance(row, Group) for row in table.rows)
    rows = [[*(["Group"] if grouped else []), *map(_cell, table.head)]]
    group = ""
    for row in table.rows:
        if isinstance(row, Group):
            group = _cell(row.text)
        else:
            rows.append([*([group] if grouped else []), *map(_cell, row)])
    return rows


def _cell(value: Value) -> str:
    """A cell as one line of text: the note of an entry in brackets, a list with semicolons."""
    if isinstance(value, Entry):
        text = f"{value.text} ({value.note})" if value.note else value.text
    else:
        text = value if isinstance(value, str) else "; ".join(value)
    text = " ".join(text.split())
    if text == NOTHING:
        return ""
    return as_text(text)


def links(picture: Picture) -> list[tuple[str, str, str]]:
    """The downloads of a picture: text, file name and target of each link."""
    name, drawing = picture.drawing.name, picture.drawing.saved("svg").decode()
    return [
        ("values (CSV)", f"{name}.csv", data_uri("text/csv", csv_text(picture.tables))),
        ("picture (SVG)", f"{name}.svg", data_uri("image/svg+xml", drawing)),
    ]
