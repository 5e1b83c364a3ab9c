"""Every ready scenario: what it is for, its command, its time, and the main chart of its report."""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.text import code, plain
from scenarios.authoring.catalogue import GROUPS, first_sentence, group_of, ready, start_command

DOCS = Path(__file__).parents[1]


def markdown() -> str:
    """Returns a heading for each group, and an entry for each scenario below it."""
    lines: list[str] = []
    scenarios = {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in ready().items()}
    for group in GROUPS:
        lines += [f"## {group.capitalize()}", ""]
        for name, tables in scenarios.items():
            if group_of(tables) == group:
                lines += _entry(name, tables)
    return "\n".join(lines)


def _entry(name: str, tables: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {name}", "", plain(first_sentence(tables["description"])), "")
    yield from ("```sh", f"fedprivacy {start_command(tables)} {name}", "```", "")
    path = tables["data"].get("path")
    reads = f" It reads {code(path)} ([source](data.md#the-file))." if path else ""
    yield from (f"Takes {tables['duration']}.{reads}", "")
    picture = DOCS / "pictures" / "gallery" / f"{name}.svg"
    if not picture.exists():
        yield from ("*No picture yet.*", "")
        return
    svg = picture.read_text(encoding="utf-8")
    yield from (f"```{{figure}} pictures/gallery/{name}.svg", f":alt: {_text('desc', svg)}", "")
    yield from (plain(_text("metadata", svg)), "```", "")


def _text(element: str, svg: str) -> str:
    """Returns the text of an element of a picture, on one line."""
    found = re.search(rf"<{element}[^>]*>(.*?)</{element}>", svg, re.DOTALL)
    return " ".join(html.unescape(found[1]).split()) if found else ""
