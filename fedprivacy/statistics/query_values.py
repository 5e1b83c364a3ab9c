"""Maps records to answers: each query as a number in [0, 1] or as one of several categories.

Bounds, grids and categories are public, and values beyond them count as the nearest one, so no answer depends
on other clients' answers. A client of several records answers with their mean, or with a random one of them;
if it counts in several categories, with the first ones in its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics.data import Categories
from fedprivacy.statistics.population import Ids, People

NUMBER_KINDS = ("mean-of-bits", "count", "mean")
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """One query, ready to be sent.

    Args:
        name: Its name in the scenario.
        query: Its settings.
        cells: The number of categories of an answer; 0 for a number.
        first: The least category if categories are integers; None if edges cut them.
        whole: Whether totals are whole numbers: not of the mean, nor where a client of several records
            answers with shares of them.
    """

    name: str
    query: Any
    cells: int
    first: int | None = None
    whole: bool = True

    @property
    def kind(self) -> str:
        """The kind of query: a name of `QUERIES`."""
        return str(self.query.kind)

    @property
    def votes(self) -> int:
        """The most categories in which a client counts; with 1 its records share one vote."""
        return getattr(self.query, "per_client", 1)

    @cached_property
    def edges(self) -> Vector:
        """The boundaries between the categories of a number."""
        query = self.query
        if self.kind == "quantile":
            return np.linspace(query.low, query.high, query.steps + 1)
        return np.asarray(query.prices if self.kind == "best-price" else query.edges, dtype=np.float64)

    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [self.query.column, *([self.query.by] if self.kind == "share-by-group" else [])]

    def coded(self, people: People, records: slice | Ids) -> NDArray[Any]:
        """Each record's value: float64 in [0, 1] for a number, int64 in [0, cells) for a category.

        A missing value (NaN) counts as no, as the lower bound, or as the last category.
        """
        query, values = self.query, people.columns[self.query.column][records]
        if self.kind in ("mean-of-bits", "count"):
            return self._yes(values).astype(np.float64)
        if self.kind == "mean":
            cut = np.clip(np.nan_to_num(values, nan=query.low), query.low, query.high)
            return np.asarray((cut - query.low) / (query.high - query.low), dtype=np.float64)
        if self.kind == "share-by-group":
            return 2 * self._category(people.columns[query.by][records]) + self._yes(values)
        return self._category(values)

    def _yes(self, values: Vector) -> NDArray[np.bool_]:
        if self.query.equals is not None:
            return values == self.query.equals
        return values > (0.5 if self.query.above is None else self.query.above)

    def _category(self, values: Vector) -> Ids:
        if self.first is None:
            # A quantile's candidate counts values at or below it, a price counts bids of at least that much.
            below = self.kind == "quantile"
            placed = np.searchsorted(self.edges, values, side="left" if below else "right").astype(float)
        else:
            placed = np.nan_to_num(np.rint(values) - self.first, nan=np.inf, posinf=1e18, neginf=-1e18)
        groups = self.cells // 2 if self.kind == "share-by-group" else self.cells
        return np.clip(placed, 0, groups - 1).astype(np.int64)

    def exact(self, people: People, clients: Ids) -> Vector:
        """The sum over clients, shape (1,) of their numbers or (cells,) of their shares of each category."""
        if self.votes > 1:
            return np.bincount(self._ballots(people, clients)[1], minlength=self.cells).astype(float)
        offsets = people.offsets
        if people.one_each:
            coded = self.coded(people, offsets[clients])
            if not self.cells:
                return np.array([coded.sum()])
            return np.bincount(coded, minlength=self.cells).astype(float)
        records, sizes = _records(people, clients)
        coded, weights = self.coded(people, records), np.repeat(1.0 / sizes, sizes)
        if not self.cells:
            return np.array([(coded * weights).sum()])
        return np.bincount(coded, weights=weights, minlength=self.cells).astype(float)

    def answers(self, people: People, clients: Ids, stream: np.random.Generator) -> NDArray[Any]:
        """One answer for each client, shape (clients,): its mean number, or the category of one record.

        Args:
            people: The data.
            clients: The answering clients.
            stream: Chooses among the records of a client, or among its `votes`: an unused vote counts
                for none of the categories, number `cells` (padding and sampling, Qin et al. 2016).
        """
        offsets = people.offsets
        if self.votes > 1:
            owner, voted, place = self._ballots(people, clients)
            chosen = np.minimum((stream.random(len(clients)) * self.votes).astype(np.int64), self.votes - 1)
            votes, here = np.full(len(clients), self.cells), place == chosen[owner]
            votes[owner[here]] = voted[here]
            return votes
        if people.one_each or not len(clients):
            return self.coded(people, offsets[clients])
        if self.cells:
            sizes = offsets[clients + 1] - offsets[clients]
            chosen = (stream.random(len(clients)) * sizes).astype(np.int64)
            # A product just below `sizes` may round up to it.
            return self.coded(people, offsets[clients] + np.minimum(chosen, sizes - 1))
        records, sizes = _records(people, clients)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        # Rounding must not carry a mean out of [0, 1], on which the sensitivity rests.
        return np.clip(np.add.reduceat(self.coded(people, records), starts) / sizes, 0.0, 1.0)

    def _ballots(self, people: People, clients: Ids) -> tuple[Ids, Ids, Ids]:
        """The votes of each client: owner, category and place.

        Each category of a client once, in the order of its records, at most `votes` of them.
        """
        records, sizes = _records(people, clients)
        owner = np.repeat(np.arange(len(clients)), sizes)
        voted = self.coded(people, records)
        once = np.sort(np.unique(owner * self.cells + voted, return_index=True)[1])
        owner, voted = owner[once], voted[once]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)
        counted = place < self.votes
        return owner[counted], voted[counted], place[counted]


def _records(people: People, clients: Ids) -> tuple[Ids, Ids]:
    """The records of clients in order, and the count of each."""
    begins = people.offsets[clients]
    sizes = people.offsets[clients + 1] - begins
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes), sizes


def questions_of(scenario: Statistics) -> tuple[Question, ...]:
    """The queries of a scenario, in the order of its file."""
    return tuple(_question(name, query, scenario.data) for name, query in scenario.queries.items())


def _question(name: str, query: Any, data: Any) -> Question:
    one_record = data.owner == "record" if data.name == "npz" else getattr(data, "each", 1) == 1
    if query.kind in NUMBER_KINDS:
        return Question(name, query, 0, whole=one_record and query.kind != "mean")
    if query.kind == "quantile":
        return Question(name, query, query.steps + 1, whole=one_record)
    if query.kind == "best-price":
        return Question(name, query, len(query.prices) + 1, whole=one_record)
    if query.edges is not None:
        cells, first = len(query.edges) + 1, None
    elif query.first is not None:
        cells, first = query.last - query.first + 1, query.first
    else:
        assert isinstance(data, Categories)
        cells, first = len(data.shares) if data.shares else data.categories or 0, 0
    whole = one_record or getattr(query, "per_client", 1) > 1
    return Question(name, query, 2 * cells if query.kind == "share-by-group" else cells, first, whole)


def labels(question: Question) -> list[str]:
    """The names of its categories; for a share by group those of the groups."""
    query = question.query
    if query.names is not None:
        return list(query.names)
    if question.first is not None:
        groups = question.cells // 2 if question.kind == "share-by-group" else question.cells
        return [str(question.first + place) for place in range(groups)]
    edges = [_written(edge) for edge in query.edges]
    between = [f"{a} to {b}" for a, b in pairwise(edges)]
    return [f"below {edges[0]}", *between, f"{edges[-1]} or more"]


def _written(edge: float) -> str:
    """An edge in as few digits as distinguish it from all others."""
    short = f"{edge:g}"
    return short if float(short) == edge else repr(edge)
