"""All findings about the tables of a training scenario: in its sections, and between them."""

from __future__ import annotations

from fedprivacy.scenario import changes
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import HEAD, KINDS
from fedprivacy.scenario.rules import training
from fedprivacy.scenario.validation import Inspection, SectionReader
from fedprivacy.scenario.values import Values
from fedprivacy.scenario.words import meant


def inspect(tables: Tables) -> Inspection:
    """Validates a scenario without the cells of its comparison."""
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
