"""`fedprivacy import`: a table becomes an .npz file and a scenario that is ready to run."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.data import storage, tables
from fedprivacy.data.npz import facts
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file, replacing
from scenarios.authoring.brought_data import Brought, notes_on, owners_named
from scenarios.authoring.new import check_name

_BOUND = re.compile(r"(.+)=([^:=]+):([^:=]+)")


@dataclass(frozen=True)
class Imported:
    """The files that were written, and what their user has to know.

    Args:
        data: The .npz file.
        scenario: The scenario file.
        notes: Statements on what was read off the records, on missing values and on the split.
        command: The command that runs the scenario.
    """

    data: Path
    scenario: Path
    notes: tuple[str, ...]
    command: str


def import_table(
    path: Path,
    *,
    label: str,
    client: str | None,
    test: str,
    drop: Sequence[str],
    bounds: Sequence[str],
    name: str | None,
    out: Path,
) -> Imported:
    """Writes NAME.npz and NAME.toml from a table.

    Args:
        path: A CSV, TSV or Parquet file.
        label: The column of the labels.
        client: The column that names the owner of each record; None: each record has its own.
        test: The share of records to hold out, or a second file with test records.
        drop: Columns to leave out.
        bounds: Public limits of columns, each as "column=low:high".
        name: The name of the scenario; None: that of the file.
        out: The folder of both files.

    Raises:
        InputError: with what is wrong; no file is written then.
    """
    name = name or re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")
    check_name(name)
    data, scenario = out / f"{name}.npz", out / f"{name}.toml"
    if there := [file for file in (data, scenario) if file.exists()]:
        raise InputError(f"{there[0]}: already exists. Choose another --name, or another folder with --out.")
    limits, fraction = _options(bounds, test)
    frame = tables.read_table(path)
    parts = tables.prepared(
        frame,
        tables.read_table(test) if fraction is None else fraction,
        label=label,
        user=client,
        drop=drop,
        bounds=limits,
        source=str(path),
        option="--bounds",
    )
    remedy = f"--bounds {shlex.quote(f'{parts.read[0]}=LOW:HIGH')}" if parts.read else ""
    notes = notes_on(parts, scenario.name, f"Give public limits with {remedy}.")
    try:
        str(data).encode()  # what TOML can hold
        out.mkdir(parents=True, exist_ok=True)
        with replacing(data, storage.OWNER_ONLY) as stream:
            tables.save(stream, tables.arrays_of(parts.train, parts.test))
        text = Brought(
            name=name,
            path=str(data),
            facts=facts(str(data)),
            bounds=parts.bounds,
            read=parts.read,
            owners=owners_named(parts.train, parts.test),
            description=f"The table {path.name}.",
            command=_command(path, label, client, test, drop, bounds),
        ).text()
        replace_file(scenario, text.encode())
    except UnicodeEncodeError:
        data.unlink(missing_ok=True)
        raise InputError(f"{out}: not a name in Unicode. Choose another folder with --out.") from None
    except OSError as error:
        data.unlink(missing_ok=True)
        raise InputError(f"{out}: {error.strerror or error}. Choose another folder with --out.") from error
    except BaseException:
        data.unlink(missing_ok=True)
        raise
    return Imported(data, scenario, notes, shlex.join(["fedprivacy", "run", str(scenario)]))


def _command(
    path: Path, label: str, client: str | None, test: str, drop: Sequence[str], bounds: Sequence[str]
) -> str:
    """Returns the command that wrote the scenario."""
    words = ["fedprivacy", "import", str(path), "--label", label, "--test", test]
    words += ["--client", client] if client else []
    words += [word for name in drop for word in ("--drop", name)]
    words += [word for text in bounds for word in ("--bounds", text)]
    return shlex.join(words)


def _options(bounds: Sequence[str], test: str) -> tuple[Mapping[str, tuple[float, float]], float | None]:
    """Returns the limits and the share to hold out, or raises every mistake in them."""
    problems: list[str] = []
    limits: dict[str, tuple[float, float]] = {}
    fraction = None
    for text in bounds:
        try:
            given = _limits(text)
            if limits.keys() & given:
                raise InputError(f"--bounds {text}: this column has bounds already. Give them once.")
            limits |= given
        except InputError as error:
            problems.append(str(error))
    try:
        fraction = _fraction(test)
    except InputError as error:
        problems.append(str(error))
    if problems:
        raise tables.TableError("\n".join(problems))
    return limits, fraction


def _fraction(test: str) -> float | None:
    """Returns the share to hold out, None where `test` names a file."""
    try:
        share = float(test)
    except ValueError:
        return None
    if not 0 < share < 1:
        raise InputError(f"--test {test}: must be a share above 0 and below 1, or a file of test records.")
    return share


def _limits(text: str) -> dict[str, tuple[float, float]]:
    match = _BOUND.fullmatch(text)
    try:
        low, high = (float(match[2]), float(match[3])) if match else (0.0, 0.0)
    except ValueError:
        low = high = 0.0
    if match is None or not (low < high and math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"--bounds {text}: must be COLUMN=LOW:HIGH with LOW below HIGH, as age=0:120.")
    return {match[1]: (low, high)}
