"""Estimates that silos make together: what a silo tells, what the server makes of it, what each is promised.

Both sides are here, whoever carries what they say: one process (`Federated.fit`), or Flower's apps
(`clients.erm` and `server.estimates`), which end with the same bits.

The unit is one record, and each record is in one silo alone: what all silos release together costs what one
releases (parallel composition). A silo that does not answer counts as zero, and nothing is divided by how
many did: sizes and denominators are public, so that no sensitivity depends on who is there.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import dp_accounting
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.conditions import DRAWN
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.randomness.streams import Streams

Vector = NDArray[np.float64]
Records = tuple[ArrayLike, ArrayLike]  # features (n, d) and targets (n,)
Held = tuple[Vector, Vector]  # the same, checked
Trust = Literal["local", "central"]
# Yields the point at which silos are asked, shape (d,), is sent what they told, shape (silos, d), and so on;
# what it yields after the last step is the estimate.
Leading = Generator[Vector, Vector, None]
Asking = Callable[[int, Vector], Vector]

ONE_SILO = "each record is in one silo alone"


@dataclass(frozen=True)
class FederatedEstimate:
    """What the silos found together, and what is promised against whom.

    Args:
        theta: The estimate, float64, shape (d,).
        approach: The name of the approach.
        trust: "local" or "central".
        guarantees: Against the server, another participant and an outsider; there is no bare epsilon.
        noise: The standard deviation of the noise in each coordinate, as `Estimate` has it, of what the
            silos' messages average to.
    """

    theta: Vector
    approach: str
    trust: Trust
    guarantees: tuple[Guarantee, ...]
    noise: float


@dataclass(frozen=True)
class Federated(ABC):
    """What silos and a server do together."""

    @property
    @abstractmethod
    def trust(self) -> Trust:
        """Who adds the noise: each silo, or the server that is trusted."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The approach's: one of `fedprivacy.erm.APPROACHES`."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How often silos are asked."""

    @abstractmethod
    def held(self, records: Sequence[Records]) -> list[Held]:
        """The records of all silos, checked.

        Raises:
            InputError: They break a condition, or there are not as many as is public.
        """

    @abstractmethod
    def check_point(self, theta: Vector) -> None:
        """Whether a silo may be asked at a point, which comes from the server: it looks at no record.

        Args:
            theta: Shape (d,), finite.

        Raises:
            InputError: No honest server asks there.
        """

    @abstractmethod
    def tell(
        self, silo: int, silos: int, records: Held, theta: Vector, step: int, streams: Streams
    ) -> Vector:
        """What leaves a silo, shape (d,): under local trust with its noise, under central trust exact.

        Args:
            silo: Its number, from 0.
            silos: How many there are.
            records: Its own, as `held` gives them.
            theta: The point at which it is asked, shape (d,).
            step: The step, from 0.
            streams: Of the release; asked twice in a step a silo would draw the same noise, and must refuse.

        Raises:
            InputError: As `check_point` has it, or the records break a condition.
        """

    @abstractmethod
    def lead(self, silos: int, streams: Streams) -> Leading:
        """What the server does: see `Leading`.

        Args:
            silos: How many there are.
            streams: Of the release.
        """

    @abstractmethod
    def noise(self, silos: int) -> float:
        """The standard deviation of the noise in each coordinate, as `FederatedEstimate` has it."""

    @abstractmethod
    def guarantees(self, silos: int) -> tuple[Guarantee, ...]:
        """What is promised against the server, another participant and an outsider, if the noise is `DRAWN`.

        Args:
            silos: How many there are; where some did not answer, the fewest that did so in any step.
        """

    @abstractmethod
    def event_against(self, observer: str, silos: int) -> dp_accounting.DpEvent | None:
        """What an observer is shown, as the accountant reads it; None where it reads none."""

    @abstractmethod
    def words(self, silos: int) -> str:
        """How much noise there is, in words."""

    def fit(
        self, silos: Sequence[Records], streams: Streams, transcript: MutableSequence[Vector] | None = None
    ) -> FederatedEstimate:
        """One estimate, in this process.

        Args:
            silos: The records of each silo.
            streams: Of the run, and of no run on other data; each silo and the server have their own.
            transcript: Takes what the server receives at each step, shape (silos, d): for an audit or an
                attack; under central trust it is not private.

        Raises:
            InputError: The records of a silo break a condition, or there are not as many as is public.
        """
        held = self.held(silos)

        def told(step: int, thetas: Vector) -> Vector:
            rows = [
                self.tell(silo, len(held), records, thetas[0], step, streams)
                for silo, records in enumerate(held)
            ]
            received = np.array(rows)
            if transcript is not None:
                transcript.append(received)
            return received[None]

        [theta] = together([self.lead(len(held), streams)], self.steps, told)
        promised = tuple(
            one if one.epsilon is None else replace(one, assumptions=(*one.assumptions, DRAWN))
            for one in self.guarantees(len(held))
        )
        return FederatedEstimate(theta, self.name, self.trust, promised, self.noise(len(held)))


def together(leads: Sequence[Leading], steps: int, told: Asking) -> Vector:
    """Several estimates side by side, each with noise of its own, shape (estimates, d).

    Args:
        leads: What the server does for each.
        steps: How often silos are asked.
        told: What silos tell, shape (estimates, silos, d), when they are asked at a step, at points of shape
            (estimates, d).
    """
    thetas = np.array([next(lead) for lead in leads])
    for step in range(steps):
        received = told(step, thetas)
        # Copies: how a sum rounds is not to depend on where in memory it begins.
        thetas = np.array([lead.send(rows.copy()) for lead, rows in zip(leads, received, strict=True)])
    return thetas


def purpose_of(release: object) -> str:
    """A name for the streams of a release, which no other release has: the same noise twice cancels."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return f"erm/{hashlib.blake2b(repr(release).encode(), digest_size=8).hexdigest()}"
