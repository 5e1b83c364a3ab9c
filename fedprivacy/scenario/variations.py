"""Variations of one setting at a time: the `[compare.vary]` of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import dotted, literal
from fedprivacy.scenario import changes
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import shared
from fedprivacy.scenario.sections import Compare
from fedprivacy.scenario.validation import Inspection, inspect

ON_NODES = "records are on nodes, and the number of their clients is agreed with these"


@dataclass(frozen=True)
class Variation:
    """One value of one setting, all else being the scenario's own.

    Args:
        section: The section of the setting.
        key: Its name.
        value: Its new value.
    """

    section: str
    key: str
    value: Any

    @property
    def name(self) -> str:
        """The setting as `--set` has it."""
        return f"{self.section}.{self.key}"


def variations(compare: Compare) -> list[Variation]:
    """All variations of a comparison, in its order."""
    return [
        Variation(section, key, value)
        for section, keys in compare.vary.items()
        for key, values in keys.items()
        for value in values
    ]


def varied(tables: Mapping[str, Any], variation: Variation, seed: int | None = None) -> Tables:
    """The tables of a scenario with one setting varied, without `[compare]`.

    Args:
        tables: A whole scenario.
        variation: The varied setting and its value.
        seed: The seed; None keeps the scenario's.
    """
    base = {key: value for key, value in tables.items() if key != "compare"}
    laid: dict[KeyPath, Any] = {_path(tables, variation): variation.value}
    if seed is not None:
        laid[("seed",)] = seed
    return changes.lay(base, laid)


def _path(tables: Mapping[str, Any], variation: Variation) -> KeyPath:
    """The key that a variation sets.

    Another number of clients is another number of those who take part, each with the same records: dealt
    anew, each would have others. "fixed-records" deals the same to each, whatever their number; but where the
    scenario has `first_clients`, that alone says how many take part.
    """
    data = tables.get("data")
    if variation.name != "data.clients" or not isinstance(data, Mapping):
        return (variation.section, variation.key)
    is_base = data.get("clients") == variation.value or data.get("partition") == "fixed-records"
    if data.get("first_clients") is not None or not is_base:
        return ("data", "first_clients")
    return (variation.section, variation.key)


def inspect_variations(tables: Tables, whole: Inspection) -> Iterator[Finding]:
    """The problems of a comparison's variations, if the scenario itself has none."""
    compare, privacy = whole.parts.get("compare"), whole.parts.get("privacy")
    if not compare or not privacy or whole.findings:
        return
    if compare.vary and privacy.epsilon is None:
        what = "settings are varied at the scenario's own trust model and epsilon, and it has none"
        yield Finding(("compare", "vary"), what, "Set privacy.trust and privacy.epsilon, or remove it.")
        return
    reported: set[tuple[KeyPath, str]] = set()
    for variation in variations(compare):
        path: KeyPath = ("compare", "vary", variation.section, variation.key)
        on_nodes = getattr(whole.parts.get("data"), "name", None) == "on-nodes"
        if variation.name == "data.clients" and on_nodes:
            findings = [Finding(path, ON_NODES, "Remove it.")]
        elif variation.name != "data.clients" and shared(variation.section, variation.key):
            findings = [Finding(path, "the comparison sets it, alike for all cells", "Remove it here.")]
        else:
            findings = [
                _here(finding, path, variation) for finding in inspect(varied(tables, variation)).findings
            ]
        # An unknown key is unknown with every value.
        yield from (finding for finding in findings if (path, finding.what) not in reported)
        reported |= {(path, finding.what) for finding in findings}


def _here(finding: Finding, path: KeyPath, variation: Variation) -> Finding:
    """Moves a finding about a varied scenario to the variation's place."""
    here = (path[2:], ("data", "first_clients")) if variation.name == "data.clients" else (path[2:],)
    where = "" if finding.path[:2] in here else f"{dotted(finding.path)}: "
    return Finding(path, f"{where}{finding.what}", finding.remedy, literal(variation.value))
