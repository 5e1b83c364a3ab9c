"""Text of others on its way to a terminal or a log, where control characters would act."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""A line with its control characters written out.

    >>> printable("a\x1b[2J\tb\n")
    'a\\x1b[2J\tb\\n'
    """
    return "".join(
        one if one.isprintable() or one == "\t" else one.encode("unicode_escape").decode() for one in text
    )
