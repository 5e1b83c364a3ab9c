"""Values for the rules of statistics scenarios: valid sections, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedprivacy.scenario.statistics.data import MAX_CELLS


@dataclass(frozen=True)
class StatisticsValues:
    """The values of the sections that are valid by themselves.

    Args:
        parts: The valid sections by name; `queries` is a dict of the valid queries.
        columns: The columns of the data, or None where they are not known.
        clients: The number of clients, or None where it is not known.
    """

    parts: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    clients: int | None = None

    def __getitem__(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return getattr(self.parts.get(section), name, None)

    @property
    def queries(self) -> Mapping[str, Any]:
        """The valid queries by name."""
        return self.parts.get("queries", {})

    @property
    def in_shares(self) -> bool:
        """Whether a client may own several records."""
        return self["data.owner"] == "user" or (self["data.name"] == "categories" and self["data.each"] > 1)

    @property
    def law_of_categories(self) -> bool:
        """Whether made-up categories have a key of Zipf's law."""
        return self["data.categories"] is not None or self["data.exponent"] is not None

    @property
    def most_compared(self) -> int:
        """The largest number of clients of a comparison; 1 where it has none of its own."""
        return max(self["compare.clients"] or (), default=1)


@dataclass(frozen=True)
class QueryValues:
    """The values of one query by key, beside the other sections."""

    query: Any
    around: StatisticsValues

    def __getitem__(self, key: str) -> Any:
        return getattr(self.query, key, None)

    @property
    def categorical(self) -> bool:
        """Whether its answers are categories."""
        return "first" in type(self.query).model_fields

    @property
    def categories_of_data(self) -> bool:
        """Whether its categories are those of made-up data, or of data that are wrong by themselves."""
        named = self["first"] is not None or self["last"] is not None
        return not named and self.around["data.name"] in (None, "categories")

    @property
    def span(self) -> int | None:
        """The categories from first to last; None unless both are given, without edges."""
        given = self["edges"] is None and self["first"] is not None and self["last"] is not None
        return self["last"] - self["first"] + 1 if given else None

    @property
    def cells(self) -> int | None:
        """The number of categories; None where it is not known, or wrong by itself."""
        if self["edges"] is not None:
            return len(self["edges"]) + 1
        if self.span is not None:
            return self.span if 2 <= self.span <= MAX_CELLS else None
        if self.categories_of_data and self.around["data.name"] is not None:
            shares = self.around["data.shares"]
            return len(shares) if shares else self.around["data.categories"] or 0
        return None

    @property
    def bounded(self) -> bool:
        """Whether its answers are numbers between two bounds."""
        return self["kind"] in ("mean", "quantile")
