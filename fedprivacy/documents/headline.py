"""The headline figure of a result: the primary metric of what its models predict.

A classifier's is `accuracy` in documents; that of another task is `score`, beside the document's `metric`,
which names it. A mean over seeds and a learning curve are named alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.models.metrics.metric import Metric
from fedprivacy.models.metrics.registry import PRIMARY

_SCORES = {"score": "accuracy", "scores": "accuracies"}


def task_of(scenario: Mapping[str, Any]) -> str:
    """What the models of a stored scenario predict; of an older or unknown one, classes."""
    data = scenario.get("data")
    task = data.get("task") if isinstance(data, Mapping) else None
    return task if isinstance(task, str) and task in PRIMARY else CLASSIFICATION


def primary_of(scenario: Mapping[str, Any]) -> type[Metric]:
    """The primary metric of a stored scenario."""
    return PRIMARY[task_of(scenario)]


def stated_metric(task: str) -> dict[str, str]:
    """The field of a document that names its primary metric; none where that is accuracy."""
    return {} if task == CLASSIFICATION else {"metric": PRIMARY[task].name}


def headline(part: Mapping[str, Any]) -> Any:
    """The headline figure of a piece of a document, as JSON; None where nothing was evaluated."""
    return part["score"] if "score" in part else part.get("accuracy")


def scored(task: str, figure: Any) -> dict[str, Any]:
    """The fields of a piece of a document with a headline figure."""
    return {"accuracy": figure} if task == CLASSIFICATION else {"accuracy": None, "score": figure}


def read_headline(value: Any) -> Any:
    """A piece of a document whose headline figure pages read as `accuracy`, whatever the metric."""
    if not isinstance(value, Mapping) or not _SCORES.keys() & value.keys():
        return value
    return {**value, **{field: value[key] for key, field in _SCORES.items() if key in value}}
