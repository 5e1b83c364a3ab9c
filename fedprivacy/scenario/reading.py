"""Reads a scenario file into tables, with findings for files that have none.

bytes -> text -> tables (TOML, with --set laid over), then in `validation`:
sections, each validated by itself -> checks between them -> the cells of the comparison
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from fedprivacy.errors import Finding, Problem, ScenarioError
from fedprivacy.io.regular_file import LOOP, NotRegular, TooLarge, is_loop, read_regular
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import changes
from fedprivacy.scenario.bounds import MAX_BYTES, TooMuch, check_text, wide_number
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import Places
from fedprivacy.scenario.lines import key_lines


def read_text(file: str | Path) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: It is missing, no regular file, not readable, larger than 1 MB, or not UTF-8.
    """
    line = None
    try:
        return read_regular(file, MAX_BYTES).decode("utf-8-sig")
    except TooLarge:
        what, remedy = "larger than 1 MB", "A scenario is a short text; is this the right file?"
    except NotRegular as error:
        what, remedy = str(error.strerror), "Save the text in a file, and name that."
    except FileNotFoundError:
        what, remedy = "no such file", "`fedprivacy scenarios` lists what is ready to run."
    except IsADirectoryError:
        what, remedy = "a folder, not a file", "Name the .toml file in it."
    except PermissionError:
        what, remedy = "may not be read", "Ask for the right to read it."
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what, remedy = "not text in UTF-8", "Save it as UTF-8 text; is this the right file?"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what, remedy = LOOP if is_loop(error) else (f"cannot be read: {reason}", "Check the name.")
    raise ScenarioError([Problem("", what, remedy, str(file), line)])


def parse(text: str, file: str, overrides: Sequence[str]) -> tuple[Tables, Places, list[Problem]]:
    """The tables of a TOML text with `--set` options laid over, and where each key comes from.

    Raises:
        ScenarioError: The text is empty or not TOML.
    """
    settings, problems = changes.parse_overrides(overrides)
    try:
        check_text(text)
        tables: Tables = tomllib.loads(text)
        lines = key_lines(text)
    except (TooMuch, RecursionError) as error:
        what = str(error) if isinstance(error, TooMuch) else "nested too deep"
        remedy = "A scenario is a short text; is this the right file?"
        raise ScenarioError([*problems, Problem("", what, remedy, file)]) from None
    except ValueError as error:  # TOMLDecodeError, or a number with thousands of digits
        raise ScenarioError([*problems, _not_toml(text, file, str(error))]) from None
    if not tables:
        remedy = "`fedprivacy scenarios` lists ready ones to start from."
        raise ScenarioError([*problems, Problem("", "the file is empty", remedy, file)])
    fitting = []
    for setting in settings:
        try:
            changes.lay(tables, {setting.path: setting.value})
            fitting.append(setting)
        except KeyError:
            problems.append(Problem(f"--set {setting.label}", "leads through a key that is not a section"))
    try:
        tables = changes.lay(tables, {setting.path: setting.value for setting in fitting})
    except KeyError:
        labels = " ".join(f"--set {setting.label}" for setting in fitting)
        problems.append(Problem(labels, "these contradict each other"))
    places = Places(file, lines, fitting)
    if (path := wide_number(tables)) is not None:
        raise ScenarioError([*problems, places.problem(Finding(path, "a whole number of more than 64 bits"))])
    return tables, places, problems


def _not_toml(text: str, file: str, message: str) -> Problem:
    where = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    what = message[: where.start()] if where else message
    rows = text.splitlines() or [""]
    line = int(where[1]) if where and where[1] else len(rows)
    row = rows[min(line, len(rows)) - 1].strip()
    shown = f" in {literal(row)}" if row else ""
    remedy = "A line is `key = value` or `[section]`, and text stands in quotes."
    return Problem("", f"not TOML: {what[:1].lower()}{what[1:]}{shown}", remedy, file, line)
