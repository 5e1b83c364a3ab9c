"""Text of others on its way to a terminal or a log, where control characters would act."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""A text with its control characters written out, but for tabs and the ends of its lines.

    >>> print(printable("a\x1b[2J\r"))
    a\x1b[2J\r
    """
    return "".join(
        one if one.isprintable() or one in "\t\n" else one.encode("unicode_escape").decode() for one in text
    )
