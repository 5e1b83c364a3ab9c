"""Terminal output of the ready scenarios: a line for each, or one in full."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fedprivacy.io.console import Terminal
from scenarios.authoring.catalogue import GROUPS

_TIME = re.compile(r"(\d+) (s|min)")


def show_scenarios(document: Mapping[str, Any]) -> None:
    """Prints a line for each ready scenario, under the heading of its group; the terminal wraps it."""
    console, entries = Terminal(soft_wrap=True), document["scenarios"]
    width = max((len(entry["name"]) for entry in entries), default=0)
    for group in GROUPS:
        within = [entry for entry in entries if entry["group"] == group]
        if within:
            console.print(group, style="bold")
        for entry in within:
            start = f"  {entry['name']:<{width}}  {_time(entry['duration']):<6}  "
            console.print(start + entry["purpose"].rstrip("."))
    console.print("More about one: fedprivacy scenarios NAME")


def show_scenario(entry: Mapping[str, Any]) -> None:
    """Prints all about one ready scenario."""
    console = Terminal(soft_wrap=True)
    console.print(f"{entry['name']}: {' '.join(entry['description'].split())}")
    console.print(f"command: {entry['command']}")
    console.print(f"time: {entry['duration']}")
    if entry["clients"] is not None:
        console.print(f"clients: {entry['clients']:,}")
    if entry["data"] is not None:
        where = "" if entry["data_is_here"] else ", which is not here: --set data.path=FILE says where it is"
        console.print(f"data: {entry['data']}{where}")
    if entry["problem"]:
        console.print(f"Its data cannot be used: {entry['problem']}")
    console.print(f"file: {entry['file']}")
    console.print(f"A file of your own to change: fedprivacy new NAME --from {entry['name']}")


def _time(duration: str) -> str:
    """Returns the time alone, as `2 min` of `2 minutes on 2 cores`."""
    match = _TIME.match(duration)
    return " ".join(match.groups()) if match else duration[:6]
