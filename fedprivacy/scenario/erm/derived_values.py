"""Values for the rules of ERM scenarios: valid sections, and quantities derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedprivacy.data import npz
from fedprivacy.scenario.erm.sections import NpzRecords


def records_of(data: Any) -> int | None:
    """The number of records, where it is known before reading; None where the file cannot be used."""
    if not isinstance(data, NpzRecords):
        return int(data.records)
    try:
        return npz.facts(data.path).records
    except npz.NpzError:
        return None


@dataclass(frozen=True)
class ErmValues:
    """The values of the sections that are valid by themselves; `approaches` is a table of them."""

    parts: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return getattr(self.parts.get(section), name, None)

    @cached_property
    def records(self) -> int | None:
        """The number of records, where it is known before the data are read."""
        data = self.parts.get("data")
        return None if data is None else records_of(data)

    @property
    def numbers_of_records(self) -> list[int]:
        """How many records an estimate is fitted to: those of the study, and all."""
        return [*(self["study.records"] or ()), *([self.records] if self.records else [])]

    @property
    def most_records(self) -> int:
        """The largest of them; 0 where none is known, or the data or the study is wrong by itself."""
        known = self.parts.get("data") is not None and self.parts.get("study") is not None
        return max(self.numbers_of_records, default=0) if known else 0

    @property
    def width(self) -> int | None:
        """The coordinates of theta; None where the data are wrong by themselves."""
        features = self["data.features"]
        return len(features) + 1 if self["data.name"] == "npz" else features


@dataclass(frozen=True)
class ApproachValues:
    """The values of one approach by key, beside the other sections."""

    approach: Any
    around: ErmValues

    def __getitem__(self, key: str) -> Any:
        return getattr(self.approach, key, None)

    @property
    def silos(self) -> int:
        """Among how many the records are divided."""
        return self["silos"] or 1

    @property
    def fewest_records(self) -> int | None:
        """The least number of records that it is fitted to, as far as one is known."""
        return min(self.around.numbers_of_records, default=None)
