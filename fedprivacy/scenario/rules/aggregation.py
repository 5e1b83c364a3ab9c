"""Rules for a server that aggregates robustly, or clips single updates itself."""

from __future__ import annotations

from collections.abc import Callable

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.sections import COUNTING, least_answers

_EACH = 'Set federation.observe = "each".'


def _robust(
    broken: Callable[[Values], bool], problem: str | Callable[[Values], str], remedy: str
) -> Rule[Values]:
    def robust_and_broken(v: Values) -> bool:
        return v["server.aggregation"] not in (None, "mean") and broken(v)

    return Rule("server.aggregation", robust_and_broken, problem, remedy)


def _clips(broken: Callable[[Values], bool], problem: str, remedy: str) -> Rule[Values]:
    return Rule("server.clips", lambda v: bool(v["server.clips"]) and broken(v), problem, remedy)


def _answers(v: Values) -> int | None:
    """The expected answers of a round."""
    if v["sampling.cohort"] is not None:
        return int(v["sampling.cohort"])
    if v.population is None:
        return None
    return round(v.population * (v["sampling.rate"] or 1.0))


def _too_many_byzantine(v: Values) -> bool:
    answers, byzantine = _answers(v), v["server.byzantine"]
    if answers is None or byzantine is None or v["server.aggregation"] not in COUNTING:
        return False
    return answers < least_answers(v["server.aggregation"], byzantine)


AGGREGATION_RULES: tuple[Entry[Values], ...] = (
    First(
        _robust(
            lambda v: v["privacy.trust"] == "central",
            "the server's noise is made for a sum, which one client moves by privacy.clipping_norm; it moves "
            "what this rule gives by another amount, of which no epsilon is known",
            'Use aggregation = "mean", or privacy.trust = "none" or "local".',
        ),
        _robust(
            lambda v: v["privacy.trust"] == "distributed",
            "the server receives the secure sum of a round, and this rule needs each update",
            'Use aggregation = "mean", or privacy.trust = "none" or "local".',
        ),
        _robust(
            lambda v: v["federation.observe"] == "sum",
            "needs each update, and nodes reply with sums",
            _EACH,
        ),
    ),
    _robust(
        lambda v: v["privacy.trust"] == "local" and v["privacy.mechanism"] not in (None, "gaussian"),
        "estimates a mean from messages whose noise is symmetric in each coordinate, and those of this "
        "mechanism are of another kind",
        'Set privacy.mechanism = "gaussian", or aggregation = "mean".',
    ),
    _robust(
        lambda v: v["training.weighting"] == "records",
        'counts each client as one, and training.weighting = "records" does not',
        'Set training.weighting = "clients".',
    ),
    _robust(
        lambda v: v["server.denoise"] not in (None, "none"),
        "leaves noise of unknown size, which server.denoise cannot take out",
        'Set server.denoise = "none".',
    ),
    Rule(
        "server.byzantine",
        lambda v: v["server.aggregation"] in COUNTING and not v.given("server.byzantine"),
        lambda v: f"missing, and aggregation {literal(v['server.aggregation'])} is made for a number of them",
        "Add byzantine = 1, the number of malicious clients in a round that it is to withstand.",
    ),
    Rule(
        "server.byzantine",
        lambda v: (
            v.given("server.byzantine")
            and v["server.aggregation"] is not None
            and v["server.aggregation"] not in COUNTING
        ),
        lambda v: f"has no effect with aggregation {literal(v['server.aggregation'])}",
        'Remove it, or set aggregation = "trimmed-mean" or "krum".',
        shown=False,
    ),
    Rule(
        "server.byzantine",
        _too_many_byzantine,
        lambda v: (
            f"{literal(v['server.aggregation'])} withstands so many among "
            f"{least_answers(v['server.aggregation'], v['server.byzantine'])} answers or more, and a round "
            f"has {_answers(v)}"
        ),
        "Set it lower, or draw more clients to a round.",
    ),
    First(
        _clips(
            lambda v: v["privacy.trust"] in ("local", "distributed"),
            "clients send noisy messages, and the server sees no update that it could clip",
            'Remove it, or set privacy.trust = "central".',
        ),
        _clips(
            lambda v: v["privacy.unit"] == "example",
            'with privacy.unit = "example" clients send sums of gradients of records, and the server sees '
            "none of these",
            'Remove it, or set privacy.unit = "client".',
        ),
        _clips(
            lambda v: v["privacy.trust"] == "none" and not v.given("privacy.clipping_norm"),
            "there is no norm to clip to",
            "Add privacy.clipping_norm = 1.0.",
        ),
        _clips(
            lambda v: v["federation.observe"] == "sum",
            "the server clips single updates, and nodes reply with sums",
            _EACH,
        ),
    ),
    _clips(
        lambda v: v["privacy.clipping_quantile"] is not None,
        "the server cannot check the bits by which the clipping norm changes",
        "Remove it, or privacy.clipping_quantile.",
    ),
    _clips(
        lambda v: v["privacy.encoding"] is not None,
        "nodes encode what they have clipped, and clipping a code makes another one of it",
        "Remove it, or privacy.encoding.",
    ),
)
