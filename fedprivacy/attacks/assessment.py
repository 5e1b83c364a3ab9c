"""The audit result for one observer: its bounds, its estimate and the verdict on the claim.

The bound from guesses and the test of the whole curve (`auditing`) hold whatever the mechanism is. The bound
from scores (`gaussian_scores`) holds if the mechanism is Gaussian. The estimate is no bound.

These refute a claim: the first bound, the test of the curve, and other clients that react to one client's
records (`neighbours`). The bound from scores does so only where the ledger itself charges unsampled Gaussian
noise: then there is less noise than is charged, or it is not Gaussian, and the claim does not follow either
way. All tests share one probability of a false alarm (`ERROR`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fedprivacy.attacks.canary_evidence import (
    CHECKS,
    ERROR,
    WITHOUT_CLAIM,
    OneRun,
    claimed_curve,
    estimate,
)
from fedprivacy.attacks.gaussian_score_bound import ScoreMoments, gaussian_lower_bound
from fedprivacy.attacks.measured_sensitivity import Neighbours
from fedprivacy.attacks.one_run_epsilon import Guesses
from fedprivacy.attacks.tradeoff import GaussianCurve
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import guarantees, printed


def additive_for(observer: str, scenario: Mapping[str, Any]) -> bool:
    """Whether an observer's score of a canary is its answer plus noise that no coin decides.

    A participant sees each sum, and knows the others' updates. The final model has the others' reactions to
    the coins in it, unless there is one round only. Under sampling a canary's part in a score is random.

    Args:
        observer: "server", "participant" or "outsider".
        scenario: The audited scenario, as from `Scenario.tables`.
    """
    privacy, server = scenario["privacy"], scenario["server"]
    if (
        scenario["sampling"]["name"] != "all"
        or scenario["federation"]["dropout"]
        or server["denoise"] != "none"
    ):
        return False
    if observer == "server":
        return bool(privacy["trust"] == "local" and privacy.get("noise_draw") != "sum")
    if privacy["trust"] != "central":
        return False
    return observer == "participant" or (server["rounds"] == 1 and server["optimizer"] != "adam")


def assess(
    observer: str,
    ledger: Mapping[str, Any],
    scenario: Mapping[str, Any],
    method: str,
    guesses: tuple[Guesses, ...] | None,
    scores: ScoreMoments,
    neighbours: Neighbours | None,
) -> dict[str, Any]:
    """Returns an audit's statements about one observer as JSON; auditing and verification share it.

    Args:
        observer: "server", "participant" or "outsider".
        ledger: The charged ledger, as JSON.
        scenario: The audited scenario, as from `Scenario.tables`.
        method: "one-run", "canary-clients" or "both".
        guesses: Of all runs together, for each of `SHARES`; None without guesses.
        scores: The moments of the canaries' scores.
        neighbours: The comparison of neighbouring data; None without one.

    Raises:
        ValueError: there are more or fewer sets of guesses than an audit makes.
    """
    delta, curve = ledger["delta"] or WITHOUT_CLAIM, claimed_curve(ledger, observer)
    [guarantee] = [claim.to_json() for claim in guarantees(ledger) if claim.observer == observer]
    one_run = bound = estimated = None
    if guesses is not None:
        one_run = OneRun(guesses, delta, len(OBSERVERS) * CHECKS, curve).to_json()
        if isinstance(curve, GaussianCurve) and additive_for(observer, scenario):
            bound = gaussian_lower_bound(scores, curve.mu, delta)
    if method != "one-run" and _is_normal(ledger, scenario):
        estimated = estimate(scores, delta)
    return {
        "guarantee": guarantee,
        "one_run": one_run,
        "if_gaussian": bound,
        "canary_clients": estimated,
        "verdict": verdict(guarantee, one_run, estimated, bound, neighbours),
    }


def _is_normal(ledger: Mapping[str, Any], scenario: Mapping[str, Any]) -> bool:
    """Whether the view of a canary is normal, as the estimate assumes."""
    if scenario["sampling"]["name"] != "all":
        return False
    curves = [claimed_curve(ledger, claim["observer"]) for claim in ledger["claims"] if claim["event"]]
    return all(isinstance(curve, GaussianCurve) for curve in curves)


def verdict(
    guarantee: Mapping[str, Any],
    one_run: Mapping[str, Any] | None,
    estimated: Mapping[str, Any] | None = None,
    gaussian: Mapping[str, Any] | None = None,
    neighbours: Neighbours | None = None,
) -> dict[str, Any]:
    """Returns the verdict on a claim as JSON: `holds` is false if refuted, null if unknown.

    Args:
        guarantee: The claim (`statement.Guarantee.to_json`).
        one_run: The proved bounds (`OneRun.to_json`); None: no guesses.
        estimated: The result of `estimate`; it decides nothing.
        gaussian: The result of `gaussian_lower_bound`.
        neighbours: The changes on neighbouring data.
    """
    claimed = guarantee["epsilon"]
    # Neighbouring data come first: their comparison is exact, so no false alarm has to be corrected for.
    if claimed is not None and neighbours is not None and neighbours.refutes:
        return _verdict_json(False, f"REFUTED: the claim is false{_taken(neighbours)}; {neighbours.words}")
    above = _above(claimed, estimated, gaussian)
    if one_run is None:
        return _verdict_json(
            None, f"proves nothing: an estimate is no bound; --method one-run has one{above}"
        )
    low, most, many = one_run["epsilon"], one_run["ceiling"], f"{one_run['canaries']:,} canaries"
    at = f"epsilon = {down(low)} at delta = {one_run['delta']:g}"
    proved = f"it is at least {at}" if low > 0 else "no epsilon above 0 was proved"
    if claimed is None:
        return _verdict_json(None, f"nothing is claimed, so there is nothing to refute; {proved}")
    least = 0.0 if gaussian is None else gaussian["epsilon"]
    if gaussian is not None:
        proved = f"whatever the mechanism is, {proved}; if it is Gaussian, it is at least {down(least)}"
    claim, p_values, error = printed(claimed), one_run["p_values"], ERROR / one_run["checks"]
    if low > claimed:
        return _verdict_json(
            False, f"REFUTED: the claim is false. Epsilon = {claim} is claimed, and it is at least {at}"
        )
    if p_values is not None and min(p_values) <= error:
        checked = p_values.index(min(p_values))
        right, guesses = one_run["guesses"][checked]["right"], one_run["guesses"][checked]["made"]
        corrected = min(p_values) * one_run["checks"]
        return _verdict_json(
            False,
            f"REFUTED: the claim is false. If epsilon = {claim} were true on its terms, {right:,} right "
            f"guesses of {guesses:,} would have probability {corrected:.1g} at most, corrected for "
            f"{one_run['checks']} checks ({proved})",
        )
    if gaussian is not None and gaussian["p_value"] <= error:
        return _verdict_json(
            False,
            f"REFUTED: the claim is false as the ledger accounts for it, by unsampled Gaussian noise. With "
            f"the noise of epsilon = {claim}, scores so far apart have probability "
            f"{gaussian['p_value'] * one_run['checks']:.1g} at most, corrected for {one_run['checks']} "
            f"checks: there is less noise, or it is not Gaussian ({proved})",
        )
    if least <= 0 and most <= claimed and (p_values is None or one_run["least_p_value"] > error):
        return _verdict_json(
            None,
            f"proves nothing: even if every guess were right, {many} would prove no more than "
            f"{down(most)}, and epsilon = {claim} is claimed{above or '. More canaries or runs prove more'}",
        )
    if low <= 0 and least <= 0:
        return _verdict_json(
            None, f"proves nothing: of {many} hardly more are guessed than chance allows, if any{above}"
        )
    return _verdict_json(
        True,
        f"consistent: {proved}, and epsilon = {claim} is claimed. That refutes nothing, and proves no "
        f"guarantee{above}",
    )


def _above(
    claimed: float | None, estimated: Mapping[str, Any] | None, gaussian: Mapping[str, Any] | None
) -> str:
    """Explains a figure above the claim that refutes nothing by itself; empty without one."""
    if claimed is None:
        return ""
    if gaussian is not None and gaussian["epsilon"] > claimed:
        wrong = 100 * (1 - gaussian["confidence"])
        return (
            '. The bound "if Gaussian" is above the claim, which by itself refutes nothing: it rests on a '
            f"shape of the noise that is not proved, and is too large in {wrong:.2g} % of audits. What "
            "refutes is the bound that assumes nothing, or a test that is corrected for all checks: more "
            "canaries or runs help both"
        )
    if gaussian is None and estimated is not None and estimated["low"] > claimed:
        return (
            ". The estimate is above the claim, which says something only where scores are normal (Gaussian "
            "noise, no sampling): ask for more canaries or runs"
        )
    return ""


def _taken(neighbours: Neighbours) -> str:
    """The assumptions of a claim that neighbouring data have shown to be wrong."""
    if neighbours.changed and neighbours.reacts:
        return ". It takes the others' updates for unchanged"
    if neighbours.too_far:
        return f". It takes what is released to move by {neighbours.allowed:g} C at most"
    return " as the ledger accounts for it, which takes what is released for a sum of clipped updates"


def down(epsilon: float) -> str:
    """A lower bound as text, rounded down.

    >>> down(1.99978), down(0.0)
    ('1.999', '0')
    """
    return f"{math.floor(epsilon * 1000) / 1000:g}"


def _verdict_json(holds: bool | None, words: str) -> dict[str, Any]:
    return {"holds": holds, "words": f"{words}."}
