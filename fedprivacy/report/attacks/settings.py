"""The game, the attacks and the attacked run: with which settings."""

from __future__ import annotations

from collections.abc import Mapping

from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import page_end, words
from fedprivacy.report.blocks import Facts, Section

SECTIONS = ("game", "data", "model", "training", "server", "privacy", "federation", "evaluation")


def sections(document: ReplayDocument) -> list[Section]:
    """The settings; no section if the document has none."""
    facts = [
        (words.capital(name), page_end.flat(part))
        for name in SECTIONS
        if isinstance(part := document.scenario.get(name), Mapping) and part
    ]
    facts += [
        (f"Attack {name}", page_end.flat(part))
        for name, part in document.attack_settings.items()
        if isinstance(part, Mapping)
    ]
    arms = document.scenario.get("arms")
    facts += [
        (f"Arm {name}", page_end.flat(part) or "the scenario as it is")
        for name, part in (arms.items() if isinstance(arms, Mapping) else ())
        if isinstance(part, Mapping)
    ]
    return [Section("settings", "Settings", [Facts(facts)])] if facts else []
