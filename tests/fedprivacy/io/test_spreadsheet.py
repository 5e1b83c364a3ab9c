"""No text of a CSV file is a formula."""

from __future__ import annotations

import pytest

from fedprivacy.io.spreadsheet import as_text


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "-1+cmd", "+", "--1"]
)
def test_what_begins_a_formula_follows_an_apostrophe(cell: str) -> None:
    assert as_text(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "a=1", "-0.47", "+2.2", "-1e-5", "-3 %", "1-x", "\u22120.5"])
def test_other_texts_and_numbers_stay(cell: str) -> None:
    assert as_text(cell) == cell
