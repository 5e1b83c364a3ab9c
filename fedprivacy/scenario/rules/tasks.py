"""Rules for what is predicted: classes, numbers, labels or tokens, with the keys that belong to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.data.secrets import LONGEST, USED
from fedprivacy.data.tasks import CLASSIFICATION, NAMED, NEXT_TOKEN, REGRESSION
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


def _of_tokens(key: str, broken: Callable[[Values], bool], what: str, remedy: str) -> Rule[Values]:
    """Refuses what does not go with the prediction of tokens."""
    return Rule(key, lambda v: v.task == NEXT_TOKEN and broken(v), what, remedy)


_SEQUENCES = ("gru", "transformer")
TOKEN_RULES: tuple[Entry[Values], ...] = (
    _of_tokens(
        "data.task",
        lambda v: v["data.name"] in ("table", "synthetic"),
        "records of this data set are no texts",
        'Use name = "text", or tokens in an .npz file.',
    ),
    _of_tokens(
        "data.scaling",
        lambda v: v["data.scaling"] not in (None, "none"),
        "tokens are numbers of characters or words, and scaling would change them",
        "Remove it.",
    ),
    _of_tokens(
        "data.classes",
        lambda v: v["data.classes"] is None and v.facts is not None and not v.facts.class_names,
        "is missing: the number of tokens must be public, and is not read off clients' texts",
        "Set the size of the tokenizer's vocabulary, or name the tokens in an array classes of the file.",
    ),
    _of_tokens(
        "data.missing",
        lambda v: v["data.missing"] == "zero",
        "0 is a token, and no place for a missing one",
        "Remove it.",
    ),
    *(
        _of_tokens(
            f"data.{key}",
            lambda v, key=key: v[f"data.{key}"] is not None,  # type: ignore[misc]
            "the positions of a text are no columns",
            "Remove it.",
        )
        for key in ("columns", "without")
    ),
    *(
        Rule[Values](
            f"data.{key}",
            lambda v, key=key: v["data.path"] is not None and v[f"data.{key}"] is not None,  # type: ignore[misc]
            "has no effect: it is of the simulated play, and a file is given",
            "Remove it, or path.",
        )
        for key in ("roles", "speeches")
    ),
    Rule(
        "data.secrets",
        lambda v: bool(v["data.secrets"]) and v["data.partition"] != "by-user",
        "all copies of a secret must be one client's",
        'Set partition = "by-user".',
    ),
    Rule(
        "data.secrets",
        lambda v: bool(v["data.secrets"]) and v["data.first_clients"] is not None,
        "has secrets of authors who do not take part, and their exposure would be chance",
        "Remove first_clients, or set secrets = 0.",
    ),
    Rule(
        "data.secrets",
        lambda v: bool(v["data.secrets"]) and bool(v["data.public_fraction"]),
        "an author with a secret may be public, and no client trains on that text",
        "Remove public_fraction, or set secrets = 0.",
    ),
    Rule(
        "data.window",
        lambda v: bool(v["data.secrets"] and v["data.window"]) and v["data.window"] < LONGEST,
        lambda v: f"a line with a secret has {LONGEST} characters with its ends",
        f"At least {LONGEST}, or no secrets.",
    ),
    Rule(
        "data.vocabulary",
        lambda v: bool(v["data.secrets"] and v["data.vocabulary"]) and not set(v["data.vocabulary"]) >= USED,
        "secrets are written in small letters, digits, spaces and ends of lines",
        "Add those that it lacks, or set secrets = 0.",
        shown=False,
    ),
    _of_tokens(
        "model.name",
        lambda v: v["model.name"] not in (*_SEQUENCES, "code", None),
        "this model predicts one thing of a record, and not a token at each position",
        'Use name = "gru" or name = "transformer".',
    ),
    Rule(
        "model.name",
        lambda v: v["model.name"] in _SEQUENCES and v.task != NEXT_TOKEN,
        lambda v: f"it predicts the next token of a text, and data.task is {literal(v.task)}",
        'Use name = "logistic" or name = "mlp", or data.name = "text".',
    ),
    Rule(
        "model.heads",
        lambda v: bool(v["model.heads"] and v["model.width"]) and v["model.width"] % v["model.heads"] != 0,
        lambda v: f"does not divide the width {v['model.width']}",
        "Take a divisor of it.",
    ),
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
        lambda v: v.task not in NAMED and v["data.name"] != "purchase-like" and v["data.classes"] is not None,
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
    *TOKEN_RULES,
)
