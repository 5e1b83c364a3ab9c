"""An attack scenario, from a TOML file and back: a training scenario, a game, attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import Field

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario.attack.arms import ARM, Arm, ArmRun, epsilons_of, game_in_arm, inspect_arms
from fedprivacy.scenario.attack.derived_values import GameValues
from fedprivacy.scenario.attack.registry import ATTACK, AnyAttack
from fedprivacy.scenario.attack.rules import RULES_OF_VARIANTS, between
from fedprivacy.scenario.attack.sections import GAME, Attack, GameSettings
from fedprivacy.scenario.cells import Corner, cell
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.extended_scenario import TRAINING_SECTIONS, ExtendedScenario
from fedprivacy.scenario.findings import Places, refuse
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.validation import SectionReader, inspect


class AttackScenario(ExtendedScenario):
    """A run, the attack game on it, and its attackers: frozen, complete, and valid as a whole.

    The variant of one arm has the arm's name, and the attacks that are impossible there, with the reasons.
    """

    kind: ClassVar[str] = "replay"
    revealed_by: ClassVar[tuple[str, ...]] = ("attacks", "game", "arms")
    extra: ClassVar[Mapping[str, Kind]] = {"game": GAME, "attacks": ATTACK, "arms": ARM}
    section_kinds: ClassVar[Mapping[str, Kind]] = {**TRAINING_SECTIONS, **extra}
    named_sections: ClassVar[tuple[str, ...]] = ("attacks", "arms")
    game: GameSettings
    attacks: dict[str, AnyAttack]
    arms: dict[str, Arm] = Field(default_factory=dict)
    arm: str = ""
    skipped: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def read_extra(cls, reader: SectionReader, tables: Tables) -> None:
        """Reads the game, the attacks and the arms."""
        reader.read_sections(tables, {"game": GAME})
        absent = Finding(("attacks",), "no attack", 'Add [attacks.NAME] with kind = "passive", say.')
        reader.read_named(tables, "attacks", ATTACK, absent)
        reader.read_named(tables, "arms", ARM, None)

    @classmethod
    def between(cls, training: Tables, run: Scenario, parts: Mapping[str, Any]) -> Iterator[Finding]:
        """Returns the mistakes between the run, the game, the attacks and the arms."""
        game, attacks, arms = (parts[name] for name in cls.extra)
        if arms:
            yield from inspect_arms(run, game, attacks, arms)
        else:
            yield from RULES_OF_VARIANTS.findings(GameValues(run, game, attacks))
            yield from _variants(training, run, game)
            yield from between(run, game, attacks)

    @property
    def training_summary(self) -> str:
        """The clients, their records, the model that they train, and the attacks on it."""
        return f"{super().training_summary}, which is attacked by {', '.join(self.attacks)}"

    @property
    def membership_attacks(self) -> dict[str, Attack]:
        """The attacks that judge targets, by name."""
        return {name: attack for name, attack in self.attacks.items() if attack.judges_targets}

    @property
    def variants(self) -> list[Self]:
        """The scenarios to run, each with one privacy level: every arm at every epsilon.

        Without arms the scenario's own at every epsilon, with clipping alone, and with none.
        """
        if self.arms:
            return [self._in_arm(*outcome) for outcome in self._games()]
        game = self.game.model_copy(update={"epsilons": (), "clipped": False, "unprotected": False})
        results = []
        plain = self.plain
        for trust, epsilon, clipped in _levels(self, self.game):
            run = plain.cell(trust, epsilon, self.seed, clipped=clipped)
            parts = {key: getattr(run, key) for key in Scenario.model_fields if key != "compare"}
            results.append(self.model_copy(update={**parts, "game": game}))
        single = [] if self.game.epsilons else [self.model_copy(update={"game": game})]
        return single + results

    def _games(self) -> Iterator[tuple[str, ArmRun]]:
        """Every arm at every epsilon, with the arm's name."""
        run = self.plain
        for name, arm in self.arms.items():
            for epsilon in epsilons_of(run, arm, self.game):
                outcome = game_in_arm(run, self.game, self.attacks, arm, epsilon)
                if not isinstance(outcome, ArmRun):
                    refuse(outcome, Places(f"arms.{name}"))
                else:
                    yield name, outcome

    def _in_arm(self, name: str, outcome: ArmRun) -> Self:
        parts = {key: getattr(outcome.run, key) for key in Scenario.model_fields if key != "compare"}
        settings = {"game": outcome.game, "attacks": dict(outcome.attacks), "arms": {}, "arm": name}
        reasons = {attack: finding.what for attack, finding in outcome.refused.items()}
        return self.model_copy(update={**parts, **settings, "skipped": reasons})

    @property
    def label(self) -> str:
        """The short label of a variant: its arm, if any, and its privacy."""
        return f"{self.arm}, {self.privacy_label}" if self.arm else self.privacy_label

    @property
    def privacy_label(self) -> str:
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

    def extra_tables(self) -> dict[str, Any]:
        """Returns the game, the attacks and, where there are any, the arms as plain tables."""
        dumped = self.model_dump(mode="json", exclude_none=True)
        arms = {name: arm.tables for name, arm in self.arms.items()}
        return {
            "game": {key: value for key, value in dumped["game"].items() if value != []},
            "attacks": {name: ATTACK.tag_first(attack) for name, attack in dumped["attacks"].items()},
            **({"arms": arms} if arms else {}),
        }


def _levels(run: Scenario, game: GameSettings) -> Iterator[tuple[Any, float | None, bool]]:
    """The additional runs of the game: trust, epsilon, and whether they only clip."""
    yield from ((run.privacy.trust, epsilon, False) for epsilon in game.epsilons)
    if game.clipped:
        yield "none", None, True
    if game.unprotected:
        yield "none", None, False


def _variants(training: Tables, run: Scenario, game: GameSettings) -> Iterator[Finding]:
    """The problems of the runs that the game adds."""
    if run.privacy.trust == "none":
        return  # which has no others
    for trust, epsilon, clipped in _levels(run, game):
        key = "epsilons" if epsilon else "clipped" if clipped else "unprotected"
        for finding in inspect(cell(training, Corner(trust, clipped=clipped), epsilon)).findings:
            what = f"cannot run at {epsilon or 'no'} epsilon: {dotted(finding.path)}: {finding.what}"
            yield Finding(("game", key), what, finding.remedy)
