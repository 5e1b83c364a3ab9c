"""All that is wrong with the tables of a scenario: its sections, and what is between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import changes, checks
from fedprivacy.scenario.base import MAX_SEED, Section
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import wrong_type
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.values import Values
from fedprivacy.scenario.words import explain, meant, missing, unknown_key, wrong_name


@dataclass(frozen=True)
class Inspection:
    """What is in the tables of a scenario.

    Args:
        parts: The valid sections, and the valid keys above them.
        findings: All mistakes.
    """

    parts: dict[str, Any]
    findings: list[Finding]


def inspect(tables: Tables) -> Inspection:
    """Validates a scenario without the cells of its comparison."""
    tables = with_defaults(tables)
    parts: dict[str, Any] = {}
    valid: dict[str, Any] = {}
    broken: set[str] = set()
    found: list[Finding] = []

    def take(section: str, kind: Kind, table: Tables) -> Section | None:
        part, values, wrong = validate((section,) if section else (), kind, table)
        found.extend(wrong)
        prefix = f"{section}." if section else ""
        valid.update({prefix + key: value for key, value in values.items()})
        known = kind.keys(kind.variant(table))
        broken.update(prefix + key for key in {*table, *meant(table, known)} if key not in values)
        return part

    above = {key: value for key, value in tables.items() if key not in KINDS}
    head = take("", HEAD, above)
    misspelt = meant(above, [*HEAD.keys(), *(name for name in KINDS if name not in tables)])
    if head is not None:
        parts |= dict(head)
    for section, kind in KINDS.items():
        table = tables.get(section, {})
        if not isinstance(table, dict):
            found.append(
                wrong_type((section,), table, "a section", f"Write [{section}] on a line of its own.")
            )
        elif not table and section not in tables and kind.required:
            found += [] if section in misspelt else [missing_section(section, kind)]
        elif (part := take(section, kind, table)) is not None:
            parts[section] = part
    found += checks.findings(Values(valid, frozenset(broken)))
    return Inspection(parts, found)


def with_defaults(tables: Tables) -> Tables:
    """The tables with those defaults that depend on another key."""
    new = dict(tables)
    privacy, server, compare = (tables.get(name, {}) for name in ("privacy", "server", "compare"))
    if isinstance(privacy, dict) and privacy.get("trust") == "local" and "max_participations" not in privacy:
        rounds = server.get("rounds") if isinstance(server, dict) else None
        # Where the number of rounds is itself wrong, any number does: the scenario is refused.
        usable = isinstance(rounds, int) and not isinstance(rounds, bool) and 1 <= rounds <= 10**6
        new["privacy"] = {**privacy, "max_participations": rounds if usable else 1}
    if isinstance(new.get("privacy"), dict) and changes.has_direction(new["privacy"]):
        new["privacy"] = {"direction": "lifted", **new["privacy"]}
    data = tables.get("data")
    if isinstance(data, dict) and data.get("scaling") == "public" and "cut" not in data:
        new["data"] = {**data, "cut": 3.0}
    if isinstance(compare, dict) and "seeds" not in compare:
        seed = tables.get("seed", 0)
        usable = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        first = min(seed, MAX_SEED - 2) if usable else 0
        new["compare"] = {**compare, "seeds": [first, first + 1, first + 2]}
    return new


def validate(
    base: KeyPath, kind: Kind, table: Tables, kinds: Mapping[str, Kind] = KINDS
) -> tuple[Section | None, Tables, list[Finding]]:
    """The section if it is valid, the keys that are valid in any case, and what is wrong.

    Args:
        base: Where the section stands; () for the keys above the first section.
        kind: What it may be.
        table: Its keys.
        kinds: All sections of the file, to tell where a misplaced key belongs.
    """
    variant = kind.variant(table)
    found: list[Finding] = []
    misspelt = meant(table, kind.keys(variant))
    if variant is None:
        if kind.tag in table:
            found.append(wrong_name((*base, kind.tag), table[kind.tag], list(kind.variants), kind.noun))
        elif kind.tag not in misspelt:
            some = " or ".join(literal(name) for name in kind.variants)
            found.append(Finding((*base, kind.tag), "missing", f"Add {kind.tag} = {some}."))
    for key in table:
        owners = kind.owners(key)
        if not owners and key != kind.tag:
            found.append(unknown_key(base, key, kind.keys(variant), kinds))
        elif variant is not None and variant not in owners and key != kind.tag:
            found.append(_of_other_kind(base, kind, key, variant, owners))
    # Of an unknown variant, check the keys that are there: wrong is what no variant that has it takes.
    part, values, taken = None, {}, set[str]()
    for name in [variant] if variant is not None else kind.variants:
        cls = kind.variants[name]
        known = {key: value for key, value in table.items() if key in cls.model_fields and key != kind.tag}
        wrong: set[Any] = set()
        try:
            part = cls.model_validate({**known, kind.tag: name} if kind.tag else known)
        except ValidationError as error:
            explained = explain(base, cls, error)
            wrong = {finding.path[len(base)] for finding in explained}
            if variant is None:
                explained = [finding for finding in explained if finding.path[len(base)] in known]
            explained = [finding for finding in explained if finding.path[len(base)] not in misspelt]
            said = {(finding.path, finding.what) for finding in found}
            found += [finding for finding in explained if (finding.path, finding.what) not in said]
        for key, field in cls.model_fields.items():
            if key not in wrong | misspelt and (variant is not None or key in known):
                values[key] = known.get(key, field.get_default())
                taken.add(key)
    if variant is None:
        found = [one for one in found if len(one.path) <= len(base) or one.path[len(base)] not in taken]
    if kind.tag and variant is not None:
        values[kind.tag] = variant
    return (None if found else part), values, found


def _of_other_kind(base: KeyPath, kind: Kind, key: str, variant: str, owners: list[str]) -> Finding:
    others = " or ".join(f"{kind.tag} = {literal(name)}" for name in owners)
    what = f"has no effect with {kind.tag} = {literal(variant)}"
    return Finding((*base, key), what, f"Remove it, or set {others}.")


def missing_section(section: str, kind: Kind) -> Finding:
    if kind.default is not None:
        cls = kind.variants[kind.default]
        lines = [
            missing((key,), field).remedy for key, field in cls.model_fields.items() if field.is_required()
        ]
        return Finding((section,), "the section is missing", f"Add [{section}]. {' '.join(lines)}")
    some = " or ".join(literal(name) for name in kind.variants)
    return Finding((section,), "the section is missing", f"Add [{section}] with {kind.tag} = {some}.")
