"""Which columns of a table are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedprivacy.io.toml_text import closest, suggestion

Column = str | int


def place(column: Column, names: Sequence[str], width: int) -> int | None:
    """The index of a column given by name or index; None if it does not exist."""
    if isinstance(column, str):
        return names.index(column) if column in names else None
    return column if 0 <= column < width else None


def chosen(
    columns: Sequence[Column] | None, without: Sequence[Column] | None, names: Sequence[str], width: int
) -> tuple[int, ...]:
    """The places of the columns that are used, in the order of `columns`, else of the file.

    Args:
        columns: Those to keep, or None for all.
        without: Those to leave out.
        names: The columns' names; empty where they have none.
        width: The number of columns.
    """
    dropped = {place(column, names, width) for column in without or ()}
    places = range(width) if columns is None else [place(column, names, width) for column in columns]
    return tuple(at for at in places if at is not None and at not in dropped)


def unknown(listed: Sequence[Column], names: Sequence[str], width: int) -> Iterator[tuple[int, str, str]]:
    """Yields (position in the list, problem, fix) for each missing or repeated column."""
    seen: dict[int | None, Column] = {}
    for position, column in enumerate(listed):
        at = place(column, names, width)
        if at is None and isinstance(column, str):
            if not names:
                yield position, "the file names no columns", f"Give places, 0 to {width - 1}."
            else:
                near = closest(column, names) is not None or len(names) <= 20
                remedy = suggestion(column, names if near else [*names[:19], "..."], quoted=True)
                yield position, "unknown column", remedy
        elif at is None:
            yield position, f"there are columns 0 to {width - 1}", "They are counted from 0."
        elif at in seen:
            yield position, "the list names this column twice", "Remove one of them."
        seen[at] = column
