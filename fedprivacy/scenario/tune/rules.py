"""Rules between the section `[tune]` and the rest of the scenario, each valid by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, First, Rule, broken_rules
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import shared
from fedprivacy.scenario.on_nodes import ON_NODES
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.tune.grid import Settings, combinations, with_settings, words_of
from fedprivacy.scenario.tune.sections import Tune
from fedprivacy.scenario.validation import inspect

MOST = 1000  # candidates


@dataclass(frozen=True)
class TuneValues:
    """The values of a tuning scenario by key: those of its run, and of `tune`.

    Args:
        training: The tables of the scenario without `[tune]`.
        run: The scenario without it.
        tune: The section.
    """

    training: Tables
    run: Scenario
    tune: Tune

    def __getitem__(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return getattr(self.tune if section == "tune" else getattr(self.run, section), name, None)

    @cached_property
    def candidates(self) -> list[Settings]:
        """The settings of each candidate."""
        return combinations(self.tune.grid)


def _shared_keys(v: TuneValues) -> Iterator[Finding]:
    """Refuses a key that no candidate may have of its own."""
    for section, keys in v.tune.grid.items():
        for key in keys:
            if shared(section, key):
                what = "is what the choice is made for, the same for all candidates"
                yield Finding(("tune", "grid", section, key), what, "Remove it here.")
                return


def _candidates_are_valid(v: TuneValues) -> Iterator[Finding]:
    """Refuses settings that no scenario may have; a finding about several candidates is reported once."""
    reported = set[str]()
    for candidate in v.candidates:
        for finding in inspect(with_settings(v.training, candidate, v.run.seed)).findings:
            what = f"{words_of(candidate)}: {dotted(finding.path)}: {finding.what}"
            if finding.what not in reported:
                reported.add(finding.what)
                yield Finding(("tune", "grid"), what, finding.remedy)


RULES_OF_CANDIDATES: tuple[Entry[TuneValues], ...] = (
    Rule(
        "server.patience",
        lambda v: v["server.patience"] is not None,
        "candidates play all rounds",
        "Remove it.",
        shown=False,
    ),
    Rule(
        "data.public_fraction",
        lambda v: v["tune.method"] != "random-stopping" and v["data.public_fraction"] == 0,
        lambda v: (
            f'with method = "{v.tune.method}" candidates are trained on the public split, and there is none'
        ),
        "Set public_fraction = 0.1, say.",
        shown=False,
    ),
    First(
        Rule(
            "tune.grid",
            lambda v: any(not values for values in v.tune.grid.values()),
            "a section without a key",
            "Remove it, or name a key and its values.",
            shown=False,
        ),
        Check(_shared_keys),
        Rule(
            "tune.grid",
            lambda v: len(v.candidates) > MOST,
            lambda v: f"{len(v.candidates)} candidates, at most {MOST}",
            "Take fewer values.",
            shown=False,
        ),
        Check(_candidates_are_valid),
    ),
)
TUNE_RULES: tuple[Entry[TuneValues], ...] = (
    First(
        Rule(
            "privacy.trust",
            lambda v: (v["privacy.trust"], v["privacy.unit"]) != ("central", "client"),
            "the cost of a choice is accounted for under central trust, with the client as the unit",
            'Set trust = "central" and unit = "client".',
            shown=False,
        ),
        Rule(
            "data.task",
            lambda v: v["data.task"] not in (None, CLASSIFICATION),
            "a choice is scored by the share of each client's records whose class is named rightly",
            'Set task = "classification", or compare settings of your own choice with fedprivacy compare.',
            shown=False,
        ),
        Rule(
            "data.name",
            {"data.name": ON_NODES},
            "candidates are trained and scored here, and these data are not",
            shown=False,
        ),
        Check(lambda v: broken_rules(RULES_OF_CANDIDATES, v)),
    ),
)
