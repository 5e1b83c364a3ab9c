"""Attacks that judge targets by the messages of rounds, from the seat of the server or a participant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import OTHER_CLIENT, PLAIN_STEPS, SUM_RULES, not_from
from fedprivacy.scenario.attack.sections import Attack

if TYPE_CHECKING:  # a scenario is read without torch
    from torch import nn

    from fedprivacy.attacks.ascent import Ascent
    from fedprivacy.attacks.transcript import Judgement
    from fedprivacy.attacks.trap_units import TrapUnits

Ids = NDArray[np.int64]


def _is_victim_or_nobody(v: AttackValues) -> bool:
    """Whether the attacker is no client, or the victim itself."""
    attacker = v["attacker"]
    known = attacker is not None
    return known and (attacker >= v.around.run.population or attacker == v.around.game.victim)


class RoundsAttack(Attack):
    """Judges targets by what its seat sees of each round."""

    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        Rule(
            "kind",
            lambda v: not v["in_sum"] and v.around["privacy.trust"] == "distributed",
            'reads or sends single updates, and under trust "distributed" a secure sum shows nobody one',
            'Set sees = "sum" from the server\'s seat, use kind = "released", which attacks the final model, '
            'or privacy.trust = "central" or "local".',
        ),
        *SUM_RULES,
        Rule(
            "isolating",
            lambda v: v["sees"] == "sum" and bool(v["isolating"]),
            "the sum of a victim alone is its update",
            'Remove it, or set sees = "updates".',
        ),
        not_from("server", "attacker", 'has no effect with seat = "server"', "Remove it."),
        not_from(
            "participant", "isolating", "only the server can isolate", 'Remove it, or set seat = "server".'
        ),
        Rule(
            "attacker",
            lambda v: v["seat"] == "participant" and _is_victim_or_nobody(v),
            "must be another client than the victim",
            "Clients count from 0.",
            shown=False,
        ),
        OTHER_CLIENT,
        PLAIN_STEPS,
    )

    seat: Literal["server", "participant"] = Field(
        "server", description="From where: the server sees each update, a participant the global models."
    )
    sees: Literal["updates", "sum"] = Field(
        "updates",
        description='What the server sees of a round: each update, or "sum", the sum of its clients alone.',
    )
    isolating: bool = Field(
        False, description="Whether the server gives the victim a stream of its own instead of the aggregate."
    )
    attacker: int | None = Field(
        None, ge=0, description="The client that attacks from a participant's seat.", examples=[1]
    )

    @property
    def in_sum(self) -> bool:
        """Whether it sees the sum of all clients alone."""
        return self.sees == "sum"

    @property
    def addresses_all(self) -> bool:
        """Whether a server that changes messages sends the same to all clients."""
        return False

    @property
    def multiplier(self) -> float | None:
        """By what a participant multiplies what it changes; None: by what replaces the aggregate."""
        return None

    @abstractmethod
    def turns(self, targets: int, stream: np.random.Generator) -> list[Ids | None]:
        """The targets of each turn, by their numbers in the game; None: all are judged.

        Args:
            targets: How many there are.
            stream: Draws their order.
        """

    def raising(
        self, module: nn.Module, references: Callable[[], NDArray[np.float32]], stream: np.random.Generator
    ) -> Ascent | TrapUnits | None:
        """The way in which it raises losses; None for a passive one.

        Args:
            module: The model.
            references: Gives records of nobody's, shape (records, *features).
            stream: Draws what it plants.
        """
        return None

    def features(self, judgement: Judgement) -> dict[str, NDArray[np.float64]]:
        """The scores of each target by name, from all that was seen; NaN of targets that were not reached."""
        return judgement.features(list(self.watched) or None)
