"""What fedprivacy needs, by its own metadata, and whether what is installed is in range."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

from fedprivacy.io.install_hint import ROOT

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9._-]+)\s*(?:\[(?P<extras>[^\]]*)\])?\s*(?P<range>[^;]*?)\s*(?:;(?P<marker>.*))?"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_COMPARE = {">=": (0, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), "==": (0,), "!=": (-1, 1)}


@dataclass(frozen=True)
class Requirement:
    """One line of a package's metadata.

    Args:
        name: The distribution that is needed.
        range: Its versions, as in `>=2.6,<3`; empty for any.
        extras: The extras of it that are needed.
        extra: The extra that needs it, or None for what is always needed.
    """

    name: str
    range: str
    extras: tuple[str, ...] = ()
    extra: str | None = None

    @classmethod
    def of(cls, line: str) -> Requirement:
        """The requirement that a line of metadata states."""
        found = _REQUIREMENT.fullmatch(line)
        if found is None:
            raise ValueError(f"not a requirement: {line}")
        extra = _EXTRA.search(found["marker"] or "")
        extras = tuple(part.strip() for part in (found["extras"] or "").split(",") if part.strip())
        return cls(found["name"], found["range"].strip("() "), extras, extra[1] if extra else None)

    @property
    def installed(self) -> str | None:
        """The version that is installed, or None."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return None

    def fits(self, version: str) -> bool:
        """Whether a version is in range."""
        return in_range(version, self.range)


def in_range(version: str, allowed: str) -> bool:
    """Whether a version is within comma-separated bounds; what is not understood is no bound.

    >>> in_range("2.13.0+cpu", ">=2.6,<3"), in_range("3.0", ">=2.6,<3"), in_range("1.2", "")
    (True, False, True)
    """
    for bound in filter(None, (part.strip() for part in allowed.split(","))):
        found = re.fullmatch(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9.]*)", bound)
        if found is None:
            continue
        ours, theirs = numbers(version), numbers(found[2])
        width = max(len(ours), len(theirs))
        ours, theirs = (part + (0,) * (width - len(part)) for part in (ours, theirs))
        if (ours > theirs) - (ours < theirs) not in _COMPARE[found[1]]:
            return False
    return True


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with: (2, 13, 0) of 2.13.0+cpu."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def requirements() -> list[Requirement]:
    """What fedprivacy needs, extras included: by the metadata that is installed, else by pyproject.toml."""
    try:
        lines: Sequence[str] = metadata.requires("fedprivacy") or []
    except metadata.PackageNotFoundError:
        lines = []
    if lines:
        return [Requirement.of(line) for line in lines]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    listed = [f'{line}; extra == "{extra}"' for extra, lines in extras.items() for line in lines]
    return [Requirement.of(line) for line in [*project["dependencies"], *listed]]
