"""The result document of attacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from fedprivacy.documents.attack import CLIPPED, ArmResult, Attack, Level, Verdict
from fedprivacy.documents.envelope import STATUS, Document, Performance
from fedprivacy.documents.ledger import Ledger
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.documents.trial import TrialResult
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Checked, Raw


class ReplayDocument(Document):
    """Attacks on one or several runs of a scenario."""

    KIND = "replay"
    OPERATOR_ONLY = (
        *("attacks[].model_accuracy.train", "arms[].accuracy.train", "arms[].accuracies.train"),
        *(
            "attacks[].seconds",
            "trials[].seconds",
            "trials[].pictures",
            "exposures",
            "performance.seconds",
            "error",
        ),
        *SEEDS,
    )

    name: Annotated[str, CHECKED] = "unnamed"
    status: Annotated[str, STATUS] = "finished"
    error: Annotated[str | None, CHECKED] = None
    attacks: Annotated[tuple[Attack, ...], Checked(Annotated[list[Attack], Field(max_length=1000)])] = ()
    trials: Annotated[
        tuple[TrialResult, ...], Checked(Annotated[list[TrialResult], Field(max_length=1000)], optional=True)
    ] = ()
    arms: Annotated[
        tuple[ArmResult, ...], Checked(Annotated[list[ArmResult], Field(max_length=1000)], optional=True)
    ] = ()
    exposures: Raw = None  # the operator's, with a section of its own
    plans: Annotated[Raw, Checked(Annotated[list[dict[str, Any]], Field(max_length=1000)])] = None
    ledgers: Annotated[Raw, Checked(Annotated[list[Ledger], Field(max_length=1000)])] = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    operator_only: Raw = None
    performance: Performance | None = None

    @model_validator(mode="after")
    def _every_private_run_has_an_epsilon(self) -> ReplayDocument:
        """Runs that were given their noise, not an epsilon, have the largest that is guaranteed."""
        given = [attack for attack in self.completed if attack.lacks_epsilon]
        held = [
            g.epsilon for attack in given if (g := attack.guarantee) is not None and g.holds and g.epsilon
        ]
        if not held or self.arms:  # each arm has its own
            return self
        update = {"epsilon": max(held)}
        attacks, trials = (
            tuple(each.model_copy(update=update) if each.lacks_epsilon else each for each in part)
            for part in (self.attacks, self.trials)
        )
        return self.model_copy(update={"attacks": attacks, "trials": trials})

    @property
    def completed(self) -> tuple[Attack | TrialResult, ...]:
        """All attacks that were completed, those in trials last."""
        return (*self.attacks, *self.trials)

    @property
    def trust(self) -> str:
        """The trust model of the attacked runs."""
        return str(self.setting("privacy", "trust") or "none")

    @property
    def attack_settings(self) -> Mapping[str, Any]:
        """The attacks of the scenario by name."""
        attacks = self.scenario.get("attacks")
        return attacks if isinstance(attacks, Mapping) else {}

    @property
    def seats(self) -> dict[str, list[Attack]]:
        """The attacks of each seat, the server's first."""
        order = sorted(
            dict.fromkeys(attack.seat for attack in self.attacks), key=lambda seat: seat != "server"
        )
        return {seat: [attack for attack in self.attacks if attack.seat == seat] for seat in order}

    @property
    def judged(self) -> Verdict | None:
        """The verdict, where a figure could be compared with a bound."""
        return None if self.verdict is None or self.verdict.checks == 0 else self.verdict

    @property
    def levels(self) -> tuple[Level, ...]:
        """The epsilons of the attacked runs, the strictest first; then clipping alone; last no privacy."""
        present = {attack.level for attack in self.completed}
        private = sorted({attack.epsilon for attack in self.completed if attack.epsilon is not None})
        return (*private, *(level for level in (CLIPPED, None) if level in present))

    @property
    def several(self) -> bool:
        """Whether the attacked runs differ in their privacy, so that an attack's name is not enough."""
        return len(self.levels) > 1

    @property
    def cells(self) -> dict[tuple[str, Level], list[Attack]]:
        """The attacks of each seat at each level, the server's first, the strictest level first."""
        by_cell = {
            (seat, level): [attack for attack in group if attack.level == level]
            for seat, group in self.seats.items()
            for level in self.levels
        }
        return {key: group for key, group in by_cell.items() if group}

    @property
    def planned(self) -> int | None:
        """The number of attacks in the scenario, over all its levels; None if unknown."""
        if self.scenario.get("arms"):
            return None  # in each arm those that can be had
        epsilons = self.setting("game", "epsilons")
        epsilon_count = len(epsilons) if isinstance(epsilons, list) and epsilons else 1
        beside = sum(self.setting("game", key) is True for key in ("clipped", "unprotected"))
        return len(self.attack_settings) * (epsilon_count + beside) or None

    def trust_at(self, level: Level) -> str:
        """The trust model of the runs at a level; by default the scenario's."""
        return next(
            (attack.trust for attack in self.completed if attack.level == level and attack.trust), self.trust
        )

    def guarantees(self, level: Level) -> list[Guarantee]:
        """The guarantees at a level against each attacking seat, once."""
        by_observer = {
            attack.guarantee.observer: attack.guarantee
            for attack in self.completed
            if attack.level == level and attack.guarantee is not None
        }
        return list(by_observer.values())
