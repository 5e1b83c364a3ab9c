"""What settings cost: each release as an event of the ledger, and a guarantee for each observer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import Accounted, epsilon
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.guarantees.statement import Guarantee, printed

MOST_EPSILON = 1e12  # a larger figure says nothing more
BEYOND = "the noise, a sampling rate or the number of releases is beyond the range of useful epsilons"


@dataclass(frozen=True)
class Release:
    """One release, or several composed, of which the accountants state an epsilon.

    Args:
        name: Its name in the table of figures.
        event: As the accountants read it; noise multipliers are relative to the clipping norm.
        delta: Of the statement.
        adjacency: Of the statement.
        sampling: Who takes part, in words.
        rounds: How many rounds it has.
        unit: "client" or "example".
    """

    name: str
    event: dp.DpEvent
    delta: float
    adjacency: str
    sampling: str
    rounds: int
    unit: str = "client"

    @cached_property
    def spent(self) -> Accounted | str:
        """The epsilon with its accountant, or the reason for having none."""
        try:
            accounted = epsilon(self.event, self.delta, self.adjacency)
        except UnsupportedEvent as error:
            return str(error).rstrip(".")
        except InputError:  # a noise, a rate or a count out of the accountants' range
            return BEYOND
        if math.isinf(accounted.epsilon):
            return str(Assume.NOISE_IS_ZERO)
        return accounted if accounted.epsilon <= MOST_EPSILON else BEYOND

    def row(self) -> dict[str, Any]:
        """The figure as a row of the table."""
        spent = self.spent
        return {
            "figure": self.name,
            "epsilon": None if isinstance(spent, str) else spent.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "adjacency": self.adjacency,
            "sampling": self.sampling,
            "rounds": self.rounds,
            "accountant": None if isinstance(spent, str) else spent.accountant,
        }


@dataclass(frozen=True)
class Against:
    """The release that bounds an observer's knowledge, and the conditions of the bound.

    Args:
        observer: "server", "participant" or "outsider".
        release: None where nothing is guaranteed.
        assumptions: Where nothing is guaranteed, the reason alone.
    """

    observer: str
    release: Release | None
    assumptions: tuple[str, ...]

    def guarantee(self, trust: str) -> Guarantee:
        """The guarantee of this project's kind; without an epsilon where no accountant has one."""
        release = self.release
        if release is None:
            nothing: dict[str, Any] = dict.fromkeys(
                ("epsilon", "delta", "unit", "adjacency", "sampling", "rounds", "accountant")
            )
            reason = self.assumptions[:1]
            return Guarantee.stated(observer=self.observer, trust=trust, **nothing, assumptions=reason)
        stated: dict[str, Any] = {
            "observer": self.observer,
            "trust": trust,
            "delta": release.delta,
            "unit": release.unit,
            "adjacency": release.adjacency,
            "sampling": release.sampling,
            "rounds": release.rounds,
        }
        if isinstance(release.spent, str):
            return Guarantee.stated(**stated, epsilon=None, accountant=None, assumptions=(release.spent,))
        return Guarantee.stated(
            **stated,
            epsilon=release.spent.epsilon,
            accountant=release.spent.accountant,
            assumptions=self.assumptions,
        )


@dataclass(frozen=True)
class Cost:
    """The cost of a library's settings.

    Args:
        trust: "central" or "local".
        claimed: The epsilon that the settings, or the library's accountant, name; None if none is named.
        claimed_delta: Its delta.
        claim: What the library claims and what it leaves out, in one or more sentences.
        figures: Releases of the settings, to compare; a figure is no guarantee.
        against: One for each observer.
    """

    trust: str
    claimed: float | None
    claimed_delta: float | None
    claim: str
    figures: Sequence[Release]
    against: Sequence[Against]

    def fields(self, adjacency: str) -> dict[str, Any]:
        """The fields of the result document."""
        stated = [each.guarantee(self.trust) for each in self.against]
        rows = [figure.row() for figure in self.figures]
        return {
            "adjacency": adjacency,
            "claimed": {"epsilon": self.claimed, "delta": self.claimed_delta},
            "table": rows,
            "guarantees": [guarantee.to_json() for guarantee in stated],
            "words": " ".join([self.claim, *_figures([row for row in rows if row["epsilon"] is not None])]),
        }


def against_models(
    release: Release | None, assumptions: tuple[str, ...], server: Release | str | None = None
) -> list[Against]:
    """The guarantees where participants and outsiders see models alone.

    Args:
        release: All models that were released; None for no guarantee.
        assumptions: For them; the reason where there is no guarantee.
        server: The release that the server sees, or the reason for no guarantee; None: what the others see.
    """
    if isinstance(server, str):
        first = Against("server", None, (server,))
    else:
        first = Against("server", release if server is None else server, assumptions)
    return [first, *(Against(observer, release, assumptions) for observer in ("participant", "outsider"))]


def digits_of(epsilons: Sequence[float]) -> int:
    """How many digits tell figures apart: four, and up to eight where two of them would look the same."""
    for digits in range(4, 8):
        if len({printed(each, digits) for each in epsilons}) == len({*epsilons}):
            return digits
    return 8


def _figures(rows: Sequence[dict[str, Any]]) -> list[str]:
    digits = digits_of([row["epsilon"] for row in rows])
    return [
        f"{row['figure'][:1].upper()}{row['figure'][1:]}: epsilon = {printed(row['epsilon'], digits)} at "
        f"delta = {row['delta']:g} (unit {row['unit']}, {row['adjacency']}; accountant {row['accountant']})."
        for row in rows
    ]
