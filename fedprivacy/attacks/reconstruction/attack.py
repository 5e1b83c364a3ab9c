"""Reconstruction as an attack in trials: one record of the victim is drawn from a prior, and rebuilt.

In each trial the victim trains on one of the candidates, drawn at random, and on records that the attacker
knows. The candidates are known too: a prior of equal mass. The record counts as rebuilt if a guess is nearer
to it than half the distance to any other candidate (`similarity`), or if the attacker names it. So blind
guesses succeed with probability guesses / candidates at most, which is kappa of the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from fedprivacy.attacks.reconstruction.bound import bound_of_ledger, mass_of_guesses
from fedprivacy.attacks.reconstruction.rules import METHOD_RULES
from fedprivacy.attacks.trials import Ceiling, Outcome, TrialAttack, Victim, Without
from fedprivacy.errors import InputError
from fedprivacy.io.rule_table import Entry
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import PLAIN_STEPS, SINGLE_SUM_RULES, SUM_RULES

KEY = "trials/0"  # of the noise; another key draws other noise


class Reconstruction(TrialAttack):
    """Rebuilds a record of the victim from its update, or picks it out of a prior of candidates."""

    label: ClassVar[str] = "reconstruction"
    observed: ClassVar[str] = KEY
    scoring: ClassVar[frozenset[str]] = frozenset({"search_steps", "variation"})
    success: ClassVar[str] = "the attacker rebuilds the victim's record"
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        *TrialAttack.rules,
        PLAIN_STEPS,
        *SUM_RULES,
        *SINGLE_SUM_RULES,
        *METHOD_RULES,
    )

    kind: Literal["reconstruction"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    sees: Literal["updates", "sum"] = Field(
        "updates",
        description='What the server sees of a round: each update, or "sum", the sum of all clients alone.',
    )
    method: Literal["analytic", "imprint", "inverting", "informed"] = Field(
        description="How: by the first linear layer's gradient; by bins of brightness in a malicious first "
        "layer; by a search for pictures with the same gradient; or the likeliest of the candidates."
    )
    candidates: int = Field(
        1000,
        ge=2,
        le=10**6,
        description="How many records the victim's record is drawn from, all known to the attacker.",
    )
    batch: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How many records the victim trains on in a trial; else as many as it has.",
        examples=[1],
    )
    bins: int = Field(
        128, ge=2, le=10**5, description='The bins of method = "imprint": the outputs of the first layer.'
    )
    search_steps: int = Field(
        600, ge=1, le=10**6, description='The steps of the search of method = "inverting", such as 600.'
    )
    variation: float = Field(
        0.01, ge=0, le=10**6, description='How much method = "inverting" weighs smooth pictures.'
    )

    @property
    def in_sum(self) -> bool:
        """Whether the server sees the sum of all clients alone."""
        return self.sees == "sum"

    @property
    def guesses(self) -> int:
        """The number of pictures that the attacker rebuilds in a trial."""
        return {"imprint": self.bins, "inverting": self.batch or 1}.get(self.method, 1)

    def chance(self, without: Without | None = None) -> float:
        """The success of guesses that are made without the update."""
        return mass_of_guesses(self.guesses, self.candidates)

    def ceiling(self, ledger: Mapping[str, Any], run: AttackScenario, without: Without | None) -> Ceiling:
        """Reconstruction robustness by the seat's trade-off curve; see `TrialAttack.ceiling`."""
        return bound_of_ledger(ledger, self.seat, self.chance())

    def check(self, victim: Victim) -> None:
        """Refuses a model that does not fit the method, or too many records; see `TrialAttack.check`."""
        # A scenario is read without torch.
        from fedprivacy.attacks.reconstruction.analytic import FirstLayer
        from fedprivacy.attacks.reconstruction.imprint import quantiles
        from fedprivacy.attacks.reconstruction.inverting import check_last_biases
        from fedprivacy.attacks.reconstruction.rebuilding import flat_records

        of_worlds, of_attacker = victim.pools()
        batch = self.batch or victim.size
        if batch > victim.size:
            raise InputError(f"batch = {batch}: the victim has {victim.size} records. At most as many.")
        free = len(of_worlds) - (batch - 1)
        if self.candidates > free:
            raise InputError(
                f"candidates = {self.candidates}: there are {len(of_worlds)} records to draw from, and "
                f"{batch - 1} more are the victim's. At most {free}, or make data.public_fraction larger."
            )
        if self.method == "imprint":
            quantiles(flat_records(victim, of_attacker), self.bins)
        if self.method in ("analytic", "imprint"):
            FirstLayer.of(victim.module)
        if self.method == "inverting":
            check_last_biases(victim.module, victim.classes)
        if self.in_sum and victim.is_noisy:
            raise InputError(
                'sees = "sum": the noise of all other clients is drawn anew in each trial, which is Gaussian '
                'noise alone. Set privacy.mechanism = "gaussian", or sees = "updates".'
            )
        if self.method == "informed" and victim.is_noisy:
            raise InputError(
                'method = "informed": the noise is no Gaussian noise on whole updates, whose likelihood the '
                'attack takes. Set privacy.mechanism = "gaussian".'
            )

    def run(self, victim: Victim) -> Outcome:
        """Draws a record from the candidates in each trial, and lets the attacker rebuild it."""
        from fedprivacy.attacks.reconstruction.rebuilding import run_trials

        return run_trials(self, victim)
