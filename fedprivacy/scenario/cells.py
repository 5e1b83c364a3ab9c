"""The cells of a comparison: one trust model and unit of privacy, with their overlays.

Overlays are laid from the general to the special: those of the trust model, of the unit, of both where they
meet, and of the local mechanism. Trust "none" is one cell, whose unit is the scenario's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.rule_table import broken_rules
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario import changes
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import OVERLAID, shared
from fedprivacy.scenario.privacy import Unit
from fedprivacy.scenario.rules.comparison import MECHANISMS_ARE_OF_MESSAGES, OPTION_RULES, CompareValues
from fedprivacy.scenario.sections import MEETINGS, TRUSTS, Ablation, Compare, Trust
from fedprivacy.scenario.validation import Inspection, inspect

Place = tuple[str, ...]
_LARGEST_EPSILON = 1e6


@dataclass(frozen=True)
class Corner:
    """An arm of a comparison: a cell without its epsilon and seed.

    Args:
        trust: "none", "central" or "local".
        unit: "client" or "example"; None for the scenario's own, and for trust "none".
        mechanism: The local mechanism; None for the scenario's own.
        clipped: Whether trust "none" keeps the scenario's clipping norm, which a comparison does not.
        option: The option that is compared with the scenario without it; None for a cell without one.
        ablation: What is changed to see whether it limits the accuracy (`ablations`); None for other cells.
        baseline: Whether an ablation stands beside the compared cells, as a baseline.
    """

    trust: Trust
    unit: Unit | None = None
    mechanism: str | None = None
    clipped: bool = False
    option: str | None = None
    ablation: Ablation | None = None
    baseline: bool = False

    @property
    def places(self) -> list[Place]:
        """The overlays below [compare] that are laid for it, the most special one last."""
        places: list[Place] = [(self.trust,)]
        if self.unit is not None:
            places += [("unit", self.unit), ("unit", f"{self.trust}-{self.unit}")]
        places += [("mechanism", self.mechanism)] if self.mechanism is not None else []
        return places + ([("option", self.option)] if self.option is not None else [])

    @property
    def words(self) -> str:
        """Which cell it is, for messages."""
        unit = f', unit "{self.unit}"' if self.unit else ""
        mechanism = f' with mechanism "{self.mechanism}"' if self.mechanism else ""
        option = f' with option "{self.option}"' if self.option else ""
        return f'trust "{self.trust}"{unit}{mechanism}{option}'


def corners(compare: Compare, own_unit: str) -> list[Corner]:
    """The cells of a comparison in their order, without their epsilons and seeds.

    Mechanisms of single messages belong to local cells whose unit is a client.

    Args:
        compare: The section with the compared settings.
        own_unit: The scenario's own unit of privacy.
    """
    results = []
    for trust in compare.trusts:
        for unit in (None,) if trust == "none" else (compare.units or (None,)):
            messages = trust == "local" and (unit or own_unit) == "client"
            named = compare.mechanisms if messages else ()
            results += [Corner(trust, unit, mechanism) for mechanism in named or (None,)]
    return results


def options(compare: Compare, own_trust: Trust) -> list[Corner]:
    """A cell for each option, under the scenario's own trust model and unit, without epsilons and seeds."""
    return [Corner(own_trust, option=name) for name in compare.option]


def cell(tables: Tables, corner: Corner, epsilon: float | None, seed: int | None = None) -> Tables:
    """The tables of one cell of a comparison, its overlays laid over them.

    Args:
        tables: A whole scenario; sections may be broken.
        corner: Which cell.
        epsilon: The cell's epsilon, None for trust "none".
        seed: The cell's seed; None keeps the scenario's.
    """
    laid: dict[KeyPath, Any] = {("privacy", "trust"): corner.trust}
    if seed is not None:
        laid[("seed",)] = seed
    if epsilon is not None:
        laid["privacy", "epsilon"] = epsilon
    if corner.unit is not None:
        laid["privacy", "unit"] = corner.unit
    if corner.mechanism is not None:
        laid["privacy", "mechanism"] = corner.mechanism
    for place in corner.places:
        for section, key, value in overlay(tables, place):
            if not shared(section, key):
                laid[section, key] = value
    return overlaid(tables, laid, clipped=corner.clipped)


def overlaid(tables: Mapping[str, Any], laid: Mapping[KeyPath, Any], *, clipped: bool = False) -> Tables:
    """The tables of a scenario without `[compare]`, with keys laid over them, and derived values.

    Args:
        tables: A whole scenario; sections may be broken.
        laid: KeyPath -> value.
        clipped: Whether trust "none" keeps the scenario's clipping norm where it is not laid over.
    """
    base = {key: value for key, value in tables.items() if key != "compare"}
    privacy = base.get("privacy")
    if isinstance(privacy, dict):
        drop = set()
        if laid.get(("privacy", "trust")) == "none" and not clipped:
            # Its own only: without noise, the mechanism is a heuristic.
            drop |= {"clipping_norm", "clipping_layers"}
        server = base.get("server")
        if "clipping_norm" in drop and isinstance(server, dict):  # nothing is left that it could clip to
            base["server"] = server = {key: value for key, value in server.items() if key != "clips"}
        rounds = server.get("rounds") if isinstance(server, dict) else None
        if ("server", "rounds") in laid and privacy.get("max_participations") == rounds:
            drop.add("max_participations")  # "in every round" means every round of the cell
        base["privacy"] = {key: value for key, value in privacy.items() if key not in drop}
    return changes.lay(base, laid)


def overlay(tables: Mapping[str, Any], place: Place) -> list[tuple[str, str, Any]]:
    """The (section, key, value) of `[compare.<place>]` that can be laid over a scenario."""
    partial: Any = tables.get("compare")
    for part in place:
        partial = partial.get(part) if isinstance(partial, dict) else None
    if not isinstance(partial, dict):
        return []
    return [
        (section, key, value)
        for section in OVERLAID
        if isinstance(partial.get(section), dict)
        for key, value in partial[section].items()
    ]


def inspect_cells(tables: Tables, whole: Inspection) -> list[Finding]:
    """The problems of a comparison's cells that the scenario itself does not have.

    A mistake in a key of an overlay (`[compare.<trust>]`, `[compare.unit.<unit>]`) is reported at that key;
    one elsewhere in a cell (such as a key that the scenario lacks) at the cell's most specific key.
    """
    if not isinstance(tables.get("compare"), dict):
        return []
    compare, privacy = whole.parts.get("compare"), tables.get("privacy")
    settings = privacy if isinstance(privacy, dict) else {}
    listed = corners(compare, settings.get("unit", "client")) if compare else []
    values = CompareValues(compare, settings) if compare else None
    if values and (useless := list(MECHANISMS_ARE_OF_MESSAGES.findings(values))):
        return useless
    findings = list(broken_rules(OPTION_RULES, values)) if values else []
    optional = options(compare, settings.get("trust", "none")) if compare and not findings else []
    requested = dict.fromkeys([*listed, *optional, *_given(tables)])
    findings += _compared(tables, requested)
    known = {finding.path for finding in whole.findings}
    reported: dict[tuple[Place, Finding], list[Corner]] = {}
    for corner in requested:
        for place, finding in _of_cell(tables, corner, known):
            reported.setdefault((place, finding), []).append(corner)
    for (place, finding), where in reported.items():
        # A key that one cell cannot have may be right in another, which has it from the same overlay.
        everywhere = len(where) == sum(place in corner.places for corner in requested)
        named = "" if everywhere else f" ({where[0].words})"
        findings.append(replace(finding, what=finding.what + named))
    return findings


def _given(tables: Tables) -> Iterator[Corner]:
    """Cells that are not compared but have an overlay, which is checked too."""
    yield from (Corner(trust) for trust in TRUSTS if overlay(tables, (trust,)))
    for name, (trust, unit) in MEETINGS.items():
        if overlay(tables, ("unit", unit)) or overlay(tables, ("unit", name)):
            yield Corner(trust, unit)


def _compared(tables: Tables, corners: Mapping[Corner, None]) -> Iterator[Finding]:
    """The keys of overlays that a comparison sets itself."""
    for place in dict.fromkeys(place for corner in corners for place in corner.places):
        for section, key in sorted({path[:2] for path in overlay(tables, place) if shared(*path[:2])}):
            by = "units" if key == "unit" else "epsilons"
            says = f"[privacy] and compare.{by} say" if section == "privacy" else "[data] says"
            what = "the comparison sets it, alike for all trust models"
            remedy = f"Remove it here: {says} what is compared."
            yield Finding(("compare", *place, section, key), what, remedy)


def _without_base_groups(tables: Tables, corner: Corner) -> Tables:
    """The tables of a cell as a file is checked, without groups of clients but those of its own overlays.

    A comparison that runs says of each cell whether it can have the scenario's groups: a file with groups by
    weight is a valid one, though local trust, which a comparison has by default, has no weights.
    """
    base = cell(tables, corner, None if corner.trust == "none" else 1.0)
    overlays = (path[:2] for place in corner.places for path in overlay(tables, place))
    laid = ("privacy", "groups") in overlays
    if laid and corner.trust != "none":  # that the cell's epsilon is not below theirs is checked when it runs
        return changes.lay(base, {("privacy", "epsilon"): _LARGEST_EPSILON})
    privacy = base.get("privacy")
    if isinstance(privacy, dict) and not laid:
        base["privacy"] = {key: value for key, value in privacy.items() if key != "groups"}
    return base


def _of_cell(tables: Tables, corner: Corner, known: set[KeyPath]) -> Iterator[tuple[Place, Finding]]:
    """The problems of one cell, and the overlay that contains them."""
    laid = {
        (section, key): place
        for place in corner.places
        for section, key, _ in overlay(tables, place)
        if not shared(section, key)
    }
    touched = {section: place for (section, _), place in laid.items()}
    try:
        inspected = inspect(_without_base_groups(tables, corner))
    except KeyError:  # an invalid section, which `inspect` of the whole reports
        return
    for finding in inspected.findings:
        new = not any(finding.path[: len(path)] == path for path in known)
        place = laid.get((str(finding.path[0]), str(finding.path[1]))) if len(finding.path) > 1 else None
        if place is None and new:
            place = touched.get(str(finding.path[0]))
        if place is not None:
            yield place, replace(finding, path=("compare", *place, *finding.path))
        elif new:
            where = dotted(finding.path) + (f" = {finding.shown}" if finding.shown else "")
            what, place = f"{corner.words} cannot run: {where}: {finding.what}", corner.places[-1]
            yield place, Finding(("compare", *place), what, finding.remedy)
