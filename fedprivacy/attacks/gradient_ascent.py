"""Active membership inference by gradient ascent on the targets (Nasr et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.attacks.rounds_attack import Ids, RoundsAttack
from fedprivacy.io.rule_table import Entry, First, Rule, exceeds
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import not_from
from fedprivacy.scenario.model import Code

if TYPE_CHECKING:  # a scenario is read without torch
    from torch import nn

    from fedprivacy.attacks.ascent import Ascent
    from fedprivacy.attacks.trap_units import TrapUnits


def _last_hidden(v: AttackValues) -> int | None:
    """The number of units of the last hidden layer; 0 without one, None of a model by code."""
    model = v.around.run.model
    if isinstance(model, Code):
        return None
    hidden: tuple[int, ...] = getattr(model, "hidden", ())
    return hidden[-1] if hidden else 0


def _planted(v: AttackValues) -> int:
    """The number of trap units in a round."""
    return int(v["trap_units"] or 0) * int(v["targets_per_round"] or 0)


class GradientAscent(RoundsAttack):
    """Raises the loss on targets and watches it being corrected."""

    label: ClassVar[str] = "gradient ascent"
    active: ClassVar[bool] = True
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        *RoundsAttack.rules,
        Rule(
            "targets_per_round",
            lambda v: exceeds(v["targets_per_round"], v.around.targets),
            lambda v: f"there are {v.around.targets} targets in all",
            lambda v: f"At most {v.around.targets}.",
            shown=False,
        ),
        not_from(
            "participant",
            "trap_units",
            "only the server sends a model as it is: others are averaged",
            'Remove it, or set seat = "server".',
        ),
        Rule(
            "trap_units",
            lambda v: v["trap_units"] is not None and v["raw"],
            "has no effect with raw = true",
            "Remove one of them.",
        ),
        Rule(
            "trap_units",
            lambda v: v["trap_units"] is not None and v["trap_units"] % 2 == 1,
            "come in pairs",
            "Set an even number, such as 4.",
        ),
        Rule(
            "steepness",
            lambda v: v["steepness"] is not None and v["trap_units"] is None,
            "has no effect without trap_units",
            "Remove it, or set trap_units = 4.",
        ),
        First(
            Rule(
                "trap_units",
                lambda v: v["trap_units"] is not None and _last_hidden(v) == 0,
                lambda v: f'needs a hidden layer, and model.name = "{v.around["model.name"]}" has none here',
                lambda v: (
                    'Remove it, or set model.name = "mlp" and model.activation = "tanh".'
                    if v.around["model.name"] == "logistic"
                    else 'Remove it, or set model.hidden = [128] and model.activation = "tanh".'
                ),
            ),
            Rule(
                "trap_units",
                lambda v: v["trap_units"] is not None and v.around["model.activation"] == "relu",
                "a ReLU is not saturated behind a target, so it would raise the loss on other records",
                'Set model.activation = "tanh", or remove it.',
            ),
            Rule(
                "trap_units",
                lambda v: exceeds(_planted(v), _last_hidden(v)),
                lambda v: (
                    f"{v['targets_per_round']} targets a round need {_planted(v)} units, and the last hidden "
                    f"layer has {_last_hidden(v)}"
                ),
                "Set targets_per_round or trap_units lower, or a larger model.hidden.",
            ),
        ),
        not_from("server", "boost", 'has no effect with seat = "server"', "Remove it."),
        Rule(
            "everybody",
            lambda v: bool(v["everybody"]) and (v["seat"] == "participant" or v["isolating"]),
            "only a server that does not isolate the victim sends to all",
            "Remove it.",
            shown=False,
        ),
    )

    kind: Literal["active-gradient-ascent"]
    targets_per_round: int = Field(
        1, ge=1, le=10**5, description="How many targets are attacked at once, such as 1."
    )
    level: Annotated[float, Field(gt=0, le=1000)] = Field(
        3.0, description="The loss that targets are raised to; with raw = true it has no effect."
    )
    raw: bool = Field(False, description="Instead one step of the gradient times `step`, as in the paper.")
    step: float = Field(
        0.1, gt=0, le=10**6, description="The length of a step; of a raw one the gradient's factor."
    )
    tries: int = Field(60, ge=1, le=10**5, description="The most steps to a level, such as 60.")
    trap_units: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Instead of steps, how many units of the last hidden layer, in pairs, react to each "
        "target alone and raise its loss to the level, such as 4; not with ReLU.",
        examples=[4],
    )
    steepness: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="How steep trap units are; else 10,000. Less suits a CNN, whose earlier layers move.",
        examples=[100.0],
    )
    everybody: bool = Field(
        False,
        description="Whether the server sends the raised weights to all clients, not to one.",
    )
    boost: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="By what a participant multiplies its ascent to survive averaging; else what the server "
        "divides by: the cohort's size.",
        examples=[4.0],
    )

    @property
    def addresses_one(self) -> bool:
        """Whether it sends its weights to a single client."""
        return not self.everybody

    @property
    def addresses_all(self) -> bool:
        """Whether the server sends the raised weights to all clients."""
        return self.everybody

    @property
    def multiplier(self) -> float | None:
        """By what a participant multiplies its ascent."""
        return self.boost

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds; a participant ascends in one and observes in the next."""
        turns = math.ceil(targets / self.targets_per_round)
        return 2 * turns + 1 if self.seat == "participant" else turns

    def turns(self, targets: int, stream: np.random.Generator) -> list[Ids | None]:
        """So many targets a turn, in a random order."""
        order = stream.permutation(targets)
        size = self.targets_per_round
        return [order[start : start + size] for start in range(0, len(order), size)]

    def raising(
        self, module: nn.Module, references: Callable[[], NDArray[np.float32]], stream: np.random.Generator
    ) -> Ascent | TrapUnits:
        """Gradient steps, or trap units; see `RoundsAttack.raising`."""
        if self.trap_units is not None:
            from fedprivacy.attacks.trap_units import STEEPNESS, TrapUnits

            return TrapUnits(
                module,
                references(),
                stream,
                units=self.trap_units,
                level=self.level,
                steepness=self.steepness or STEEPNESS,
            )
        from fedprivacy.attacks.ascent import Ascent

        return Ascent(None if self.raw else self.level, self.step, self.tries)

    def claims(self) -> dict[str, Any]:
        """The targets of a round, and its way of raising losses if not by steps for the victim alone."""
        ways = {"trap_units": self.trap_units, "raw": self.raw, "everybody": self.everybody}
        chosen = {key: value for key, value in ways.items() if value}
        return {"targets_per_round": self.targets_per_round, **chosen}
