"""The page for owners of records names what there is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from clients import owner
from clients.error_filter import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "nodes.md").read_text()


def test_every_kind_of_refusal_and_every_key_stands_on_the_page() -> None:
    _, _, after = PAGE.partition("## What a server learns from a refusal")
    table, _, _ = after.partition("## ")
    assert re.findall(r"^\| `([a-z-]+)` ", table, re.MULTILINE) == list(KINDS)
    keys = re.findall(r"^([a-z-]+) {2,}", inspect.getdoc(owner) or "", re.MULTILINE)
    assert len(keys) == 10
    for key in keys:
        assert f"`{key}`" in PAGE
