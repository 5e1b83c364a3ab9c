"""Shares in percent."""

from __future__ import annotations

import pytest

from fedprivacy.io.percentages import percent


@pytest.mark.parametrize(("share", "text"), [(0.0, "0.0 %"), (0.8317, "83.2 %"), (1.0, "100.0 %")])
def test_one_decimal(share: float, text: str) -> None:
    assert percent(share) == text
