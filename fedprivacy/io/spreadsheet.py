"""Texts in CSV files, which a spreadsheet must not run as formulas."""

from __future__ import annotations

import re

# The characters that begin a formula, in full width too; a signed number is none.
_FORMULA = re.compile(r"[=@\t\r\n\uff1d\uff0b\uff0d\uff20]|[+-](?!\d*\.?\d+(?:[eE][+-]?\d+)?\s*%?$)")


def as_text(cell: str) -> str:
    """Returns a cell that every spreadsheet takes for text: what begins a formula follows an apostrophe.

    Names come from data files that others wrote (OWASP, "CSV Injection").

    >>> as_text("=1+1"), as_text("-0.47"), as_text("+2.2"), as_text("-x")
    ("'=1+1", '-0.47', '+2.2', "'-x")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell
