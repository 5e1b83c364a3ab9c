"""The requests to the silos of a study, and the computations of each side.

The server and the silos each have a `SiloStudy` of their own, made from the scenario: nothing that decides
privacy is taken from a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.erm.federated import Federated, Held, Leading
from fedprivacy.erm.study.approaches import (
    Cell,
    approach_of,
    cells_of,
    federated_of,
    objective_of,
    purpose_of_cell,
    silos_of,
    sizes_of,
)
from fedprivacy.erm.study.people import Records
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.erm import ErmScenario

Vector = NDArray[np.float64]
NUMBERS = 2**20  # sent by all silos in one step, at most, beyond those of one estimate


@dataclass(frozen=True)
class Lot:
    """Estimates of one cell that silos make side by side: repeats, each a release with noise of its own.

    Args:
        number: Its place among all lots of the study.
        cell: The cell.
        silos: How many silos there are.
        first: The number of its first repeat.
        count: How many repeats it has.
    """

    number: int
    cell: Cell
    silos: int
    first: int
    count: int


@dataclass(frozen=True)
class SiloReplies:
    """The answers of the silos of a lot at one step.

    Args:
        rows: float64, shape (count, silos, d); zeros of a silo that did not answer.
        present: How many silos answered.
        first_failure: Why the first of the others did not.
    """

    rows: Vector
    present: int
    first_failure: str | None = None


# Asks all silos of a lot at a step, at points of shape (count, d).
LotCall = Callable[[Lot, int, Vector], SiloReplies]


@dataclass(frozen=True)
class SiloStudy:
    """The knowledge of one side about the silos of a study.

    Args:
        scenario: The whole.
        people: All records; a silo has a run of them, as equal in number as can be.
        streams: Those of the study, on this side.
    """

    scenario: ErmScenario
    people: Records
    streams: Streams
    _federated: dict[Cell, Federated] = field(default_factory=dict, repr=False, compare=False)
    _plans: dict[Lot, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    _held: dict[Cell, list[Held]] = field(default_factory=dict, repr=False, compare=False)

    def drawing(self, streams: Streams) -> SiloStudy:
        """The same with other streams."""
        return SiloStudy(self.scenario, self.people, streams)

    @cached_property
    def lots(self) -> tuple[Lot, ...]:
        """All lots, in the order of their requests: public, and the same on every side."""
        lots_of_silos: list[Lot] = []
        repeats, dimension = self.scenario.study.repeats, self.people.x.shape[1]
        for cell in cells_of(self.scenario):
            silos = silos_of(self.scenario, cell)
            many = max(1, NUMBERS // (silos * dimension))
            for first in range(0, repeats if silos > 1 else 0, many):
                lots_of_silos.append(Lot(len(lots_of_silos), cell, silos, first, min(many, repeats - first)))
        return tuple(lots_of_silos)

    @property
    def most_silos(self) -> int:
        """The largest number of silos in a cell."""
        return max((lot.silos for lot in self.lots), default=0)

    def lots_of(self, cell: Cell) -> list[Lot]:
        """The lots of a cell."""
        return [lot for lot in self.lots if lot.cell == cell]

    def federated(self, lot: Lot) -> Federated:
        """The federated procedure of a lot.

        Raises:
            InputError: A condition of its theorem does not hold.
        """
        cell = lot.cell
        if cell not in self._federated:
            approach = approach_of(self.scenario, objective_of(self.scenario, cell.records), cell)
            self._federated[cell] = federated_of(self.scenario, cell, approach)
        return self._federated[cell]

    def sizes(self, lot: Lot) -> tuple[int, ...]:
        """The public number of records of each silo."""
        return sizes_of(self.scenario, lot.cell)

    def longest(self, lot: Lot) -> Vector:
        """The largest norm of each silo's exact sum of gradients, shape (silos,)."""
        return np.array(self.sizes(lot)) * objective_of(self.scenario, 1).loss.lipschitz

    def plan(self, lot: Lot) -> dict[str, Any]:
        """All that decides the privacy of a lot, as JSON data; a silo compares it with its own."""
        if lot not in self._plans:
            federated = self.federated(lot)
            loss = self.scenario.objective.loss
            terms = {"lot": asdict(lot), "loss": loss, "sizes": self.sizes(lot), **asdict(federated)}
            self._plans[lot] = {"trust": federated.trust, **_plain(terms)}
        return self._plans[lot]

    def lead(self, lot: Lot) -> list[Leading]:
        """The server's part for each repeat of a lot."""
        federated = self.federated(lot)
        return [federated.lead(lot.silos, streams) for streams in self._streams(lot)]

    def tell(self, lot: Lot, silos: Sequence[int], step: int, thetas: Vector) -> Vector:
        """The messages of some silos, shape (silos requested, count, d).

        Args:
            lot: The requested lot.
            silos: Their numbers.
            step: The step.
            thetas: The point of each repeat, shape (count, d).

        Raises:
            InputError: The records of one break a condition.
        """
        federated, held = self.federated(lot), self._records(lot)
        rows = np.empty((len(silos), lot.count, self.people.x.shape[1]))
        for at, silo in enumerate(silos):
            for repeat, streams in enumerate(self._streams(lot)):
                rows[at, repeat] = federated.tell(silo, lot.silos, held[silo], thetas[repeat], step, streams)
        return rows

    def request(self, lot: Lot, step: int, thetas: Vector) -> SiloReplies:
        """Asks silos that are in this process: see `LotCall`."""
        rows = self.tell(lot, range(lot.silos), step, thetas)
        return SiloReplies(rows.transpose(1, 0, 2), lot.silos)

    def _streams(self, lot: Lot) -> list[Streams]:
        """Those of each repeat of a lot."""
        run = f"{self.streams.run}/{purpose_of_cell(lot.cell)}"
        return [
            replace(self.streams, run=f"{run}/{repeat}") for repeat in range(lot.first, lot.first + lot.count)
        ]

    def _records(self, lot: Lot) -> list[Held]:
        """The records of all silos of a lot."""
        if lot.cell not in self._held:
            x, y = self.people.first(lot.cell.records)
            parts = zip(np.array_split(x, lot.silos), np.array_split(y, lot.silos), strict=True)
            self._held[lot.cell] = self.federated(lot).held([*parts])
        return self._held[lot.cell]


def _plain(value: Any) -> Any:
    """Tuples as lists, as they come back from JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
