"""What is wrong between the sections of a scenario of private empirical risk minimisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedprivacy.data import npz
from fedprivacy.data.columns import unknown
from fedprivacy.errors import Finding
from fedprivacy.scenario.delta import DELTA_IS_RESOLVED
from fedprivacy.scenario.erm.sections import NpzRecords


def records_of(data: Any) -> int | None:
    """How many records there are, as far as the data say so unread; None where the file cannot be used."""
    if not isinstance(data, NpzRecords):
        return int(data.records)
    try:
        return npz.facts(data.path).records
    except npz.NpzError:
        return None


def findings(parts: Mapping[str, Any]) -> list[Finding]:
    """All mistakes between the valid sections.

    Args:
        parts: The valid sections; `approaches` is a table of them.
    """
    return [*_of_data(parts), *_of_approaches(parts), *_of_study(parts)]


def _of_data(parts: Mapping[str, Any]) -> Iterator[Finding]:
    data = parts.get("data")
    if not isinstance(data, NpzRecords):
        objective = parts.get("objective")
        if data is not None and objective is not None and objective.loss == "squared":
            yield Finding(("objective", "loss"), 'has classes to tell with data.name = "logistic-model"',
                          "Choose logistic or huber-svm.")  # fmt: skip
        return
    for key in ("low", "high"):
        if len(getattr(data, key)) != len(data.features):
            bounds = f"has {len(getattr(data, key))} bounds for {len(data.features)} features"
            yield Finding(("data", key), bounds,
                          "Give one for each feature.")  # fmt: skip
    if any(low >= high for low, high in zip(data.low, data.high, strict=False)):
        yield Finding(("data", "low"), "is not below high for every feature", "Bounds are public, and apart.")
    if data.target_low >= data.target_high:
        yield Finding(("data", "target_low"), "is not below target_high", "Bounds are public, and apart.")
    try:
        facts = npz.facts(data.path)
    except npz.NpzError as error:
        for what, remedy in error.wrongs:
            yield Finding(("data", "path"), what, remedy)
        return
    if len(facts.features) != 1:
        yield Finding(("data", "path"), "its records are no rows of numbers", "Rows are needed.")
        return
    names = (
        *(facts.feature_names or tuple(f"column {place}" for place in range(facts.features[0]))),
        data.label,
    )
    for at, what, remedy in unknown(data.features, names, len(names)):
        yield Finding(("data", "features", at), what, remedy)
    for _, what, remedy in unknown([data.target], names, len(names)):
        yield Finding(("data", "target"), what, remedy)
    if data.target in data.features:
        yield Finding(("data", "target"), "is a feature too", "Leave it out of the features.")


def _of_approaches(parts: Mapping[str, Any]) -> Iterator[Finding]:
    objective, data, privacy = (parts.get(name) for name in ("objective", "data", "privacy"))
    count = records_of(data) if data is not None else None
    for name, approach in parts.get("approaches", {}).items():
        if approach.kind == "sufficient-statistics" and objective is not None and objective.loss != "squared":
            yield Finding(("approaches", name, "kind"), "sums of products say all of the squared loss alone",
                          'Set objective.loss = "squared", or choose another approach.')  # fmt: skip
        if approach.kind == "exponential-grid" and data is not None:
            width = len(data.features) + 1 if isinstance(data, NpzRecords) else data.features
            if approach.points**width > 10**6:
                yield Finding(("approaches", name, "points"), f"makes {approach.points}^{width} candidates",
                              "Choose fewer points or features: at most a million.")  # fmt: skip
        if getattr(approach, "trust", "central") == "local" and approach.silos == 1:
            yield Finding(("approaches", name, "silos"), 'is 1: trust = "local" is of several silos',
                          "Set silos.")  # fmt: skip
        silos = getattr(approach, "silos", 1)
        if silos > 1 and privacy is not None and privacy.adjacency == "add-remove":
            yield Finding(("approaches", name, "silos"), "must be 1 under add-remove: sizes are private",
                          'Set privacy.adjacency = "replace-one".')  # fmt: skip
        fewest = min([*getattr(parts.get("study"), "records", ()), *([count] if count else [])], default=None)
        if fewest is not None and silos > fewest // 2:
            yield Finding(("approaches", name, "silos"), f"is {silos}, of {fewest} records",
                          "Each needs two at least.")  # fmt: skip


def _of_study(parts: Mapping[str, Any]) -> Iterator[Finding]:
    data, study, privacy = (parts.get(name) for name in ("data", "study", "privacy"))
    if data is None or study is None:
        return
    count = records_of(data)
    if isinstance(data, NpzRecords) and count is not None and study.records and max(study.records) > count:
        yield Finding(
            ("study", "records"), f"asks for {max(study.records)} of {count} records", "Take fewer."
        )
    most = max([*study.records, *([count] if count else [])], default=0)
    if privacy is not None:
        yield from DELTA_IS_RESOLVED.findings({"privacy.delta": privacy.delta})
    if privacy is not None and privacy.delta * most >= 1:
        yield Finding(("privacy", "delta"), f"must be below 1/(number of records) = {1 / most:.2g}",
                      "1e-6 is usual.")  # fmt: skip
