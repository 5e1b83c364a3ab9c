"""Tests whether a run's mean updates are unbiased for its cohorts, and by which factor not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.messages.faults import FAILED

WHOLE = (
    "Everybody who was asked is in the sums: the mean updates are unbiased for those of the clients asked."
)
UNKNOWN = (
    "Under local trust what goes wrong on a node stays there, and this run could not look: whether all who "
    "answered did so with an update of their own is not known."
)
SCALED = (
    "Who dropped out was decided by a coin and by no data: the mean updates point the same way on average, "
    "and are shorter by that factor."
)
BIASED = (
    "Who is missing may depend on the data, so that the mean updates are not unbiased for those of all who "
    "were asked."
)


def robust_words(rule: str) -> str:
    """The meaning of a mean update that a robust rule estimates."""
    return (
        f"The mean updates are estimated by {rule} from the updates of those who answered, and not divided "
        "by the expected cohort: such an estimate is not unbiased, whoever is missing."
    )


def estimate(rounds: Sequence[Mapping[str, Any]], rule: str = "mean") -> dict[str, Any]:
    """The part missing from the sums of a run; operator-only.

    Sums are divided by the expected cohort, whoever answers: a client that is missing counts as zero.

    Args:
        rounds: As `fedprivacy.records.run_record.round_event` made them.
        rule: `server.aggregation`.

    Returns:
        `unbiased` (None: not known), `share` of those asked who are in the sums with an update of their own
        (None: not known, or nobody was asked), and both in words.
    """
    if rule != "mean":
        return {"unbiased": False, "share": None, "words": robust_words(rule)}
    requested = sum(event["cohort"] for event in rounds)
    if any(event.get("contributed") is None for event in rounds):
        return {"unbiased": None, "share": None, "words": UNKNOWN}
    there = sum(event["contributed"] for event in rounds)
    if there == requested:
        return {"unbiased": True, "share": 1.0 if requested else None, "words": WHOLE}
    share, missing = there / requested, Counter[str]()
    for event in rounds:
        missing.update({kind: n for kind, n in event["faults"].items() if kind != "retried"})
        missing["refused"] += event["refusals"]
        if event.get("void"):
            away = event["failures"] + event["refusals"] + event["faults"].get("dropped", 0)
            missing["in rounds with too few others"] += event["cohort"] - away
    by_kind = ", ".join(f"{kind} {count:,}" for kind, count in missing.items() if count)
    words = (
        f"Of {requested:,} clients asked {there:,} are in the sums with an update of their own "
        f"({by_kind}). Sums "
        f"are divided by the expected cohort all the same, so that a mean update is on average "
        f"{share:.3g} of what it would be with all of them."
    )
    by_coin = not any(missing[kind] for kind in (*FAILED, "not_finite", "refused"))
    return {"unbiased": False, "share": round(share, 6), "words": f"{words} {SCALED if by_coin else BIASED}"}


def void_note(void: int, rounds: int, least: int) -> str:
    """The effect of rounds that were void; the reason of each is operator-only."""
    return (
        f"{void:,} of {rounds:,} rounds were void, with too few clients (min_survivors = {least:,}) or "
        "shares of masks that did not fit: their sums were not opened, moved nothing, and stay charged."
    )


def unanswered_note(void: int, rounds: int, rule: str, least: int) -> str:
    """The effect of rounds with too few answers for a robust rule."""
    return (
        f"{void:,} of {rounds:,} rounds had fewer than {least:,} answers, which {rule} needs to outvote the "
        "malicious clients that it is made for: they moved nothing, and stay charged."
    )


def dropout_note(rate: float, rule: str = "mean") -> str:
    """The effect of a scenario's dropout on the model; public, since it depends on no data."""
    effect = f"are {1 - rate:.3g} times those of a round without" if rule == "mean" else "have fewer answers"
    return (
        f"Each client that is asked drops out of a round with probability {rate:g} (federation.dropout). "
        f"Mean updates {effect}, and cost the same privacy: nothing is claimed from who drops out."
    )
