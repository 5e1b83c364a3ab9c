"""Rules for what is predicted: classes, numbers or labels, with the keys that belong to each."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.data.tasks import CLASSIFICATION, REGRESSION
from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.data import Npz
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.words import missing


def _ends(bound: object) -> tuple[float, ...]:
    return tuple(bound) if isinstance(bound, list | tuple) else (bound,)  # type: ignore[return-value]


def numbers_have_bounds(v: Values) -> Iterator[Finding]:
    """A bound that is read off clients' targets would be a release that nothing charges."""
    if v.task != REGRESSION:
        return
    for key in ("target_low", "target_high"):
        if not v.given(f"data.{key}"):
            yield missing(("data", key), Npz.model_fields[key])
    lows, highs = v["data.target_low"], v["data.target_high"]
    if lows is None or highs is None:
        return
    for key, bound in (("target_low", lows), ("target_high", highs)):
        if isinstance(bound, list | tuple) and v.classes and len(bound) != v.classes:
            what = f"{len(bound)} numbers for {v.classes} targets"
            yield Finding(("data", key), what, "Give one number, or one for each target.", literal(bound))
            return
    first, last = _ends(lows), _ends(highs)
    size = max(len(first), len(last))
    for low, high in zip(first * (size // len(first)), last * (size // len(last)), strict=False):
        if low >= high:
            what = f"must be above target_low = {low:g}"
            yield Finding(
                ("data", "target_high"), what, "target_low becomes 0, target_high 1.", literal(highs)
            )
            return


def _of_numbers(key: str) -> Rule[Values]:
    return Rule(
        key,
        lambda v: v.task != REGRESSION and v[key] is not None,
        "has no effect: only a regression predicts numbers",
        'Remove it, or set data.task = "regression".',
    )


def _of_classes(key: str, why: str, remedy: str, values: tuple[object, ...] = ()) -> Rule[Values]:
    """Refuses a key, or some values of it, for all tasks but classification."""
    return Rule(
        key,
        lambda v: v.task != CLASSIFICATION and (v[key] in values if values else v[key] is not None),
        lambda v: f"{why}, and data.task = {literal(v.task)} has none",
        remedy,
    )


TASK_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "data.task",
        lambda v: v.task != CLASSIFICATION and v["data.name"] == "flwr-datasets",
        "data sets of flwr-datasets are read as classes alone",
        'Save records and targets in an .npz file, or use a table: name = "table".',
    ),
    Check(numbers_have_bounds),
    _of_numbers("data.target_low"),
    _of_numbers("data.target_high"),
    _of_numbers("training.loss"),
    Rule(
        "training.huber_threshold",
        lambda v: v["training.huber_threshold"] is not None and v["training.loss"] != "huber",
        "has no effect without Huber's loss",
        'Remove it, or set loss = "huber".',
    ),
    Rule(
        "data.targets",
        lambda v: v.task == CLASSIFICATION and v["data.targets"] is not None,
        "has no effect: each record has one class",
        'Remove it, or set data.task = "regression" or "multi-label".',
    ),
    Rule(
        "data.label",
        lambda v: v.task == CLASSIFICATION and isinstance(v["data.label"], tuple),
        "each record has one class, which is one column",
        'Name one column, or set data.task = "multi-label".',
    ),
    Rule(
        "data.classes",
        lambda v: (
            v.task != CLASSIFICATION and v["data.name"] != "purchase-like" and v["data.classes"] is not None
        ),
        lambda v: f"has no effect: data.task = {literal(v.task)} has no classes",
        "Remove it.",
    ),
    _of_classes(
        "data.partition",
        '"dirichlet" and "by-label" deal records by their classes',
        'Use "iid", "by-user" or "fixed-records".',
        ("dirichlet", "by-label"),
    ),
    _of_classes("evaluation.groups", "groups compare the accuracy of naming classes", "Remove it."),
    _of_classes("training.adversarial", "the inference network reads classes", "Remove it."),
)
