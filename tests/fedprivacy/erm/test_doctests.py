"""The examples in the documentation are true."""

from __future__ import annotations

import doctest

from fedprivacy import erm
from fedprivacy.erm import losses


def test_doctests() -> None:
    for module in (erm, losses):
        found = doctest.testmod(module)
        assert found.attempted > 0
        assert found.failed == 0
