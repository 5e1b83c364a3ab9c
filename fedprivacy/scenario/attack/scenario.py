"""An attack scenario, from a TOML file and back: a training scenario, a game, attacks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fedprivacy.errors import Problem, ScenarioError
from fedprivacy.scenario import reading
from fedprivacy.scenario.attack.sections import ATTACK, GAME, Attack, GameSettings
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.data import FlwrDatasets, Npz
from fedprivacy.scenario.findings import Finding, literal, wrong_type
from fedprivacy.scenario.inspection import inspect, inspect_cells, validate
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
            found += _between(Scenario(**whole.parts), parts["game"], parts["attacks"])
        _refuse([*problems, *map(places.problem, found)])
        return cls(**whole.parts, **parts)

    @property
    def warm_up(self) -> int:
        """The rounds before the attack."""
        return self.server.rounds if self.game.warm_up is None else self.game.warm_up

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables = super().tables()
        game, attacks = (self.model_dump(mode="json", exclude_none=True)[key] for key in _OWN)
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


def _between(run: Scenario, game: GameSettings, attacks: dict[str, Any]) -> Iterator[Finding]:
    """What must hold between the run, the game and the attacks."""
    if run.data.partition not in ("iid", "fixed-records"):
        yield Finding(
            ("data", "partition"),
            "members and non-members must come from the same pool, so records must be dealt at random",
            'Set partition = "iid".',
            literal(run.data.partition),
        )
    if not run.data.public_fraction:
        remedy = "Non-members are drawn from the public part, which no client owns: 0.2, say."
        yield Finding(("data", "public_fraction"), "there are no records to be non-members", remedy, "0.0")
    if run.data.scaling == "public":
        yield Finding(
            ("data", "scaling"),
            "the public part, of which the victim's members come, would be in every client's scaling",
            'Set scaling to another way, such as "bounds".',
            literal("public"),
        )
    if game.victim >= run.population:
        what = f"there is no such client: clients are 0 to {run.population - 1}"
        yield Finding(("game", "victim"), what, "", str(game.victim))
    yield from _enough_records(run, game)
    yield from _enough_rounds(run, game, attacks)
    if run.sampling.name != "all":
        remedy = 'Set sampling.name = "all".'
        yield Finding(("sampling", "name"), "an attacked client must be in every round", remedy)
    if run.federation.chunk_size != 1:
        yield Finding(
            ("federation", "chunk_size"),
            "messages hold sums over several clients, and no single update could be seen or sent",
            "Set chunk_size = 1.",
            str(run.federation.chunk_size),
        )
    if run.privacy.noise_draw == "sum":
        what = "the noise is drawn for sums, and no single update could be seen or sent"
        yield Finding(("privacy", "noise_draw"), what, 'Set noise_draw = "client".', literal("sum"))
    for name, attack in attacks.items():
        yield from (
            Finding(("attacks", name, key), what, remedy)
            for key, what, remedy in _of_attack(run, game, attack)
        )


def _enough_records(run: Scenario, game: GameSettings) -> Iterator[Finding]:
    """Refuses more targets than fair coins can be expected to give; the draw itself counts them."""
    data = run.data
    records = data.facts.records if isinstance(data, Npz | FlwrDatasets) else data.train_records
    public = round(records * data.public_fraction)
    own = math.ceil((records - public) / run.population)
    for key, wanted in (("members", game.members), ("nonmembers", game.nonmembers)):
        if public and 2 * wanted > own + public:
            yield Finding(
                ("game", key),
                f"the victim's {own} records and the {public} public ones are {own + public}, and a fair "
                f"coin for each makes about {(own + public) // 2} {key} of them",
                "Ask for fewer, or deal more records to a client or to the public part.",
                str(wanted),
            )


def _enough_rounds(run: Scenario, game: GameSettings, attacks: dict[str, Any]) -> Iterator[Finding]:
    """Refuses an attack that begins, or goes on, where the run's noise has been used up."""
    rounds, privacy = run.server.rounds, run.privacy
    began = rounds if game.warm_up is None else game.warm_up
    if began > rounds:
        yield Finding(("game", "warm_up"), f"must be at most server.rounds = {rounds}", "", str(began))
    elif privacy.trust == "local" and began >= (most := min(rounds, privacy.max_participations or rounds)):
        yield Finding(
            ("game", "warm_up"),
            f"clients answer {most} times, which is what their noise is made for, and the attack begins "
            f"after {began} rounds: every one of them would refuse",
            f"At most {most - 1}; an attack gets the answers that the warm-up leaves.",
            "" if game.warm_up is None else str(began),
        )
    elif privacy.trust == "central":
        for name, attack in attacks.items():
            played = 0 if attack.isolating else attack.played(game.members + game.nonmembers)
            if began + played > rounds:
                yield Finding(
                    ("attacks", name),
                    f"takes {played} rounds after a warm-up of {began}, and the noise of the global models "
                    f"is made for server.rounds = {rounds}",
                    f"Set game.warm_up, and server.rounds to at least {played} more.",
                )


def _of_attack(run: Scenario, game: GameSettings, attack: Any) -> Iterator[tuple[str, str, str]]:
    if attack.seat == "server" and attack.attacker is not None:
        yield "attacker", 'has no effect with seat = "server"', "Remove it."
    if attack.seat == "participant":
        if attack.isolating:
            yield "isolating", "only the server can isolate", 'Remove it, or set seat = "server".'
        if attack.attacker is not None and (
            attack.attacker >= run.population or attack.attacker == game.victim
        ):
            yield "attacker", "must be another client than the victim", "Clients count from 0."
        if run.population < 2:
            yield "seat", "there is no other client than the victim", "Set data.clients to 2 at least."
        if run.server.optimizer != "sgd":
            what = "an attacker cannot take its own share out of the models that this optimizer makes"
            yield "seat", what, 'Set server.optimizer = "sgd".'
    if attack.kind == "active-gradient-ascent" and attack.seat == "server" and attack.boost is not None:
        yield "boost", 'has no effect with seat = "server"', "Remove it."


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(problems)
