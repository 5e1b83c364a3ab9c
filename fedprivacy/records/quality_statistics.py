"""The quality of a comparison's cell for whom: measures, groups and users over its paired seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.documents.cell import CellColumn, CellGroup, CellUsers
from fedprivacy.models.metrics.registry import METRICS
from fedprivacy.records.seed_statistics import interval

Final = Mapping[str, Any]


def quality_over_seeds(finals: Sequence[Final]) -> dict[str, Any]:
    """The fields of a `Cell` about quality; each only where every run has it.

    Args:
        finals: `final` of each seed's run; they have the same held-out records.
    """
    fields: dict[str, Any] = {}
    ranges = {metric.name: (metric.most, metric.least) for metric in METRICS}
    if all(final.get("measures") for final in finals):
        fields["measures"] = {
            name: _figure([final["measures"].get(name) for final in finals], *ranges.get(name, ()))
            for name in finals[0]["measures"]
        }
    if all(final.get("groups") for final in finals):
        fields["groups"] = [_column(columns) for columns in _aligned(finals, "groups")]
    if all(final.get("users") for final in finals):
        first = finals[0]["users"]
        fields["users"] = CellUsers.new(
            users=first["users"],
            worst_users=first["worst_users"],
            mean=_figure([final["users"]["mean"] for final in finals]),
            worst=_figure([final["users"]["worst"] for final in finals]),
            worst_by_chance=_figure([final["users"].get("worst_by_chance") for final in finals]),
        ).to_json()
    return fields


def _aligned(parts: Sequence[Mapping[str, Any]], key: str) -> list[tuple[Mapping[str, Any], ...]]:
    return list(zip(*(part[key] for part in parts), strict=False))


def _column(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    groups = [
        CellGroup.new(
            group=runs[0]["group"],
            records=runs[0]["records"],
            accuracy=_figure([run.get("accuracy") for run in runs]),
            balanced_accuracy=_figure([run.get("balanced_accuracy") for run in runs]),
            gap=_figure([run.get("gap") for run in runs]),
            few=runs[0]["few"],
        ).to_json()
        for runs in _aligned(columns, "groups")
    ]
    return CellColumn.new(column=columns[0]["column"], edges=columns[0]["edges"], groups=groups).to_json()


def _figure(
    values: Sequence[float | None], most: float = 1.0, least: float = 0.0
) -> dict[str, float | None] | None:
    """Mean and interval within the range of a metric, that of a share by default; None without all values."""
    known = [value for value in values if value is not None]
    return interval(known, most, least) if known and len(known) == len(values) else None
