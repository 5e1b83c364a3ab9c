"""Attacks on the released model of a run, by models of the attacker's own."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from fedprivacy.scenario.attack.sections import Attack
from fedprivacy.scenario.sections import no_repeats

# The attacks of `fedprivacy.attacks.released.battery`; a test compares these names with it.
Method = Literal[
    "lira",
    "lira-global",
    "rmia",
    "lira-offline",
    "rmia-offline",
    "shadow",
    "network-outputs",
    "network-gradients",
    "loss",
    "confidence",
    "entropy",
    "modified-entropy",
    "loss-by-class",
]
NOTE = (
    "An attacker of the released model has that model alone. It knows the records of the training data and "
    "their labels, how models are trained on them, and records that nobody trains on, but neither whose a "
    "record is nor who is a member. Each of its reference models is trained on a half of these records that "
    "its own coins drew, in one place and without noise. The result holds for outsiders only: a participant "
    "receives the model of every round, and with server.averaging these are not the released mean."
)


class Released(Attack):
    """Has the trained model alone, or its outputs, and compares it with models of its own."""

    label: ClassVar[str] = "released model"
    note: ClassVar[str] = NOTE
    silent: ClassVar[bool] = True

    kind: Literal["released"]
    seat: Literal["outsider"] = Field("outsider", description="From where: it was sent nothing.")
    methods: Annotated[tuple[Method, ...], AfterValidator(no_repeats)] = Field(
        ("lira", "rmia", "loss"),
        min_length=1,
        strict=False,
        description='How it scores records, such as ["lira"]; told is what did best on other folds.',
    )
    references: int = Field(
        32, ge=8, le=10**4, description="How many models it trains to compare with, such as 32."
    )
    epochs: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How often such a model goes through its records; else as often as clients do in all.",
        examples=[20],
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="The records of its steps; else as many as all clients take together in one step.",
        examples=[128],
    )
    gamma: float = Field(2.0, gt=0, le=10**6, description="How far a record has to prevail in RMIA.")
    offline_a: float = Field(
        0.3, ge=0, le=1, description="Of RMIA: 1 takes the mean of models without a record as it is."
    )

    @property
    def isolating(self) -> bool:
        """It sends nothing to anybody."""
        return False

    @property
    def shared_key(self) -> str:
        """All settings of its reference models, which attacks with the same ones share."""
        return f"released {self.model_dump_json(exclude={'methods', 'kind', 'seat'}, exclude_none=True)}"

    def trainings(self, rounds: int, population: int, in_a_sum: int, warm_up: int) -> int:
        """A reference model counts as the run."""
        return self.references * warm_up * population
