"""Attacks in trials: one experiment repeated with fresh secrets, its success beside chance and bound.

Membership attacks judge many records of one run. Other questions (which property, which picture) have one
secret a run, so that the run, or its observed rounds, is repeated. A kind of such attacks is a `TrialAttack`
in a file of this room, with its line in `fedprivacy.scenario.attack.registry`.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.attacks.intervals import CONFIDENCE, TARGETS, Figure, proportion_high, proportion_low
from fedprivacy.attacks.poisoned_records import Poison
from fedprivacy.errors import InputError
from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import OTHER_CLIENT
from fedprivacy.scenario.attack.sections import Attack

if TYPE_CHECKING:  # a stored run is shown without torch
    from torch import nn

TRIALS = (
    "An attack in trials repeats its experiment with a fresh secret each time. The victim answers in the "
    "observed rounds of one run, each time from other records and with noise of its own. Only one "
    "of the trials would really happen, and the guarantee covers that one."
)
GUESSING = "guessing succeeds"
NUMBERS = 2**25  # of observations in memory at once
Records = tuple[NDArray[np.float32], NDArray[np.int64]]  # records (records, *features), labels (records,)
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class RebuiltPicture:
    """An original beside what an attacker made of it, and the wrong picture that is nearest to it.

    Each is a row of hexadecimal digits, of which a channel of a pixel has one: training data, which only the
    operator may see unless they are public.

    Args:
        side: The pixels of a side.
        channels: 1 or 3, the channels of a pixel being neighbours.
        original: The record.
        rebuilt: The nearest picture of the attacker.
        wrong: The nearest other candidate.
        psnr: Of the rebuilt picture, in dB.
        wrong_psnr: Of the wrong one, in dB.
    """

    side: int
    channels: int
    original: str
    rebuilt: str
    wrong: str
    psnr: float
    wrong_psnr: float


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attack's trials on one run.

    Args:
        successes: The number of trials in which the attacker succeeded.
        trials: The number of trials.
        figures: Further figures by name, such as "AUC"; values lie between -1 and 1.
        numbers: Further numbers by name and unit, such as "PSNR, dB".
        pictures: Some originals beside what the attacker made of them; empty where there are none.
        accuracy: The attacked model's accuracy on held-out records.
        seconds: The duration.
        without: The outcome of the same trials without the attack, where the kind runs them.
        scored_again: The name of the other attack's transcript (`TrialAttack.recording`) that was scored;
            empty for trials that were observed for this attack.
    """

    successes: int
    trials: int
    figures: dict[str, Figure] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    pictures: tuple[RebuiltPicture, ...] = ()
    accuracy: float | None = None
    seconds: float = 0.0
    without: Outcome | None = None
    scored_again: str = ""


@dataclass(frozen=True)
class Without:
    """What the trials give without the attack, over all runs.

    Args:
        success: The share of trials in which what the attack is after happens by itself.
        figures: The further figures, by name.
        trials: The number of trials.
    """

    success: Figure
    figures: Mapping[str, Figure]
    trials: int

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        figures = {name: figure.to_json() for name, figure in self.figures.items()}
        return {"success": self.success.to_json(), "figures": figures}


@dataclass(frozen=True)
class Ceiling:
    """The most that a guarantee allows an attacker in trials.

    Args:
        success: The largest probability of success; None where nothing is guaranteed.
        assumptions: Those of the bound; where nothing is guaranteed, the reason.
        basis: The trade-off curve, or the pair, that it follows from.
        figures: The largest values of further figures, by name.
        floors: The smallest values of further figures, by name.
        provided: A condition on the attacker, as a clause, if the bound is not for every attacker; a success
            above it then refutes no guarantee.
    """

    success: float | None
    assumptions: tuple[str, ...]
    basis: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    provided: str = ""

    def to_json(self) -> dict[str, Any]:
        """The bound as a JSON object."""
        return {
            "success": self.success,
            "figures": dict(self.figures),
            **({"floors": dict(self.floors)} if self.floors else {}),
            "basis": self.basis or None,
            **({"provided": self.provided} if self.provided else {}),
            "assumptions": list(self.assumptions),
        }


class Victim(Protocol):
    """A seat's access to the attacked client, in a run that continues from its warm-up.

    Models that clients are sent are those of the run. In each world the victim has other records, and
    answers by the run's code, plan and noise.
    """

    @property
    def weights(self) -> Sequence[NDArray[np.float32]]:
        """The model that clients are sent in each observed round, each of shape (parameters,)."""

    @property
    def size(self) -> int:
        """The number of the victim's records, which is public; a world may have fewer."""

    @property
    def classes(self) -> int:
        """The number of classes."""

    @property
    def count(self) -> int:
        """The number of all records of the data."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features; empty where they have none."""

    def pools(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The records that worlds are drawn from, and the attacker's own, which are no client's.

        Returns:
            Two disjoint sets of record numbers. Both were dealt at random from the same data.
        """

    @property
    def module(self) -> nn.Module:
        """The model; its own weights are not those of a round."""

    @property
    def local_steps(self) -> tuple[int, float]:
        """The number of steps of a client that trains on all its records at once, and their learning rate."""

    @property
    def is_noisy(self) -> bool:
        """Whether observations have noise that `answers` cannot leave out."""

    def records(self, numbers: NDArray[np.int64]) -> Records:
        """The records of these numbers, and their labels."""

    def with_records(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> Victim:
        """The same victim in data with further records, which are numbered after all others."""

    def sending(self, weights: NDArray[np.float32]) -> Victim:
        """The same victim, which a malicious server sends this model in each observed round."""

    def groups(self, column: str | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """The group of each record of the data by a column, or by label, and the groups' names.

        Raises:
            InputError: the data have no such column.
        """

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise that `answers` leaves out if `noisy` is false; else 0."""

    def answers(
        self, worlds: Sequence[NDArray[np.int64]], key: str, *, first: int = 0, noisy: bool = True
    ) -> Rows:
        """What the seat observes of the victim in each world, summed over the observed rounds.

        Args:
            worlds: The record numbers of the victim in each world.
            key: Keys the noise, with the number of a world: others have independent noise.
            first: The number of the first of these worlds.
            noisy: Whether with the noise of the run. An attacker that imitates victims leaves it out, where
                it is Gaussian noise on whole observations; other noise stays.

        Returns:
            Shape (worlds, parameters). Of a sum the answers of all other clients are subtracted: the attacker
            knows them, as the adversary of the definition does.
        """

    def stream(self, purpose: str) -> np.random.Generator:
        """The random stream of a purpose, by the seed of the run."""

    @property
    def held_out(self) -> Records:
        """Held-out records, which no client trains on."""

    @property
    def brightest(self) -> float:
        """The largest value in held-out records."""

    def after_rounds(self, poison: Poison | None, trial: int) -> NDArray[np.float32]:
        """The model after the attacked rounds, shape (parameters,).

        Args:
            poison: What malicious clients do in these rounds; None: all are honest.
            trial: Keys the noise and the batches of the rounds.
        """

    def labels(self, weights: NDArray[np.float32], x: NDArray[np.float32]) -> NDArray[np.int64]:
        """The labels that a model gives records, shape (records,)."""


class TrialAttack(Attack):
    """Repeats one experiment, each time with another secret; an attacker succeeds or fails.

    Its success is compared with chance, and with the most that the guarantee allows. Membership attacks judge
    many records in one run instead.
    """

    note: ClassVar[str] = TRIALS
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        Rule(
            "kind",
            lambda v: v.around["privacy.trust"] == "distributed",
            "is not made for noise in shares: its trials repeat single updates",
            'Set privacy.trust = "central", "local" or "none".',
        ),
        OTHER_CLIENT,
    )
    judges_targets: ClassVar[bool] = False
    needs_every_round: ClassVar[bool] = True
    success: ClassVar[str]  # a success as a clause: "the attacker guesses ..."
    comparison: ClassVar[str] = GUESSING  # what `chance` is the share of, as a clause
    compares: ClassVar[bool] = False  # whether trials are run without the attack too, or guessed blindly
    bound_noun: ClassVar[str] = "bound"  # the word for the most that the guarantee allows
    observed: ClassVar[str] = "trial"  # the key of the answers that are observed, as `run` has it
    scoring: ClassVar[frozenset[str]] = frozenset()  # keys that change no trial, only what is made of it

    kind: str
    seat: str
    trials: int = Field(
        200, ge=20, le=10**5, description="How often the experiment is repeated, such as 200."
    )
    rounds: int = Field(1, ge=1, le=10**4, description="How many rounds are observed, such as 1.")

    @property
    def isolating(self) -> bool:
        """Nobody is isolated: all clients answer in the observed rounds."""
        return False

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds, which all trials share."""
        return self.rounds

    def trainings(self, rounds: int, population: int, in_a_sum: int, warm_up: int) -> int:
        """The victim trains in each trial, all clients in the rounds that it goes through."""
        return self.trials * max(1, rounds) + rounds * population

    @property
    def view(self) -> str:
        """The name of what is seen in its trials, which other scoring leaves as it is."""
        settings = self.model_dump_json(exclude=set(self.scoring), exclude_none=True)
        return f"{self.kind}-{hashlib.blake2b(settings.encode(), digest_size=8).hexdigest()}"

    @property
    def recording(self) -> str:
        """The name of its transcript, which all its settings decide, as they key its noise."""
        return hashlib.blake2b(self.branch_key(self.rounds).encode(), digest_size=16).hexdigest()

    @abstractmethod
    def chance(self, without: Without | None) -> float:
        """The probability of success without any observation, or without the attack."""

    @abstractmethod
    def ceiling(self, ledger: Mapping[str, Any], run: AttackScenario, without: Without | None) -> Ceiling:
        """The most that a run's ledger allows the attack.

        Args:
            ledger: As `Ledger.to_json` wrote it, from a live or a stored run.
            run: The attacked run.
            without: The trials without the attack, where the kind runs them.
        """

    @abstractmethod
    def check(self, victim: Victim) -> None:
        """Refuses an attack that the data do not allow, before anything is trained.

        Args:
            victim: The victim, without models.

        Raises:
            InputError: with what is wrong and what to do, beginning with the key if it is one.
        """

    @abstractmethod
    def run(self, victim: Victim) -> Outcome:
        """Runs all trials."""


def trials_of(scenario: AttackScenario) -> dict[str, TrialAttack]:
    """The attacks of a scenario that repeat an experiment, by name."""
    return {name: attack for name, attack in scenario.attacks.items() if isinstance(attack, TrialAttack)}


def observations(
    victim: Victim, worlds: Sequence[NDArray[np.int64]], key: str, *, rows: int = 1, noisy: bool = True
) -> Iterator[tuple[range, Rows]]:
    """What the seat observes of the victim in each world, in blocks that fit in memory.

    Args:
        victim: The victim.
        worlds: The record numbers of the victim in each world.
        key: Keys the noise; see `Victim.answers`. No block changes that of a world.
        rows: The number of observations that the caller has in memory for each world, these included.
        noisy: Whether with the noise of the run.

    Yields:
        The numbers of some worlds, and their observations, shape (worlds, parameters).
    """
    most = max(1, NUMBERS // (rows * len(victim.weights[0])))
    for start in range(0, len(worlds), most):
        block = range(start, min(start + most, len(worlds)))
        yield block, victim.answers(worlds[block.start : block.stop], key, first=start, noisy=noisy)


def success_rate(runs: Sequence[tuple[int, int]], error: float = (1 - CONFIDENCE) / 2) -> Figure:
    """The share of successes over all runs with its exact interval (Clopper and Pearson 1934).

    Args:
        runs: Successes and trials of each run.
        error: The probability that an end is wrong; by default the interval is one at 95 %.

    Raises:
        InputError: no trials.
    """
    successes, trials = (sum(counts) for counts in zip(*runs, strict=True)) if runs else (0, 0)
    if not trials:
        raise InputError("an attack without trials has no rate of success.")
    return Figure(
        successes / trials,
        proportion_low(successes, trials, error),
        proportion_high(successes, trials, error),
        TARGETS,
    )
