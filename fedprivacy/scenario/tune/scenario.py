"""A tuning scenario, from a TOML file and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import dotted, literal
from fedprivacy.scenario import changes
from fedprivacy.scenario.cells import inspect_cells
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import Places, refuse
from fedprivacy.scenario.inspection import inspect
from fedprivacy.scenario.kinds import KINDS, shared
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.tune.sections import TUNE, StoppingTune, Tune
from fedprivacy.scenario.validation import Inspection, SectionReader

MOST = 1000  # candidates
_SECTIONS = {**KINDS, "tune": TUNE}
Settings = dict[str, Any]  # "section.key" -> value


class TuneScenario(Scenario):
    """A run, and which of its settings are chosen how: frozen, complete, and valid as a whole."""

    tune: Annotated[Tune, Field(discriminator="method")]

    @classmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""
        training = {key: value for key, value in tables.items() if key != "tune"}
        whole = inspect(training)
        reader = SectionReader(_SECTIONS)
        reader.read_sections({"tune": {}, **tables}, {"tune": TUNE})
        findings = [*whole.findings, *inspect_cells(training, whole), *reader.findings]
        if not findings:
            findings += _between(training, Scenario(**whole.parts), reader.parts["tune"])
        return Inspection(whole.parts | reader.parts, findings)

    @classmethod
    def without_stale_keys(cls, tables: Tables, overrides: Sequence[str]) -> Tables:
        """Returns the tables without what only another method had, where an override changes the method."""
        laid = {change.path for change in changes.parse_overrides(overrides)[0]}
        table = tables.get("tune")
        if ("tune", "method") not in laid or not isinstance(table, dict):
            return tables
        known = TUNE.keys(TUNE.variant(table))
        current = {key: change for key, change in table.items() if key in known or ("tune", key) in laid}
        return {**tables, "tune": current}

    @property
    def settings(self) -> list[Settings]:
        """The candidates: every combination of the grid's values, the last key varying fastest."""
        return _candidates(self.tune)

    @property
    def plain(self) -> Scenario:
        """The scenario without what is chosen."""
        return Scenario(**{key: getattr(self, key) for key in Scenario.model_fields})

    def candidate(self, number: int, seed: int | None = None) -> Scenario:
        """The scenario with the settings of one candidate.

        Args:
            number: Its place in `settings`.
            seed: The seed; None keeps the scenario's.

        Raises:
            ScenarioError: The scenario cannot have them.
        """
        whole = inspect(self.candidate_tables(number, seed))
        refuse(whole.findings, Places(words_of(self.settings[number])))
        return Scenario(**whole.parts)

    def candidate_tables(self, number: int, seed: int | None = None) -> dict[str, Any]:
        """The tables of `candidate`, before they are checked."""
        return _laid(self.tables(), self.settings[number], self.seed if seed is None else seed)

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables = super().tables()
        tune = self.model_dump(mode="json", exclude_none=True)["tune"]
        plain = {key: tables[key] for key in tables if key != "tune"}
        return {**plain, "tune": {"method": tune["method"], **tune}}


def words_of(settings: Mapping[str, Any]) -> str:
    """Settings as a person types them.

    >>> words_of({"server.rounds": 10, "server.learning_rate": 0.1})
    'server.rounds = 10, server.learning_rate = 0.1'
    """
    return ", ".join(f"{key} = {literal(value)}" for key, value in settings.items())


def _candidates(tune: Tune) -> list[Settings]:
    keys = [(f"{section}.{key}", values) for section, of in tune.grid.items() for key, values in of.items()]
    names = [name for name, _ in keys]
    return [
        dict(zip(names, values_chosen, strict=True))
        for values_chosen in itertools.product(*(values for _, values in keys))
    ]


def _laid(tables: Tables, settings: Settings, seed: int) -> Tables:
    base = {key: value for key, value in tables.items() if key not in ("compare", "tune")}
    laid: dict[KeyPath, Any] = {tuple(key.split(".", 1)): value for key, value in settings.items()}
    return changes.lay(base, {**laid, ("seed",): seed})


def _between(training: Tables, run: Scenario, tune: Tune) -> Iterator[Finding]:
    """The problems between the section and the rest of the scenario."""
    if run.privacy.trust != "central" or run.privacy.unit != "client":
        what = "the cost of a choice is accounted for under central trust, with the client as the unit"
        yield Finding(("privacy", "trust"), what, 'Set trust = "central" and unit = "client".')
        return
    if run.data.name == "on-nodes":
        yield Finding(("data", "name"), "candidates are trained and scored here, and these data are not")
        return
    if run.server.patience is not None:
        yield Finding(("server", "patience"), "candidates play all rounds", "Remove it.")
    if not isinstance(tune, StoppingTune) and run.data.public_fraction == 0:
        what = f'with method = "{tune.method}" candidates are trained on the public split, and there is none'
        yield Finding(("data", "public_fraction"), what, "Set public_fraction = 0.1, say.")
    if any(not values for values in tune.grid.values()):
        yield Finding(("tune", "grid"), "a section without a key", "Remove it, or name a key and its values.")
        return
    for section, keys in tune.grid.items():
        for key in keys:
            if shared(section, key):
                what = "is what the choice is made for, the same for all candidates"
                yield Finding(("tune", "grid", section, key), what, "Remove it here.")
                return
    settings = _candidates(tune)
    if len(settings) > MOST:
        yield Finding(("tune", "grid"), f"{len(settings)} candidates, at most {MOST}", "Take fewer values.")
        return
    reported = set[str]()
    for candidate in settings:
        for finding in inspect(_laid(training, candidate, run.seed)).findings:
            what = f"{words_of(candidate)}: {dotted(finding.path)}: {finding.what}"
            if finding.what not in reported:
                reported.add(finding.what)
                yield Finding(("tune", "grid"), what, finding.remedy)
