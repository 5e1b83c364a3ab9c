"""Exports a stored result as tables, in CSV or Parquet files: public values alone.

What the record marks operator-only is left out, so that a file can go where the report goes. What only a
simulation knows, such as true values, has names that begin with "simulation_".
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.documents.quality import MEASURED
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.escape import on_one_line
from fedprivacy.records.run_record import TESTED_NOTE
from fedprivacy.verification.verify import checked_document
from scenarios.stored.tables import TABLES, Rows

FORMATS = ("csv", "parquet")
# Kind -> columns that only a simulation knows: the documents list their fields as simulation_only.
SIMULATED: Mapping[str, frozenset[str]] = {
    "statistics": frozenset({"true", "error"}),
    "compare-statistics": frozenset({"rmse", "covered"}),
    "erm": frozenset({"excess", "low", "high"}),
}
SIZES = ("cells[].clients",)  # private under add-remove, as the document says then
TESTED = {
    *("rounds[].accuracy", "rounds[].loss", "rounds[].balanced_accuracy"),
    *("cells[].accuracy", "cells[].accuracies", *MEASURED),
}
PREFIX = "simulation_"
_STEP = re.compile(r"([^.\[]+)(\[\])?")


def export(run: Path, folder: Path, format_: str) -> list[Path]:
    """Writes each table of a stored result to a file `RUN-TABLE.csv` or `RUN-TABLE.parquet`.

    Args:
        run: The run directory. Its guarantees are derived again first.
        folder: The folder of the files, which is made if needed.
        format_: "csv" or "parquet".

    Returns:
        The files.

    Raises:
        InputError: if it is no run directory, its record contradicts itself, or a file exists or cannot be
            written. Nothing is written then.
    """
    if format_ not in FORMATS:
        raise InputError(f"format = {format_!r}: no such format. Choose from: {', '.join(FORMATS)}.")
    tables = public_tables(checked_document(run))
    name = run.resolve().name
    contents = {
        folder / f"{name}-{table}.{format_}": (_csv if format_ == "csv" else _parquet)(rows)
        for table, rows in tables.items()
    }
    if there := [path for path in contents if path.exists() or path.is_symlink()]:
        raise InputError(f"{there[0]}: already exists. Choose another folder with --out.")
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            replace_file(path, content)
            written.append(path)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{folder}: {error.strerror}. Choose another folder with --out.") from error
        raise
    return written


def public_tables(document: Mapping[str, Any]) -> dict[str, Rows]:
    """Returns the tables of a result document without the fields that it marks operator-only."""
    kind = document["kind"]
    hidden = {str(path) for path in document.get("operator_only") or ()}
    if TESTED_NOTE in document.get("notes", ()):
        hidden |= TESTED  # every guarantee of the result assumes that its observer does not see them
    sizes = {path.rpartition(".")[2] for path in document.get("simulation_only") or () if path in SIZES}
    simulated = SIMULATED.get(kind, frozenset()) | sizes
    public = _without(document, hidden)
    tables = {}
    for name, rows_of in TABLES[kind].items():
        whole, rows = rows_of(document), rows_of(public)
        if name == "groups" and not whole:  # of a scenario that names none
            continue
        lost = {
            column
            for full, row in zip(whole, rows, strict=True)
            for column, value in full.items()
            if row.get(column) != value and value == value
        }
        tables[name] = [
            {
                f"{PREFIX * (column in simulated)}{column}": value
                for column, value in row.items()
                if column not in lost
            }
            for row in whole
        ]
    return tables


def _without(value: Any, hidden: set[str], path: str = "") -> Any:
    """Returns a copy of a document in which the hidden fields are None."""
    if isinstance(value, Mapping):
        paths = {key: f"{path}.{key}" if path else str(key) for key in value}
        return {
            key: None if paths[key] in hidden else _without(item, hidden, paths[key])
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without(item, hidden, f"{path}[]") for item in value]
    return value


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def _csv(rows: Rows) -> bytes:
    stream = io.StringIO(newline="")
    columns, table = _columns(rows), csv.writer(stream, lineterminator="\n")
    table.writerow(map(cell, columns))  # a column may be named by the record
    table.writerows([cell(row.get(column)) for column in columns] for row in rows)
    return stream.getvalue().encode()


def cell(value: object) -> object:
    """Returns a value for a CSV file; texts begin no formula and steer no terminal."""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    if not isinstance(value, str):
        return value
    text = on_one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _parquet(rows: Rows) -> bytes:
    import pandas as pd

    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError(
            "--parquet: pyarrow is needed. Install it with: pip install 'fedprivacy[parquet]'"
        ) from None
    stream = io.BytesIO()
    frame = pd.DataFrame(rows, columns=_columns(rows)).rename(columns=on_one_line)
    frame.to_parquet(stream, index=False)
    return stream.getvalue()
