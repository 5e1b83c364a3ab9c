"""Stored results as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.api.results import with_numbers
from scenarios.stored.listing import COLUMNS, OPERATOR_COLUMNS, chosen, rows_of

if TYPE_CHECKING:
    import pandas as pd


def runs(
    folder: str | Path = "runs", *filters: str, sort: str | None = None, operator: bool = False
) -> pd.DataFrame:
    """Returns a row for each stored result, the newest first, as `fedprivacy list` does.

    Epsilons are quoted from the records; `fedprivacy.read` derives them again.

    Args:
        folder: The folder of run directories.
        filters: Conditions that all must fit, such as "trust=local" or "accuracy>0.9".
        sort: A column to order by; with "-" before it in falling order.
        operator: Whether rows have operator-only values too: seed, command, error and seconds.

    Raises:
        InputError: if there is no such folder, or a condition or column is wrong.

    >>> import tempfile
    >>> len(runs(tempfile.mkdtemp()))
    0
    """
    import pandas as pd

    rows = chosen(rows_of(Path(folder), operator=operator), filters, sort)
    columns = [*COLUMNS, *(OPERATOR_COLUMNS if operator else ())]
    return with_numbers(pd.DataFrame([row.to_json() for row in rows], columns=columns))
