"""Federated estimates: messages of silos, aggregation by the server, and guarantees.

Both sides are here, for any transport: one process (`Federated.fit`), or Flower's apps (`clients.erm` and
`server.erm`), with the same bits.

The unit is one record, and each record is in one silo alone, so all silos together cost as much as one
(parallel composition). A silo that does not answer counts as zero, and no denominator depends on the number
of answers: sizes and denominators are public, so no sensitivity depends on which silos answer.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, MutableSequence, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.randomness.streams import Streams

Vector = NDArray[np.float64]
Records = tuple[ArrayLike, ArrayLike]  # features (n, d) and targets (n,)
Held = tuple[Vector, Vector]  # the same, checked
Trust = Literal["local", "central"]
# Yields the query point, shape (d,), receives the silos' answers, shape (silos, d), and so on; its last yield
# is the estimate.
Leading = Generator[Vector, Vector, None]
SiloCall = Callable[[int, Vector], Vector]


@dataclass(frozen=True)
class FederatedEstimate:
    """The joint estimate of the silos, with a guarantee for each observer.

    Args:
        theta: The estimate, float64, shape (d,).
        approach: The name of the approach.
        trust: "local" or "central".
        guarantees: Against the server, another participant and an outsider.
        noise: The standard deviation of the noise in each coordinate, as for `Estimate`, of the average
            of the silos' messages.
    """

    theta: Vector
    approach: str
    trust: Trust
    guarantees: tuple[Guarantee, ...]
    noise: float


@dataclass(frozen=True)
class Federated(ABC):
    """A federated procedure: the part of each silo and the part of the server."""

    @property
    @abstractmethod
    def trust(self) -> Trust:
        """The trust model: each silo adds the noise (local), or the trusted server (central)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The approach's: one of `fedprivacy.erm.APPROACHES`."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The number of requests to each silo."""

    @abstractmethod
    def held(self, records: Sequence[Records]) -> list[Held]:
        """The records of all silos, checked.

        Raises:
            InputError: They break a condition, or there are not as many as is public.
        """

    @abstractmethod
    def check_point(self, theta: Vector) -> None:
        """Checks a point that comes from the server, without looking at any record.

        Args:
            theta: Shape (d,), finite.

        Raises:
            InputError: No honest server would request this point.
        """

    @abstractmethod
    def tell(
        self, silo: int, silos: int, records: Held, theta: Vector, step: int, streams: Streams
    ) -> Vector:
        """The message of a silo, shape (d,): under local trust with its noise, under central trust exact.

        Args:
            silo: Its number, from 0.
            silos: How many there are.
            records: Its own, as `held` gives them.
            theta: The requested point, shape (d,).
            step: The step, from 0.
            streams: Of the release. A second request in a step would get the same noise: a silo refuses it.

        Raises:
            InputError: As `check_point` has it, or the records break a condition.
        """

    @abstractmethod
    def lead(self, silos: int, streams: Streams) -> Leading:
        """The server's part: see `Leading`.

        Args:
            silos: How many there are.
            streams: Of the release.
        """

    @abstractmethod
    def noise(self, silos: int) -> float:
        """The standard deviation of the noise in each coordinate, as `FederatedEstimate` has it."""

    @abstractmethod
    def guarantees(self, silos: int) -> tuple[Guarantee, ...]:
        """The guarantees against server, another participant and outsider, under `ErmAssumption.DRAWN`.

        Args:
            silos: How many there are; where some did not answer, the fewest that did so in any step.
        """

    @abstractmethod
    def event_against(self, observer: str, silos: int) -> dp.DpEvent | None:
        """The event of an observer's view; None where no accountant has one."""

    @abstractmethod
    def words(self, silos: int) -> str:
        """The amount of noise, in words."""

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

        def answer_at(step: int, thetas: Vector) -> Vector:
            rows = [
                self.tell(silo, len(held), records, thetas[0], step, streams)
                for silo, records in enumerate(held)
            ]
            received = np.array(rows)
            if transcript is not None:
                transcript.append(received)
            return received[None]

        [theta] = together([self.lead(len(held), streams)], self.steps, answer_at)
        promised = tuple(
            guarantee
            if guarantee.epsilon is None
            else guarantee.but(assumptions=(*guarantee.assumptions, ErmAssumption.DRAWN))
            for guarantee in self.guarantees(len(held))
        )
        return FederatedEstimate(theta, self.name, self.trust, promised, self.noise(len(held)))


def together(leads: Sequence[Leading], steps: int, answer: SiloCall) -> Vector:
    """Several estimates side by side, each with noise of its own, shape (estimates, d).

    Args:
        leads: The server's part for each.
        steps: The number of requests to each silo.
        answer: Returns the silos' messages, shape (estimates, silos, d), at a step and at points of shape
            (estimates, d).
    """
    thetas = np.array([next(lead) for lead in leads])
    for step in range(steps):
        received = answer(step, thetas)
        # Copies: how a sum rounds is not to depend on where in memory it begins.
        thetas = np.array([lead.send(rows.copy()) for lead, rows in zip(leads, received, strict=True)])
    return thetas


def purpose_of(release: object) -> str:
    """A name for the streams of a release, which no other release has: the same noise twice cancels."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return f"erm/{hashlib.blake2b(repr(release).encode(), digest_size=8).hexdigest()}"
