"""A stored audit: what it claims and proves is made again from its ledgers, guesses and scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fedprivacy.attacks.assessment import assess
from fedprivacy.attacks.audit_record import dearest
from fedprivacy.attacks.canary_evidence import guesses_each
from fedprivacy.attacks.gaussian_score_bound import ScoreMoments
from fedprivacy.attacks.measured_sensitivity import Neighbours
from fedprivacy.attacks.one_run_epsilon import Guesses
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.verification.audited_runs import AGAIN, checked_runs
from fedprivacy.verification.differences import refusal, refuse_length
from fedprivacy.verification.parts import refuse_parts


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of an audit, as it may be shown: what it claims and proves is computed again.

    Raises:
        InputError: a claim, what is proved of it or a verdict does not follow from its ledger and guesses.
    """
    audited = checked_runs(document, where)
    stored, again = document["observers"], []
    refuse_length(len(stored), len(OBSERVERS), "observers", where, "an audit has", AGAIN)
    for number, (stored_observer, name) in enumerate(zip(stored, OBSERVERS, strict=True)):
        key = f"observers[{number}]"
        implied = {"observer": name, "ledger": dearest(document["ledgers"], name)}
        refuse_parts(stored_observer, implied, where, "its ledgers imply", AGAIN, key)
        _check_scores(document, number, where)
        guesses = _guesses(audited, stored_observer["one_run"], where, f"{key}.one_run")
        assessed = _assessed(document, stored_observer, guesses)
        refuse_parts(stored_observer, assessed, where, "its ledger, guesses and scores imply", AGAIN, key)
        again.append({**stored_observer, **assessed})
    refuted = any(stored_observer["verdict"]["holds"] is False for stored_observer in again)
    refuse_parts(document, {"refuted": refuted}, where, "its verdicts imply", AGAIN)
    return {**document, "audited": audited, "observers": again}


def _check_scores(document: Mapping[str, Any], number: int, where: str) -> None:
    """Checks that each canary has one score, and the same coin for all observers."""
    audited, key = document["audited"], f"observers[{number}].scores"
    scores, first = (document["observers"][at]["scores"] for at in (number, 0))
    canaries = audited["canaries"] * audited["trials"]
    counted = scores["present"]["count"] + scores["absent"]["count"]
    if counted != canaries:
        raise refusal(where, key, f"are of {counted} canaries, the runs have {canaries}", AGAIN)
    coins = {"count": first["present"]["count"]}
    refuse_parts(scores["present"], coins, where, "the coins of other scores imply", AGAIN, f"{key}.present")


def _guesses(
    audited: Mapping[str, Any], one_run: Mapping[str, Any] | None, where: str, key: str
) -> tuple[Guesses, ...] | None:
    """The guesses of all runs together; None where nobody guessed."""
    canaries, trials = audited["canaries"], audited["trials"]
    if (one_run is None) != (audited["method"] == "canary-clients"):
        raise refusal(where, key, f'does not fit the method "{audited["method"]}"', AGAIN)
    if one_run is None:
        return None
    guess_counts, stored = [2 * each * trials for each in guesses_each(canaries)], one_run["guesses"]
    refuse_length(len(stored), len(guess_counts), f"{key}.guesses", where, "an audit has", AGAIN)
    for number, (guesses, many) in enumerate(zip(stored, guess_counts, strict=True)):
        at = f"{key}.guesses[{number}]"
        refuse_parts(guesses, {"made": many}, where, "so many canaries imply", AGAIN, at)
        if guesses["right"] > many:
            raise refusal(where, f"{at}.right", f"says {guesses['right']}, of {many} guesses", AGAIN)
    return tuple(Guesses(canaries * trials, guesses["made"], guesses["right"]) for guesses in stored)


def _assessed(
    document: Mapping[str, Any], observer: Mapping[str, Any], guesses: tuple[Guesses, ...] | None
) -> dict[str, Any]:
    """The statement of an audit about an observer (`assess`), from the figures of a record."""
    audited, ledger = document["audited"], document["ledgers"][observer["ledger"]]
    parts = (ledger, document["scenario"], observer["scores"], audited["neighbours"])
    return _assess(observer["observer"], audited["method"], guesses, *map(json.dumps, parts))


# A record is read more than once, for its page and beside others: it is assessed once.
@lru_cache(maxsize=64)
def _assess(observer: str, method: str, guesses: tuple[Guesses, ...] | None, *parts: str) -> dict[str, Any]:
    ledger, scenario, scores, neighbours = map(json.loads, parts)
    result = None if neighbours is None else Neighbours.of_json(neighbours)
    return assess(observer, ledger, scenario, method, guesses, ScoreMoments.of_json(scores), result)
