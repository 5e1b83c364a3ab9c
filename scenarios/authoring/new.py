"""`fedprivacy new`: a new scenario file with every key explained.

It copies the text of another scenario with its comments and changes only the name. Keys without a comment
get one, and each key that the file does not give is written with its default, commented out.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.lines import key_lines
from fedprivacy.scenario.loading import AnyScenario, loads, sections_of
from fedprivacy.scenario.reading import read_text
from fedprivacy.scenario.sections import Head
from scenarios.authoring.catalogue import ready, start_command
from scenarios.authoring.key_reference import Options, commented

KeyPath = tuple[str | int, ...]
GENERATED_BY = "# Made by `fedprivacy new"
STALE = "This describes {}: update it once you change a setting."


def new(name: str, source: Path, origin: str, out: Path) -> str:
    """Writes a commented copy of a scenario under another name.

    Returns:
        The command that starts it.

    Args:
        name: The new scenario's name.
        source: The file to start from.
        origin: That file as the user named it.
        out: The file to write.

    Raises:
        InputError: the name is not one, the source is not a scenario, `out` exists or cannot be
            written; nothing is written then.
    """
    check_name(name)
    text = draft(read_text(source), name, origin, out)
    try:
        with out.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"{out}: already exists. Choose another file with --out.") from None
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}. Choose another file with --out.") from error
    return shlex.join(["fedprivacy", start_command(tomllib.loads(text)), str(out)])


def draft(text: str, name: str, origin: str, out: Path) -> str:
    """Returns the text of the new file; it reads as the same scenario, apart from the name.

    Args:
        text: The text to start from.
        name: The new scenario's name.
        origin: Where the text comes from, as the user named it.
        out: The file that it is for, as a command would name it.

    Raises:
        InputError: the text is not a scenario.
    """
    scenario = loads(text, origin)
    rows = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if rows[0].startswith(GENERATED_BY):
        del rows[:3]
    named = f"fedprivacy \\1 {shlex.quote(str(out))}"
    of_source = rf"\bfedprivacy (run|compare|replay|tune) {re.escape(scenario.name)}(?![\w.-])"
    rows = [re.sub(of_source, named, row) if row.startswith("#") else row for row in rows]
    rows = _Draft(rows, scenario, origin).render(name)
    command = shlex.join(["fedprivacy", "new", name, "--from", origin])
    head = [
        f"# Made by `{command}`.",
        "# A key that is commented out shows its value, or an example: take away the # to set another.",
        "#",
    ]
    result = "\n".join([*head, *rows]) + "\n"
    if loads(result, str(out)) != scenario.model_copy(update={"name": name}):
        raise InputError(f"{origin}: its layout cannot be copied by this command. Copy it by hand.")
    return result


def check_name(name: str) -> None:
    """Refuses what is no name for a new scenario.

    Raises:
        InputError: it has other characters, or is the name of a ready scenario.
    """
    pattern = next(m.pattern for m in Head.model_fields["name"].metadata if getattr(m, "pattern", None))
    if not re.fullmatch(pattern, name):
        raise InputError(f"{name[:200]!r}: not a valid name. Use letters, digits and hyphens, at most 64.")
    if name in ready():
        raise InputError(
            f"{name}: the name of a ready scenario. Choose another, or start it with `fedprivacy run {name}`."
        )


class _Draft:
    """Edits the rows of a scenario file; each step leaves valid TOML."""

    def __init__(self, rows: list[str], scenario: AnyScenario, origin: str) -> None:
        self.rows, self.scenario, self.origin = rows, scenario, origin
        self.lines: Mapping[KeyPath, int] = key_lines("\n".join(rows))
        self.tables: dict[str, Any] = tomllib.loads("\n".join(rows))
        self.headers = {
            line: path
            for path, line in self.lines.items()
            if rows[line - 1].lstrip().startswith("[") and _paths(rows[line - 1]) == [path]
        }
        # Line -> the entry that begins there, and its last line.
        self.entries: dict[int, tuple[KeyPath, int]] = {}
        for path, line in self.lines.items():
            if line not in self.headers and line not in self.entries:
                end = self._end(line)
                if end is not None:
                    self.entries[line] = (path, end)

    def render(self, name: str) -> list[str]:
        """Returns the rows of the new file."""
        above: dict[int, list[str]] = {}
        below: dict[int, list[str]] = {}
        for line, (_, end) in self.entries.items():
            key = self._key(line)
            if key == ("name",):
                self._rename(line, end, name)
            elif key is not None:
                self._add_comment(key, line, end, above)
        tail: list[str] = []
        for section in sections_of(self.scenario):
            self._add_unset(section, below, tail)
        rows = []
        for line, row in enumerate(self.rows, 1):
            rows += [*above.get(line, []), row, *below.get(line, [])]
        return rows + tail

    def _end(self, line: int) -> int | None:
        """Returns the last line of the entry that begins on a line, if one begins there."""
        for end in range(line, len(self.rows) + 1):
            if _paths("\n".join(self.rows[line - 1 : end])):
                return end
        return None

    def _table(self, line: int) -> KeyPath:
        """Returns the table that a line belongs to."""
        before = [header for header in self.headers if header < line]
        return self.headers[max(before)] if before else ()

    def _key(self, line: int) -> KeyPath | None:
        """Returns the key of an entry with a single plain value, None for any other entry."""
        end = self.entries[line][1]
        paths = _paths("\n".join(self.rows[line - 1 : end]))
        return (*self._table(line), *paths[0]) if len(paths) == 1 else None

    def _rename(self, line: int, end: int, name: str) -> None:
        comment = "" if line != end else _comment(self.rows[line - 1])
        first = f"name = {literal(name)}" + (f"  {comment}" if comment else "")
        self.rows[line - 1 : end] = [first, *[""] * (end - line)]

    def _add_comment(self, key: KeyPath, line: int, end: int, above: dict[int, list[str]]) -> None:
        """Adds a comment to an entry without one, if the schema knows its key."""
        *above_it, last = map(str, key)
        section = tuple(above_it)
        if section not in sections_of(self.scenario):
            return
        options = Options(self.scenario, section)
        about = options.about(last)
        if key == ("tuning",):
            about = f"{about} {STALE.format(self.origin)}"
        if line > 1 and self.rows[line - 2].lstrip().startswith("#"):
            return
        comment, choices = _comment(self.rows[line - 1]), options.choices(last)
        if line == end and comment and choices not in f"{comment} {self._below(end)}":
            self.rows[line - 1] = "\n".join([self.rows[line - 1], *commented("#", choices)])
        elif line == end and not comment:
            first, *more = commented(self.rows[line - 1].rstrip(), about)
            self.rows[line - 1] = "\n".join([first, *more])
        elif line != end:
            above[line] = [f"# {about}"]

    def _below(self, line: int) -> str:
        """Returns the comments right below a line, as one text."""
        lines_below: list[str] = []
        for row in self.rows[line:]:
            if not row.lstrip().startswith("#"):
                break
            lines_below.append(row.lstrip("# "))
        return " ".join(lines_below)

    def _add_unset(self, section: tuple[str, ...], below: dict[int, list[str]], tail: list[str]) -> None:
        """Adds the unset keys of a section, and its other kinds, below its last key."""
        options = Options(self.scenario, section)
        dotted, table = ".".join(section), self.tables
        for name in section:
            table = table.get(name, {})
        header = next((line for line, path in self.headers.items() if path == section), None)
        start = header if section else 0
        if start is None:
            rows = [*options.unset(set(table)), *options.others()]
            title = (
                f"# [{dotted}]" if section[0] not in self.tables else f"# More keys of {dotted}, given above:"
            )
            if title not in self.rows:
                tail += ["", title, *rows]
            return
        until = min((line for line in self.headers if line > start), default=len(self.rows) + 1)
        noted = [row for row in self.rows[start : until - 1] if row.startswith("#")]
        given = set(table)
        for key in options.kind.keys():  # noqa: SIM118
            if any(row.startswith((f"# {key} = ", f"# [{dotted}.{key}]")) for row in noted):
                given.add(key)
        ends = [end for line, (_, end) in self.entries.items() if start < line < until]
        rows = options.unset(given)
        if not any(row.startswith(f"# Or {options.kind.tag} = ") for row in noted):
            rows += options.others()
        below.setdefault(max(ends, default=start), []).extend(rows)


def _paths(text: str) -> list[KeyPath]:
    """Returns the paths of values and empty tables in a piece of TOML, none if it is not valid alone."""
    try:
        tables = tomllib.loads(text)
    except ValueError:
        return []
    paths: list[KeyPath] = []

    def walk(value: Any, path: KeyPath) -> None:
        if isinstance(value, dict) and value:
            for key, item in value.items():
                walk(item, (*path, key))
        elif path:
            paths.append(path)

    walk(tables, ())
    return paths


def _comment(row: str) -> str:
    """Returns the comment at the end of a row that is one whole entry."""
    whole = _paths(row)
    for match in re.finditer("#", row):
        if _paths(row[: match.start()]) == whole:
            return row[match.start() :]
    return ""
