"""Every section and key of each kind of scenario, read off the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.extended_scenario import ExtendedScenario
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.privacy import BudgetGroup
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.words import names
from generators.text import code, plain, summary, table


def _of_kind(kind: type[AnyScenario]) -> dict[str, Kind]:
    """The sections of a kind of scenario, those with a name each last; of a training with more only those."""
    sections = kind.extra if issubclass(kind, ExtendedScenario) else kind.section_kinds
    single = {name: each for name, each in sections.items() if name not in kind.named_sections}
    return single | {f"{name}.NAME": sections[name] for name in kind.named_sections}


# Heading of a group -> name of a section -> its classes.
GROUPS: dict[str, dict[str, Kind]] = {
    "All scenarios": {"": HEAD},
    "Training": _of_kind(Scenario) | {"privacy.groups.NAME": Kind({"": BudgetGroup}, required=False)},
    "Attacks": _of_kind(AttackScenario),
    "Tuning": _of_kind(TuneScenario),
    "Statistics": _of_kind(Statistics),
    "Private estimates": _of_kind(ErmScenario),
}
INTRODUCTIONS = {
    "Training": "A scenario with these sections trains; `[compare]` makes a comparison of it.",
    "Attacks": "Beside the sections of training. `fedprivacy replay` runs the game.",
    "Tuning": "Beside the sections of training. `fedprivacy tune` chooses settings.",
    "Statistics": "In place of the sections of training.",
    "Private estimates": "In place of the sections of training.",
}


def markdown() -> str:
    """Returns a heading for each group and section, and a table of keys for each variant."""
    lines: list[str] = []
    for group, sections in GROUPS.items():
        lines += [f"## {group}", "", INTRODUCTIONS.get(group, ""), ""]
        for name, kind in sections.items():
            lines += _section(group, name, kind)
    return "\n".join(lines)


def _section(group: str, name: str, kind: Kind) -> Iterator[str]:
    if name:
        apart = "" if name in KINDS and group == "Training" else f" ({group.lower()})"
        yield from (f"### {plain(f'[{name}]')}{apart if name in KINDS else ''}", "")
        yield from ("May be left out." if not kind.required else "Needed.", "")
    shared = _shared(kind)
    if len(kind.variants) > 1 and shared:
        yield from (f"With any {code(kind.tag)}:", "")
        yield from table(("key", "default", "meaning"), shared.values())
    for variant, cls in kind.variants.items():
        rows = [row for key, row in _rows(cls, kind).items() if shared.get(key) != row]
        if variant:
            default = " (default)" if variant == kind.default else ""
            yield from (f"**{code(f'{kind.tag} = {literal(variant)}')}**{default}: {plain(summary(cls))}", "")
        elif text := summary(cls):
            yield from (plain(text), "")
        if rows:
            yield from table(("key", "default", "meaning"), rows)


def _shared(kind: Kind) -> dict[str, tuple[str, str, str]]:
    """The rows that all variants of a section have alike, if it has several."""
    first, *others = (_rows(cls, kind) for cls in kind.variants.values())
    return {key: row for key, row in first.items() if others and all(row == each.get(key) for each in others)}


def _rows(cls: type[Section], kind: Kind) -> dict[str, tuple[str, str, str]]:
    return {
        key: (code(key), _default(field), plain(_meaning(field)))
        for key, field in cls.model_fields.items()
        if key != kind.tag
    }


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ({}, (), ""):
        return "none"
    try:
        return code(literal(value))
    except (TypeError, ValueError):
        return "see the meaning"


def _meaning(field: FieldInfo) -> str:
    words = list(dict.fromkeys(map(literal, names(field.annotation))))
    choices = f" One of {', '.join(f'`{word}`' for word in words)}." if len(words) > 1 else ""
    about = re.sub(r", such as (\[.*\]|\S+)\.$", ".", field.description or "")  # the default is beside it
    return f"{about}{choices}".strip()
