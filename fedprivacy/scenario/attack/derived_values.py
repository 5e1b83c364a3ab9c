"""Values for the rules of attack scenarios: valid sections, and quantities derived from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedprivacy.scenario.attack.branches import Branch, branches_of
from fedprivacy.scenario.attack.sections import (
    Ascent,
    Attack,
    GameSettings,
    Poisoning,
    Released,
    TrialAttack,
)
from fedprivacy.scenario.data import FileData
from fedprivacy.scenario.model import Code
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.scenario import Scenario


@dataclass(frozen=True)
class GameValues:
    """The values of an attack scenario by key: those of its run, and of `game`.

    Args:
        run: The scenario without its game.
        game: The game.
        attacks: The attacks by name.
    """

    run: Scenario
    game: GameSettings
    attacks: Mapping[str, Attack]

    def __getitem__(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return getattr(self.game if section == "game" else getattr(self.run, section), name, None)

    @property
    def targets(self) -> int:
        """The records that each attack judges."""
        return self.game.members + self.game.nonmembers

    @property
    def has_targets(self) -> bool:
        """Whether any attack judges targets."""
        return not all(isinstance(attack, TrialAttack) for attack in self.attacks.values())

    @property
    def has_pools(self) -> bool:
        """Whether any attack draws records of the victim, or other ones, from one pool."""
        return not all(isinstance(attack, Poisoning) for attack in self.attacks.values())

    @property
    def has_public_pools(self) -> bool:
        """Whether any attack in trials draws records from the victim's and the public ones together."""
        return any(
            isinstance(each, TrialAttack) and not isinstance(each, Poisoning)
            for each in self.attacks.values()
        )

    @property
    def classes(self) -> int | None:
        """The number of classes, as far as it can be known."""
        data = self.run.data
        if isinstance(data, FileData):
            return data.facts.classes(data.classes)
        return 10 if data.name == "digits" else None

    @property
    def features(self) -> tuple[int, ...] | None:
        """The shape of a record, as far as it can be known."""
        data = self.run.data
        if isinstance(data, FileData):
            return data.facts.features
        return (64,) if data.name == "digits" else None

    @property
    def began(self) -> int:
        """The rounds before the attacks."""
        return self.run.server.rounds if self.game.warm_up is None else self.game.warm_up

    @property
    def most_answers(self) -> int:
        """The rounds that a client's noise is made for under local trust."""
        rounds = self.run.server.rounds
        return min(rounds, self.run.privacy.max_participations or rounds)

    @property
    def limits_answers(self) -> bool:
        """Whether attacks take answers that clients count, since their noise is made for so many."""
        trust = self.run.privacy.trust  # under "distributed" other attacks are refused, for a better reason
        return trust == "local" or (trust == "distributed" and self.sums_alone)

    @property
    def answers_before(self) -> int:
        """The answers of the victim before the attacks; of drawn cohorts the expected number, rounded up."""
        sampling, population = self.run.sampling, self.run.population
        cohort = min(population, getattr(sampling, "cohort", population))
        return math.ceil(self.began * getattr(sampling, "rate", cohort / population))

    @property
    def sums_alone(self) -> bool:
        """Whether the attacks on messages, at least one, all see the sum of a round and no update."""
        on_messages = [attack for attack in self.attacks.values() if not isinstance(attack, Released)]
        return bool(on_messages) and all(
            attack.in_sum and not isinstance(attack, TrialAttack) for attack in on_messages
        )

    @property
    def any_sum(self) -> bool:
        """Whether a membership attack sees the sum of a round."""
        return any(attack.in_sum and not isinstance(attack, TrialAttack) for attack in self.attacks.values())

    @property
    def test_records(self) -> int | None:
        """The number of test records, as far as it is known."""
        data = self.run.data
        known = data.facts.test_records if isinstance(data, FileData) else self["data.test_records"]
        return None if known is None else int(known)

    @property
    def addresses_one(self) -> bool:
        """Whether an attack needs the message of a single client, to see it or to change it."""
        return not self.sums_alone or any(
            isinstance(attack, Ascent) and not attack.everybody for attack in self.attacks.values()
        )

    @property
    def branches(self) -> list[Branch]:
        """The branches in which requests are sent."""
        return [branch for branch in branches_of(self.attacks, self.targets) if not branch.silent]

    @property
    def public(self) -> int:
        """The records that no client owns."""
        return round(self._records * self["data.public_fraction"])

    @property
    def by_user(self) -> bool:
        """Whether all targets are records of the victim, since clients are users."""
        return self.has_targets and bool(self["data.partition"] == "by-user")

    @property
    def pool(self) -> int | None:
        """The most records of which members and non-members are drawn, as far as it is known."""
        if self.by_user:
            data = self.run.data
            return data.facts.most_of_user if isinstance(data, FileData) else None
        return self.of_victim + self.public

    @property
    def of_victim(self) -> int:
        """The most records that the victim may own; of users, who differ, those of the mean one."""
        if self["data.partition"] == "fixed-records":
            return int(self["data.records_per_client"])
        return math.ceil((self._records - self.public) / self.run.population)

    @property
    def _records(self) -> int:
        data = self.run.data
        assert not isinstance(data, OnNodes)  # which is reported alone
        return data.facts.records if isinstance(data, FileData) else data.train_records


@dataclass(frozen=True)
class AttackValues:
    """The values of one attack by key, beside the run and the game."""

    attack: Attack
    around: GameValues

    def __getitem__(self, key: str) -> Any:
        return getattr(self.attack, key, None)

    @property
    def last_hidden(self) -> int | None:
        """The number of units of the last hidden layer; 0 without one, None of a model by code."""
        model = self.around.run.model
        if isinstance(model, Code):
            return None
        hidden: tuple[int, ...] = getattr(model, "hidden", ())
        return hidden[-1] if hidden else 0

    @property
    def planted(self) -> int:
        """The number of trap units in a round."""
        return int(self["trap_units"] or 0) * int(self["targets_per_round"] or 0)

    @property
    def is_victim_or_nobody(self) -> bool:
        """Whether the attacker is no client, or the victim itself."""
        attacker = self["attacker"]
        known = attacker is not None
        return known and (attacker >= self.around.run.population or attacker == self.around.game.victim)
