"""The sections that an attack scenario has beside those of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from fedprivacy.io.rule_table import Entry
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.sections import Epsilon, no_repeats

# The published tables of `fedprivacy.report.attacks.published`; a test compares these names with it.
Published = Literal["cifar100-alexnet", "cifar100-densenet", "texas100", "purchase100"]


class GameSettings(Section):
    """The membership game: whose records are to be guessed, and how many."""

    victim: int = Field(0, ge=0, description="The client that is attacked, such as 0.")
    members: int = Field(100, ge=10, le=10**6, description="How many of its records are judged, such as 100.")
    nonmembers: int = Field(
        500, ge=10, le=10**6, description="How many records are judged that nobody trains on, such as 500."
    )
    warm_up: int | None = Field(
        None,
        ge=0,
        le=10**6,
        description="After how many rounds the attack begins; without it after server.rounds.",
        examples=[20],
    )
    repeats: int = Field(
        1, ge=1, le=1000, description="How many runs are attacked, each with a seed of its own, such as 3."
    )
    epsilons: Annotated[tuple[Epsilon, ...], AfterValidator(no_repeats)] = Field(
        (),
        strict=False,
        description="The game is run at each of these epsilons, such as [1.0, 8.0]; without any at "
        "privacy.epsilon.",
    )
    clipped: bool = Field(
        False,
        description="Whether it is run with clipping alone too: a heuristic, which has no epsilon.",
    )
    unprotected: bool = Field(False, description="Whether it is run without any privacy too.")
    transcripts: bool = Field(
        True,
        description="Whether what passive attackers see, and what is seen in trials, is stored, to be "
        "scored again without training.",
    )
    published: Published | None = Field(
        None,
        description="The published figures that the page sets beside ours, of Nasr, Shokri and Houmansadr "
        "(2019): those of one of their models.",
        examples=["cifar100-alexnet"],
    )


PUBLISHED = frozenset({"passive", "active-gradient-ascent"})


class Attack(Section):
    """One attack: its settings, and what it needs of the run and the game.

    A kind of attacks is one class in a file of `fedprivacy.attacks`, with its line in `registry`. It extends
    the base of a family, which is run alike: a `RoundsAttack` judges targets by messages, a `TrialAttack`
    repeats an experiment, and `Released` judges targets by the released model.
    """

    # Fields of each kind: as fields of this class they would be the first in its key, which keys the noise.
    if TYPE_CHECKING:

        @property
        def kind(self) -> str:
            """The name of the kind."""

        @property
        def seat(self) -> str:
            """From where: "server", "participant" or "outsider"."""

        @property
        def isolating(self) -> bool:
            """Whether the server gives the victim a stream of its own instead of the aggregate."""

    label: ClassVar[str] = ""  # the kind in words
    note: ClassVar[str] = ""  # what a document with such an attack states about it
    rules: ClassVar[tuple[Entry[Any], ...]] = ()  # between its keys, the run and the game, on `AttackValues`
    judges_targets: ClassVar[bool] = True  # whether it judges which targets of the game are members
    draws_records: ClassVar[bool] = True  # whether it draws records from the victim's and public ones
    needs_every_round: ClassVar[bool] = False  # whether it fails if clients answer in a part of its rounds
    silent: ClassVar[bool] = False  # whether it has the trained model alone, and sends no requests
    active: ClassVar[bool] = False  # whether it changes messages

    @property
    def is_published(self) -> bool:
        """Whether it is one of Nasr, Shokri and Houmansadr (2019); a kind that extends one is none."""
        return self.kind in PUBLISHED

    @property
    def in_sum(self) -> bool:
        """Whether it sees the sum of all clients alone."""
        return False

    @property
    def addresses_one(self) -> bool:
        """Whether it sends a message to a single client."""
        return False

    @property
    def watched(self) -> range:
        """The rounds that a passive attack observes; 0 is the first after the warm-up."""
        return range(0)

    @property
    def view(self) -> str | None:
        """The name of a view of rounds that attacks can share; None: its requests are its own."""
        return None

    @property
    def shared_key(self) -> str | None:
        """What attacks that share a branch have in common; None: it has a branch to itself."""
        return None

    def branch_key(self, rounds: int) -> str:
        """The identity of its branch, which keys the noise: equal keys send the same requests."""
        # A view of single updates is not part of it: runs that were stored before `sees` have their noise.
        unsaid = None if self.in_sum else {"sees"}
        return self.shared_key or self.model_dump_json(exclude_none=True, exclude=unsaid)

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds, for so many targets of the game."""
        return 0

    def trainings(self, rounds: int, population: int, in_a_sum: int, warm_up: int) -> int:
        """The number of client trainings that it takes, by which long attacks are begun first.

        Args:
            rounds: The rounds of its branch.
            population: The clients of the run.
            in_a_sum: The most clients in a round.
            warm_up: The rounds before it.
        """
        return rounds * (1 if self.isolating else in_a_sum)

    def claims(self) -> dict[str, Any]:
        """The entries of its row in the document that its settings decide."""
        return {}

    def without_data(self) -> Self:
        """The attack with keys that are valid for any data, for checks that do not read them."""
        return self


GAME = Kind({"": GameSettings}, required=False)
