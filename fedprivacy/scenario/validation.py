"""Validates the tables of a scenario file: each section, then a training as a whole."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import changes
from fedprivacy.scenario.base import MAX_SEED, Section
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.findings import no_section
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.rules import training
from fedprivacy.scenario.sections import NAME
from fedprivacy.scenario.words import explain, meant, missing, unknown_key, wrong_name

_NAME = re.compile(NAME)
# Keys that only one kind of personal model has.
PERSONAL_DEFAULTS: Mapping[str, Tables] = {
    "fine-tune": {"personal_epochs": 5},
    "ditto": {"personal_proximal": 0.1},
}
BAD_NAME = "must be letters, digits and hyphens, at most 64"


@dataclass(frozen=True)
class Inspection:
    """The validated contents of a scenario's tables.

    Args:
        parts: The valid sections, and the valid keys above them.
        findings: All mistakes.
    """

    parts: dict[str, Any]
    findings: list[Finding]


@dataclass
class SectionReader:
    """Validates the sections of one file, and collects valid values and findings.

    Args:
        kinds: All sections of the file, to find where a misplaced key belongs.
        parts: The valid sections, and the valid keys above them.
        findings: All mistakes.
        valid: `section.key` -> value of the keys that are valid by themselves, defaults included.
        broken: `section.key` that were given but are wrong by themselves.
    """

    kinds: Mapping[str, Kind]
    parts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    valid: dict[str, Any] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def read_head(self, tables: Tables) -> None:
        """Reads the keys above the first section."""
        head = self._validated(
            (), HEAD, {key: value for key, value in tables.items() if key not in self.kinds}
        )
        self.parts |= {} if head is None else dict(head)

    def read_sections(
        self, tables: Tables, kinds: Mapping[str, Kind], misspelt: Collection[str] = ()
    ) -> None:
        """Reads sections that a file has once.

        Args:
            tables: The file.
            kinds: The sections.
            misspelt: Those whose name is misspelt: the misspelling is reported, their absence is not.
        """
        for name, kind in kinds.items():
            table = tables.get(name, {})
            if not isinstance(table, dict):
                self.findings.append(no_section((name,), table))
            elif name not in tables and kind.required:
                self.findings += [] if name in misspelt else [missing_section(name, kind)]
            elif (part := self._validated((name,), kind, table)) is not None:
                self.parts[name] = part

    def read_named(self, tables: Tables, section: str, kind: Kind, absent: Finding | None) -> None:
        """Reads a section that has a table for each name, `[section.NAME]`.

        Args:
            tables: The file.
            section: The section.
            kind: The kind of each table of it.
            absent: The finding where there is no such table; None where there may be none.
        """
        named, self.parts[section] = tables.get(section, {}), {}
        if absent is not None and (not isinstance(named, dict) or not named):
            self.findings.append(absent)
        elif not isinstance(named, dict):
            self.findings.append(no_section((section, "NAME"), named, at=(section,)))
        for name, table in named.items() if isinstance(named, dict) else ():
            if not _NAME.fullmatch(name):
                self.findings.append(Finding((section, name), BAD_NAME))
            elif not isinstance(table, dict):
                self.findings.append(no_section((section, name), table))
            elif (part := self._validated((section, name), kind, table)) is not None:
                self.parts[section][name] = part

    def _validated(self, base: KeyPath, kind: Kind, table: Tables) -> Section | None:
        part, values, wrong = validate(base, kind, table, self.kinds)
        self.findings += wrong
        prefix = "".join(f"{name}." for name in base)
        self.valid |= {prefix + key: value for key, value in values.items()}
        given = {*table, *meant(table, kind.keys(kind.variant(table)))}
        self.broken |= {prefix + key for key in given if key not in values}
        return part


def validate(
    base: KeyPath, kind: Kind, table: Tables, kinds: Mapping[str, Kind] = KINDS
) -> tuple[Section | None, Tables, list[Finding]]:
    """The section if it is valid, the keys that are valid in any case, and the findings.

    Args:
        base: The path of the section; () for the keys above the first section.
        kind: Its kinds.
        table: Its keys.
        kinds: All sections of the file, to find where a misplaced key belongs.
    """
    variant = kind.variant(table)
    findings: list[Finding] = []
    misspelt = meant(table, kind.keys(variant))
    if variant is None:
        if kind.tag in table:
            findings.append(wrong_name((*base, kind.tag), table[kind.tag], list(kind.variants), kind.noun))
        elif kind.tag not in misspelt:
            some = " or ".join(literal(name) for name in kind.variants)
            findings.append(Finding((*base, kind.tag), "missing", f"Add {kind.tag} = {some}."))
    for key in table:
        owners = kind.owners(key)
        if not owners and key != kind.tag:
            findings.append(unknown_key(base, key, kind.keys(variant), kinds))
        elif variant is not None and variant not in owners and key != kind.tag:
            findings.append(_of_other_kind(base, kind, key, variant, owners))
    # Of an unknown variant, check its keys: a value is wrong if no variant with the key allows it.
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
            explained_already = {(finding.path, finding.what) for finding in findings}
            findings += [
                finding for finding in explained if (finding.path, finding.what) not in explained_already
            ]
        for key, about in cls.model_fields.items():
            if key not in wrong | misspelt and (variant is not None or key in known):
                values[key] = known.get(key, about.get_default())
                taken.add(key)
    if variant is None:
        findings = [
            each for each in findings if len(each.path) <= len(base) or each.path[len(base)] not in taken
        ]
    if kind.tag and variant is not None:
        values[kind.tag] = variant
    return (None if findings else part), values, findings


# Keys that a variant has only so that a rule refuses them with its reason: no remedy offers it.
_REFUSED = {("groups", "distributed")}


def _of_other_kind(base: KeyPath, kind: Kind, key: str, variant: str, owners: list[str]) -> Finding:
    named = [name for name in owners if (key, name) not in _REFUSED]
    others = " or ".join(f"{kind.tag} = {literal(name)}" for name in named)
    what = f"has no effect with {kind.tag} = {literal(variant)}"
    return Finding((*base, key), what, f"Remove it, or set {others}.")


def missing_section(section: str, kind: Kind) -> Finding:
    """Returns the finding of a section that a file must have."""
    if kind.default is None and kind.tag:
        some = " or ".join(literal(name) for name in kind.variants)
        remedy = f"Add [{section}] with {kind.tag} = {some}."
    else:
        fields = kind.variants[kind.default or ""].model_fields
        needed = {key: about for key, about in fields.items() if about.is_required()}
        if kind.tag:
            lines = [missing((key,), about).remedy for key, about in needed.items()]
            remedy = f"Add [{section}] with {' '.join(lines).removeprefix('Add ')}"
        else:
            examples = [
                f"{key} = {literal(about.examples[0])}" for key, about in needed.items() if about.examples
            ]
            remedy = f"Add [{section}] with {', '.join(examples)}."
    return Finding((section,), "the section is missing", remedy)


def inspect(tables: Tables) -> Inspection:
    """Validates the tables of a training scenario, without the cells of its comparison."""
    tables = with_defaults(tables)
    reader = SectionReader(KINDS)
    reader.read_head(tables)
    above = {key: value for key, value in tables.items() if key not in KINDS}
    misspelt = meant(above, [*HEAD.keys(), *(name for name in KINDS if name not in tables)])
    reader.read_sections(tables, KINDS, misspelt)
    findings = training.findings(Values(reader.valid, frozenset(reader.broken)))
    return Inspection(reader.parts, reader.findings + findings)


def with_defaults(tables: Tables) -> Tables:
    """The tables with those defaults that depend on another key."""
    new = dict(tables)
    privacy, server, compare = (tables.get(name, {}) for name in ("privacy", "server", "compare"))
    by_clients = isinstance(privacy, dict) and privacy.get("trust") in ("local", "distributed")
    if by_clients and "max_participations" not in privacy:
        rounds = server.get("rounds") if isinstance(server, dict) else None
        # Where the number of rounds is itself wrong, any number does: the scenario is refused.
        usable = isinstance(rounds, int) and not isinstance(rounds, bool) and 1 <= rounds <= 10**6
        new["privacy"] = {**privacy, "max_participations": rounds if usable else 1}
    if isinstance(new.get("privacy"), dict) and changes.has_direction(new["privacy"]):
        new["privacy"] = {"direction": "lifted", **new["privacy"]}
    training = tables.get("training")
    if isinstance(training, dict) and "shared" in training and "personal" not in training:
        new["training"] = training = {**training, "personal": "partial"}
    if isinstance(training, dict) and isinstance(training.get("personal"), str):
        new["training"] = {**PERSONAL_DEFAULTS.get(training["personal"], {}), **training}
    data = tables.get("data")
    if isinstance(data, dict) and data.get("scaling") == "public" and "cut" not in data:
        new["data"] = {**data, "cut": 3.0}
    if isinstance(compare, dict) and "seeds" not in compare:
        seed = tables.get("seed", 0)
        usable = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        first = min(seed, MAX_SEED - 2) if usable else 0
        new["compare"] = {**compare, "seeds": [first, first + 1, first + 2]}
    return new
