"""What a person sees of an examination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MARKS = {"ok": "ok", "warning": "WARNING", "failure": "FAILURE", "absent": "-"}


def show(document: Mapping[str, Any]) -> None:
    """A line for each check, and what to do below those that are not in order."""
    checks = document["checks"]
    width = max((len(check["name"]) for check in checks), default=0)
    for check in checks:
        print(f"{_MARKS[check['status']]:8} {check['name']:{width}}  {check['found']}")
        if check["remedy"]:
            print(f"{'':8} {'':{width}}  {check['remedy']}")
    failed = sum(check["status"] == "failure" for check in checks)
    warned = sum(check["status"] == "warning" for check in checks)
    if failed:
        print(f"{failed} of {len(checks)} checks failed: below each stands what to do.")
    else:
        warnings = f", with {warned} warning{'' if warned == 1 else 's'}" if warned else ""
        print(f"This machine is able to run fedprivacy{warnings}.")
