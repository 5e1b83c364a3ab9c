"""An attack scenario, from a TOML file and back: a training scenario, a game, attacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Self

from fedprivacy.errors import Problem, ScenarioError
from fedprivacy.scenario import reading
from fedprivacy.scenario.attack.checks import between
from fedprivacy.scenario.attack.sections import ATTACK, GAME, Attack, GameSettings
from fedprivacy.scenario.cells import Corner, cell, inspect_cells
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import Finding, dotted, wrong_type
from fedprivacy.scenario.inspection import inspect, validate
from fedprivacy.scenario.kinds import KINDS
from fedprivacy.scenario.scenario import Scenario

_SECTIONS = {**KINDS, "game": GAME, "attacks": ATTACK}
_OWN = ("game", "attacks")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class AttackScenario(Scenario):
    """A run, the game that is played on it, and who plays: frozen, complete, and valid as a whole."""

    game: GameSettings
    attacks: dict[str, Attack]

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
            run, game = Scenario(**whole.parts), parts["game"]
            found += [*_variants(training, run, game), *between(run, game, parts["attacks"])]
        _refuse([*problems, *map(places.problem, found)])
        return cls(**whole.parts, **parts)

    @property
    def variants(self) -> list[Self]:
        """The scenarios that are played, each with one privacy: every epsilon, clipping alone, and none."""
        game = self.game.model_copy(update={"epsilons": (), "clipped": False, "unprotected": False})
        found = []
        plain = Scenario(**{key: getattr(self, key) for key in Scenario.model_fields})
        for trust, epsilon, clipped in _levels(self, self.game):
            run = plain.cell(trust, epsilon, self.seed, clipped=clipped)
            parts = {key: getattr(run, key) for key in Scenario.model_fields if key != "compare"}
            found.append(self.model_copy(update={**parts, "game": game}))
        own = [] if self.game.epsilons else [self.model_copy(update={"game": game})]
        return own + found

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
        game, attacks = (self.model_dump(mode="json", exclude_none=True)[key] for key in _OWN)
        game = {key: value for key, value in game.items() if value != []}
        named = {name: {"kind": attack["kind"], **attack} for name, attack in attacks.items()}
        return {**{key: tables[key] for key in tables if key not in _OWN}, "game": game, "attacks": named}


def _own(tables: Tables) -> tuple[dict[str, Any], list[Finding]]:
    """The game and the attacks, as far as they are valid, and what is wrong with them."""
    found: list[Finding] = []
    parts: dict[str, Any] = {"attacks": {}}
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
    for name, table in attacks.items():
        if not _NAME.fullmatch(name):
            found.append(Finding(("attacks", name), "must be letters, digits and hyphens, at most 64"))
        elif not isinstance(table, dict):
            remedy = f"Write [attacks.{name}] on a line of its own."
            found.append(wrong_type(("attacks", name), table, "a section", remedy))
        else:
            part, _, wrong = validate(("attacks", name), ATTACK, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts["attacks"][name] = part
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
