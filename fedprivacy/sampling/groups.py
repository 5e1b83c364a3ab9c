"""Groups of clients with budgets that differ: their members, and their noise, rate or weight.

Membership is public. It follows from the ids of clients, or from a draw that everybody can repeat, and is the
same in neighbouring data. It follows from no records, unless clients are dealt by label: ids show labels.
A client in no group is one of the `OTHERS`, which have the settings of the plan itself: a group is never less
protected than they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.group_limits import MOST_GROUPS, NAME, NAME_WORDS, OTHERS

_PUBLIC = Streams(0)


@dataclass(frozen=True)
class Group:
    """A group of clients, and what differs from the plan of all.

    Args:
        name: Its name.
        share: The share of all clients that is drawn for it; None with `clients`.
        clients: The ids of its clients; None with `share`.
        noise_multiplier: Of each client's own noise, under local trust; None: the plan's.
        rate: The probability that one of its clients joins a round, at most the sampler's; None: that.
        weight: The factor of its clipped updates, in (0, 1]; None: 1.
        shows_labels: Whether membership shows labels, since ids follow from these.
    """

    name: str
    share: float | None = None
    clients: tuple[int, ...] | None = None
    noise_multiplier: float | None = None
    rate: float | None = None
    weight: float | None = None
    shows_labels: bool = False

    @property
    def words(self) -> str:
        """What differs, in words; empty if nothing does."""
        parts = {"rate": self.rate, "weight": self.weight, "noise multiplier": self.noise_multiplier}
        return ", ".join(f"{name} {value:.4g}" for name, value in parts.items() if value is not None)


@dataclass(frozen=True)
class Groups:
    """The groups of a plan, in the order of its scenario.

    Args:
        groups: All but the `OTHERS`.
    """

    groups: tuple[Group, ...]

    def __getitem__(self, name: str) -> Group:
        return next(group for group in (*self.groups, Group(OTHERS)) if group.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all groups, `OTHERS` last."""
        return (*(group.name for group in self.groups), OTHERS)

    def check(self, population: int, limits: Mapping[str, tuple[float, float] | None]) -> None:
        """Checks the groups of a plan.

        Args:
            population: The number of clients.
            limits: The least and the largest value of each setting; None where it has no effect.

        Raises:
            InputError: they overlap or are empty, or a setting is out of its limits.
        """
        if not 1 <= len(self.groups) <= MOST_GROUPS:
            raise InputError(f"groups: {len(self.groups)} of them, and a plan has 1 to {MOST_GROUPS}.")
        for group in self.groups:
            if not re.fullmatch(NAME, group.name):
                raise InputError(f"groups: {group.name[:40]!r} is no name of a group. Use {NAME_WORDS}.")
            if group.share is not None and not 0 < group.share < 1:
                raise InputError(f"groups.{group.name}.share: must be above 0 and below 1. Change it.")
        for group, (setting, limit) in product(self.groups, limits.items()):
            if (value := getattr(group, setting)) is None:
                continue
            where = f"groups.{group.name}.{setting} = {value:g}"
            if limit is None:
                raise InputError(f"{where}: has no effect in this plan. Remove it.")
            if not limit[0] <= value <= limit[1]:
                raise InputError(
                    f"{where}: must be from {limit[0]:g} to {limit[1]:g}, so that the plan of all clients "
                    "bounds the cost of the group."
                )
        names, listed = self.names, [client for group in self.groups for client in group.clients or ()]
        one_way = all((group.share is None) != (group.clients is None) for group in self.groups)
        if not one_way or len(set(names)) < len(names):
            raise InputError(
                f"groups: each needs a name of its own, other than {OTHERS}, and a share or clients."
            )
        if len(set(listed)) < len(listed) or not all(0 <= client < population for client in listed):
            raise InputError(
                f"groups: a client is in one group at most, by its id from 0 to {population - 1}."
            )
        if min(self.sizes(population).values()) < 1:
            raise InputError("groups: each group needs a client, and so do the others. Change the shares.")

    def sizes(self, population: int) -> dict[str, int]:
        """The number of clients of each group, without a draw: a plan names any population."""
        counts = [_size(group, population) for group in self.groups]
        return dict(zip(self.names, [*counts, population - sum(counts)], strict=True))

    def values(self, setting: str, base: float, population: int) -> NDArray[np.float64]:
        """A setting of each client, shape (population,).

        Args:
            setting: "noise_multiplier", "rate" or "weight".
            base: That of the plan, for groups that do not set it.
            population: The number of clients.
        """
        each = [base if value is None else value for value in self.set(setting)]
        return np.array([*each, base])[members(self, population)]

    def set(self, setting: str) -> list[float | None]:
        """A setting of each group but the `OTHERS`; None where it is the plan's."""
        return [getattr(group, setting) for group in self.groups]

    def to_json(self) -> list[dict[str, Any]]:
        """The groups as JSON."""
        return [
            {**asdict(group), "clients": None if group.clients is None else list(group.clients)}
            for group in self.groups
        ]

    @classmethod
    def from_json(cls, data: Sequence[Mapping[str, Any]]) -> Groups:
        """The groups that `to_json` wrote.

        Raises:
            TypeError: a value is of another type.
            ValueError: a number is out of range, or an id is twice there.
        """
        return cls(tuple(map(_group, data)))


def _size(group: Group, population: int) -> int:
    return round((group.share or 0.0) * population) if group.clients is None else len(group.clients)


def _group(data: Mapping[str, Any]) -> Group:
    values = dict(data)
    if not isinstance(values["name"], str):
        raise TypeError(f"the name of a group is {str(values['name'])[:40]!r}")
    ids, shows = values.pop("clients"), values.pop("shows_labels", False)
    if not isinstance(shows, bool):
        raise TypeError(f"shows_labels of a group is {str(shows)[:40]!r}")
    for setting in fields(Group)[1:]:
        value = values.get(setting.name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"{setting.name} of a group is {str(value)[:40]!r}")
    if ids is not None:
        if any(isinstance(client, bool) or not isinstance(client, int) for client in ids):
            raise TypeError("the clients of a group are not whole numbers")
        ids = tuple(ids)
    return Group(**values, clients=ids, shows_labels=shows)


@lru_cache(maxsize=8)
def members(groups: Groups, population: int) -> NDArray[np.int64]:
    """The group of each client, as its place in `Groups.names`, shape (population,); read only.

    Listed clients come first. Shares are dealt from all others in an order that is drawn without a secret:
    the same on each machine, and the same for each seed of a scenario.
    """
    places = np.full(population, len(groups.groups), dtype=np.int64)
    for place, group in enumerate(groups.groups):
        if group.clients is not None:
            places[np.array(group.clients, dtype=np.int64)] = place
    free = np.flatnonzero(places == len(groups.groups))
    # Sorted coins, whose bits numpy keeps; it may change how it permutes.
    order = free[np.argsort(_PUBLIC.stream("budget-groups").random(len(free)), kind="stable")]
    for place, group in enumerate(groups.groups):
        if group.share is not None:
            dealt, order = np.split(order, [_size(group, population)])
            places[dealt] = place
    places.flags.writeable = False
    return places
