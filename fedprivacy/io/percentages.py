"""Shares of one, printed in percent with one decimal."""

from __future__ import annotations


def percent(share: float) -> str:
    """Returns a share, such as an accuracy, in percent.

    >>> percent(0.8317)
    '83.2 %'
    """
    return f"{100 * share:.1f} %"
