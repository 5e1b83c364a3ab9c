"""Escapes untrusted text for terminals, logs and pages, where control characters would act.

Control characters move a cursor, ANSI sequences hide text, and bidirectional overrides and isolates change
its order. Whatever is shown goes through `printable`: the command's output by `io.terminal`, its tables by
`io.console`, the report at the end of `report.render`.
"""

from __future__ import annotations

import re
import unicodedata

# Letters to Unicode, blank to the eye.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|[^\x00-\x7f]+")
# Spaces of other widths, which our own texts have, act on nothing.
_ACTING = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def printable(text: str) -> str:
    r"""Writes out characters that act or are not seen, but for tabs and the ends of lines.

    >>> print(printable("a\x1b[2J\r\u202eb"))
    a\x1b[2J\r\u202eb
    """
    return _CONTROL.sub(_written_out, text)


def on_one_line(text: str) -> str:
    r"""Writes out the ends of lines too, for a name within a sentence: it cannot begin a line of its own.

    >>> print(on_one_line("a\nb"))
    a\nb
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def first_line(text: str) -> str:
    r"""The first line of a reason that comes from elsewhere, as of a node, without the traceback below it.

    >>> print(first_line("ValueError: a\x1bb\nTraceback (most recent call last)"))
    ValueError: a\x1bb
    """
    return on_one_line(next(iter(text.strip().splitlines()), ""))


def _written_out(match: re.Match[str]) -> str:
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _ACTING or character in _BLANK
        else character
        for character in match[0]
    )
