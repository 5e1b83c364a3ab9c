"""The policy of an account, fixed when it is created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from fedprivacy.account.filter import RenyiFilter
from fedprivacy.accounting.events import RELATIONS
from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import ALL_OBSERVERS
from fedprivacy.io.validation import Fields, check

UNITS = ("client", "example")
# Against these two a plan has a guarantee under every trust model. A policy that covers the server too admits
# no plan with central trust.
DEFAULT_OBSERVERS = ("participant", "outsider")


class _StoredFilter(Fields):
    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    order: Annotated[float, Field(gt=1)]


class StoredPolicy(Fields):
    """The policy in the first line of an account."""

    unit: Literal["client", "example"]
    adjacency: Literal["replace-one", "add-remove", "zero-out"]
    filters: Annotated[
        dict[Literal["server", "analyst", "participant", "outsider"], _StoredFilter], Field(min_length=1)
    ]


@dataclass(frozen=True)
class Policy:
    """What all entries of an account may cost together.

    Args:
        unit: The unit of privacy: "client" or "example".
        adjacency: "replace-one", "add-remove" or "zero-out".
        filters: For each observer that the policy covers: epsilon, delta, and the order of its filter.
    """

    unit: str
    adjacency: str
    filters: Mapping[str, RenyiFilter]

    @classmethod
    def of_options(
        cls,
        epsilon: float,
        delta: float,
        unit: str,
        adjacency: str,
        observers: Sequence[str] = (),
        order: float | None = None,
    ) -> Policy:
        """Makes a policy from the options of a command.

        Args:
            epsilon: For each observer that has none of its own.
            delta: For each observer.
            unit: The unit of privacy.
            adjacency: The adjacency.
            observers: Names, each alone or as "server=8" with an epsilon; empty: `DEFAULT_OBSERVERS`.
            order: The order of each filter; None: the best one.

        Raises:
            InputError: one of them is out of range.
        """
        if unit not in UNITS:
            raise InputError(f"--unit {unit}: must be one of {', '.join(UNITS)}.")
        if adjacency not in RELATIONS:
            raise InputError(f"--adjacency {adjacency}: must be one of {', '.join(RELATIONS)}.")
        limits: dict[str, float] = {}
        for option in observers or DEFAULT_OBSERVERS:
            name, stated, number = option.partition("=")
            if name not in ALL_OBSERVERS:
                raise InputError(f"--observer {option}: must name one of {', '.join(ALL_OBSERVERS)}.")
            if name in limits:
                raise InputError(f"--observer {option}: {name} is named twice. Name it once.")
            try:
                limits[name] = float(number) if stated else epsilon
            except ValueError:
                raise InputError(
                    f"--observer {option}: its epsilon is no number. Give it as server=8."
                ) from None
        filters: dict[str, RenyiFilter] = {
            name: RenyiFilter.of_policy(limits[name], delta, order)
            for name in ALL_OBSERVERS
            if name in limits
        }
        return cls(unit, adjacency, filters)

    def to_json(self) -> dict[str, Any]:
        """The policy as a JSON object."""
        filters = {
            name: {"epsilon": each.epsilon, "delta": each.delta, "order": each.order}
            for name, each in self.filters.items()
        }
        return {"unit": self.unit, "adjacency": self.adjacency, "filters": filters}

    @classmethod
    def from_json(cls, data: Any, where: str) -> Policy:
        """Reads what `to_json` wrote.

        Raises:
            InputError: it is something else.
        """
        check(data, StoredPolicy, where, "Restore the file from a copy.")
        filters: dict[str, RenyiFilter] = {
            name: RenyiFilter.of_policy(each["epsilon"], each["delta"], each["order"])
            for name, each in data["filters"].items()
        }
        return cls(data["unit"], data["adjacency"], filters)
