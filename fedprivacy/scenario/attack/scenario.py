"""An attack scenario, from a TOML file and back: a training scenario, a game, attacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from fedprivacy.errors import Finding, Problem, ScenarioError
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario import reading
from fedprivacy.scenario.attack.arms import ARM, Arm, Played, epsilons_of, inspect_arms, played
from fedprivacy.scenario.attack.checks import between
from fedprivacy.scenario.attack.sections import ATTACK, GAME, Attack, GameSettings
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.cells import Corner, cell, inspect_cells
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import Places, wrong_type
from fedprivacy.scenario.inspection import inspect, validate
from fedprivacy.scenario.kinds import KINDS, Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.sections import NAME

_SECTIONS = {**KINDS, "game": GAME, "attacks": ATTACK, "arms": ARM}
_OWN = ("game", "attacks", "arms")
_NAME = re.compile(NAME)


class AttackScenario(Scenario):
    """A run, the game that is played on it, and who plays: frozen, complete, and valid as a whole.

    A variant, which is played in one arm, has its name, and says which attacks cannot be had there, and why.
    """

    game: GameSettings
    attacks: dict[str, Attack]
    arms: dict[str, Arm] = Field(default_factory=dict)
    arm: str = ""
    skipped: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def from_text(cls, text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> AttackScenario:
        """Reads the text of an attack scenario; `file` is its name in messages.

        Raises:
            ScenarioError: With every mistake of the text and the overrides.
        """
        tables, places, problems = reading.parse(text, file, overrides)
        training = {key: value for key, value in tables.items() if key not in _OWN}
        whole = inspect(training)
        found = whole.findings + inspect_cells(training, whole)
        parts, wrong = _own(tables)
        found += wrong
        if not found:
            run, game, attacks = Scenario(**whole.parts), parts["game"], parts["attacks"]
            if parts["arms"]:
                found += inspect_arms(run, game, attacks, parts["arms"])
            else:
                found += [*_variants(training, run, game), *between(run, game, attacks)]
        _refuse([*problems, *map(places.problem, found)])
        return cls(**whole.parts, **parts)

    @property
    def variants(self) -> list[Self]:
        """The scenarios that are played, each with one privacy: every arm at every epsilon.

        Without arms the scenario's own at every epsilon, with clipping alone, and with none.
        """
        if self.arms:
            return [self._in_arm(*one) for one in self._played()]
        game = self.game.model_copy(update={"epsilons": (), "clipped": False, "unprotected": False})
        found = []
        plain = self._plain
        for trust, epsilon, clipped in _levels(self, self.game):
            run = plain.cell(trust, epsilon, self.seed, clipped=clipped)
            parts = {key: getattr(run, key) for key in Scenario.model_fields if key != "compare"}
            found.append(self.model_copy(update={**parts, "game": game}))
        own = [] if self.game.epsilons else [self.model_copy(update={"game": game})]
        return own + found

    @property
    def _plain(self) -> Scenario:
        return Scenario(**{key: getattr(self, key) for key in Scenario.model_fields})

    def _played(self) -> Iterator[tuple[str, Played]]:
        """Every arm at every epsilon, with the arm's name."""
        run = self._plain
        for name, arm in self.arms.items():
            for epsilon in epsilons_of(run, arm, self.game):
                one = played(run, self.game, self.attacks, arm, epsilon)
                if not isinstance(one, Played):
                    _refuse([Places(f"arms.{name}").problem(finding) for finding in one])
                else:
                    yield name, one

    def _in_arm(self, name: str, one: Played) -> Self:
        parts = {key: getattr(one.run, key) for key in Scenario.model_fields if key != "compare"}
        own = {"game": one.game, "attacks": dict(one.attacks), "arms": {}, "arm": name}
        reasons = {attack: finding.what for attack, finding in one.refused.items()}
        return self.model_copy(update={**parts, **own, "skipped": reasons})

    @property
    def label(self) -> str:
        """What tells a variant from others, in a few words: its arm, if it is of one, and its privacy."""
        return f"{self.arm}, {self.kept}" if self.arm else self.kept

    @property
    def kept(self) -> str:
        """The privacy of a variant in a few words; that of clipping alone names no epsilon."""
        privacy = self.privacy
        if privacy.epsilon is not None:
            return f"epsilon {privacy.epsilon:g}"
        if privacy.noise_multiplier is not None:
            return f"noise multiplier {privacy.noise_multiplier:g}"
        return "no privacy" if privacy.clipping_norm is None else "clipping alone"

    @property
    def warm_up(self) -> int:
        """The rounds before the attack."""
        return self.server.rounds if self.game.warm_up is None else self.game.warm_up

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables = super().tables()
        dumped = self.model_dump(mode="json", exclude_none=True)
        game, attacks = dumped["game"], dumped["attacks"]
        game = {key: value for key, value in game.items() if value != []}
        named = {name: {"kind": attack["kind"], **attack} for name, attack in attacks.items()}
        arms = {"arms": {name: arm.tables for name, arm in self.arms.items()}} if self.arms else {}
        plain = {key: tables[key] for key in tables if key not in _OWN}
        return {**plain, "game": game, "attacks": named, **arms}


def _own(tables: Tables) -> tuple[dict[str, Any], list[Finding]]:
    """The game, the attacks and the arms, as far as they are valid, and what is wrong with them."""
    found: list[Finding] = []
    parts: dict[str, Any] = {}
    game = tables.get("game", {})
    if not isinstance(game, dict):
        found.append(wrong_type(("game",), game, "a section", "Write [game] on a line of its own."))
    else:
        parts["game"], _, wrong = validate(("game",), GAME, game, _SECTIONS)
        found += wrong
    attacks = tables.get("attacks")
    if not isinstance(attacks, dict) or not attacks:
        found.append(Finding(("attacks",), "no attack", 'Add [attacks.NAME] with kind = "passive", say.'))
        attacks = {}
    arms = tables.get("arms", {})
    if not isinstance(arms, dict):
        found.append(wrong_type(("arms",), arms, "a section", "Write [arms.NAME] on a line of its own."))
        arms = {}
    for section, kind, named in (("attacks", ATTACK, attacks), ("arms", ARM, arms)):
        parts[section], wrong = _named(section, kind, named)
        found += wrong
    return parts, found


def _named(section: str, kind: Kind, tables: Mapping[str, Any]) -> tuple[dict[str, Section], list[Finding]]:
    """The valid parts of a section that has one table for each name, and what is wrong with the others."""
    parts, found = dict[str, Section](), list[Finding]()
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            found.append(Finding((section, name), "must be letters, digits and hyphens, at most 64"))
        elif not isinstance(table, dict):
            remedy = f"Write [{section}.{name}] on a line of its own."
            found.append(wrong_type((section, name), table, "a section", remedy))
        else:
            part, _, wrong = validate((section, name), kind, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts[name] = part
    return parts, found


def _levels(run: Scenario, game: GameSettings) -> Iterator[tuple[Any, float | None, bool]]:
    """Of the runs that the game asks for beside the scenario's own: trust, epsilon, whether it only clips."""
    yield from ((run.privacy.trust, epsilon, False) for epsilon in game.epsilons)
    if game.clipped:
        yield "none", None, True
    if game.unprotected:
        yield "none", None, False


def _variants(training: Tables, run: Scenario, game: GameSettings) -> Iterator[Finding]:
    """What is wrong with the runs that the game asks for."""
    for key in ("epsilons", "clipped", "unprotected"):
        if getattr(game, key) and run.privacy.trust == "none":
            remedy = 'Remove it, or set privacy.trust = "local" or "central".'
            yield Finding(("game", key), 'has no effect with privacy.trust = "none"', remedy)
            return
    for trust, epsilon, clipped in _levels(run, game):
        key = "epsilons" if epsilon else "clipped" if clipped else "unprotected"
        for finding in inspect(cell(training, Corner(trust, clipped=clipped), epsilon)).findings:
            what = f"cannot be played at {epsilon or 'no'} epsilon: {dotted(finding.path)}: {finding.what}"
            yield Finding(("game", key), what, finding.remedy)


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(problems)
