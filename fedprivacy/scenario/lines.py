"""The line of each key in a TOML text.

The standard `tomllib` gives values without positions, so this scans the text once more. It takes
text that `tomllib` has accepted, hence it need not judge, only find its way: tables, arrays of
tables, dotted and quoted keys, inline tables, arrays and all four kinds of strings
(https://toml.io/en/v1.0.0).
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# The whole of a string token, by its opening quotes. A multi-line string may end in up to two
# quotes of its own before the closing three.
_STRINGS = {
    '"""': re.compile(r'"""(?:\\.|[^\\])*?"""(?:"{0,2})', re.DOTALL),
    "'''": re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    '"': re.compile(r'"(?:\\.|[^"\\\n])*"'),
    "'": re.compile(r"'[^'\n]*'"),
}
# Numbers, true and false, dates (a date and its time may have a blank between them).
_PLAIN = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str) -> dict[Path, int]:
    """The line, counted from 1, of each table, key and array element.

    Args:
        text: Valid TOML.

    Returns:
        Path -> line. A path has keys, and positions in arrays; a table without a header of its
        own has the line of the first key that names it.

    >>> key_lines('seed = 1\\n[server]\\nrounds = 3\\n')
    {('seed',): 1, ('server',): 2, ('server', 'rounds'): 3}
    """
    return _Scanner(text.replace("\r\n", "\n")).lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[Path, int] = {}
        self.elements: dict[Path, int] = {}  # array of tables -> how many it has so far
        table: Path = ()
        while self.skip() < len(text):
            if text.startswith("[", self.at):
                table = self.header()
            else:
                self.pair(table)

    def skip(self) -> int:
        """Moves over blanks, line ends and comments."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def mark(self, path: Path, start: int) -> None:
        """Notes the line of `path` and of each table above it that has none yet."""
        line = bisect_left(self.breaks, start) + 1
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None or not match.group():
            raise ValueError("not the TOML that tomllib accepted")
        self.at = match.end()
        return match.group()

    def header(self) -> Path:
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        path: Path = ()
        keys = self.keys()
        for position, key in enumerate(keys):
            path = (*path, key)
            if many and position == len(keys) - 1:
                self.elements[path] = self.elements.get(path, 0) + 1
            if path in self.elements:  # a key below an array of tables means its latest element
                path = (*path, self.elements[path] - 1)
        self.skip()
        self.at += 2 if many else 1
        # A header is a better place for its table than a key seen before, such as `[a.b]` for `a`.
        self.mark(path, start)
        self.lines[path] = bisect_left(self.breaks, start) + 1
        return path

    def keys(self) -> list[str]:
        """A dotted key, up to its end."""
        keys = []
        while True:
            self.skip()
            quote = self.text[self.at]
            if quote in "\"'":
                token = self.take(_STRINGS[quote])
                keys.append(tomllib.loads(f"key = {token}")["key"])
            else:
                keys.append(self.take(_BARE_KEY))
            self.skip()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self.keys())
        self.mark(path, start)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip()
        self.mark(path, self.at)
        opening = self.text[self.at]
        if opening in "\"'":
            long = opening * 3
            self.take(_STRINGS[long if self.text.startswith(long, self.at) else opening])
        elif opening in "[{":
            self.at += 1
            closing = "]" if opening == "[" else "}"
            position = 0
            while self.skip() < len(self.text) and self.text[self.at] != closing:
                if self.text[self.at] == ",":
                    self.at += 1
                elif opening == "[":
                    self.value((*path, position))
                    position += 1
                else:
                    self.pair(path)
            self.at += 1
        else:
            self.take(_PLAIN)
