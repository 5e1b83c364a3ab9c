"""Exports a stored result as tables, in CSV or Parquet files: public values alone.

Operator-only values are left out, so that a file can go where the report goes; with `operator` they are in
files whose names say so. What only a simulation knows, such as true values, has names that begin with
"simulation_".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.documents.redaction import for_operator, public
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.spreadsheet import as_text
from fedprivacy.verification.verify import checked_document
from scenarios.stored.tables import OPERATOR_TABLE, TABLES, Rows, operator_values

FORMATS = ("csv", "parquet")
# Kind -> columns that only a simulation knows: the documents list their fields as simulation_only.
SIMULATED: Mapping[str, frozenset[str]] = {
    "statistics": frozenset({"true", "error"}),
    "compare-statistics": frozenset({"rmse", "covered"}),
    "erm": frozenset({"excess", "low", "high"}),
}
SIZES = ("cells[].clients",)  # private under add-remove, as the document says then
PREFIX = "simulation_"


def export(run: Path, folder: Path, format_: str, *, operator: bool = False) -> list[Path]:
    """Writes each table of a stored result to a file `RUN-TABLE.csv` or `RUN-TABLE.parquet`.

    Args:
        run: The run directory. Its guarantees are derived again first.
        folder: The folder of the files, which is made if needed.
        format_: "csv" or "parquet".
        operator: Whether operator-only values are exported: in files `RUN-operator-TABLE`, besides one named
            "values" with all of them.

    Returns:
        The files.

    Raises:
        InputError: if it is no run directory, its record contradicts itself, or a file exists or cannot be
            written. Nothing is written then.
    """
    if format_ not in FORMATS:
        raise InputError(f"format = {format_!r}: no such format. Choose from: {', '.join(FORMATS)}.")
    document, name = checked_document(run), run.resolve().name
    tables = public_tables(document)
    if for_operator(document) and not operator:
        raise InputError(
            f"{run}: all of its tables are operator-only, as an account claims. Give --operator."
        )
    if operator:
        name += "-operator"
        tables = {**whole_tables(document), OPERATOR_TABLE: operator_values(document)}
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


def whole_tables(document: Mapping[str, Any]) -> dict[str, Rows]:
    """Returns the tables of a result document with its operator-only columns."""
    tables = {name: rows_of(document) for name, rows_of in TABLES[document["kind"]].items()}
    return {
        name: [_renamed(row, document) for row in rows]
        for name, rows in tables.items()
        if rows or name != "groups"  # of a scenario that names none
    }


def public_tables(document: Mapping[str, Any]) -> dict[str, Rows]:
    """Returns the tables of a document without columns that depend on an operator-only field; maybe none."""
    if for_operator(document):
        return {}
    shown = public(document, blank=True)
    tables = {}
    for name, rows_of in TABLES[document["kind"]].items():
        whole, rows = rows_of(document), rows_of(shown)
        if not rows and (whole or name == "groups"):  # all are withheld, or the scenario names none
            continue
        lost = {
            column
            for full, row in zip(whole, rows, strict=True)
            for column, value in full.items()
            # A text without its folders is another one.
            if row.get(column) != value and value == value and not isinstance(row.get(column), str)
        }
        tables[name] = [
            _renamed({column: value for column, value in row.items() if column not in lost}, document)
            for row in rows
        ]
    return tables


def _renamed(row: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row whose columns that only a simulation knows say so."""
    sizes = {path.rpartition(".")[2] for path in document.get("simulation_only") or () if path in SIZES}
    simulated = SIMULATED.get(document["kind"], frozenset()) | sizes
    return {f"{PREFIX * (column in simulated)}{column}": value for column, value in row.items()}


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
    return as_text(on_one_line(value))


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
