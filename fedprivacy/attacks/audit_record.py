"""The record of an audit: its description, and the run whose claim the canaries test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.attacks.canary_evidence import ERROR
from fedprivacy.attacks.gaussian_score_bound import CONFIDENCE
from fedprivacy.attacks.measured_sensitivity import Neighbours
from fedprivacy.guarantees.statement import guarantees


def audit_description(scenario: Mapping[str, Any], audited: Mapping[str, Any]) -> str:
    """Describes the audited run in plain sentences.

    Args:
        scenario: As `Scenario.tables` gives it.
        audited: The record's facts of the same name.
    """
    privacy = scenario["privacy"]
    runs = "one run" if audited["trials"] == 1 else f"{audited['trials']:,} runs"
    norm = "norm 1, since nothing is clipped" if privacy.get("clipping_norm") is None else "the clipping norm"
    other = "the opposite of it" if privacy["adjacency"] == "replace-one" else "zero"
    text = (
        f"Audited was the scenario with {audited['canaries']:,} canary clients beside its "
        f"{audited['clients']:,}, in {runs} of its {audited['rounds']} rounds; noise, clipping and sampling "
        f"are the scenario's own. By a fair coin a canary answers with a random direction of {norm}, or with "
        f"{other}; it has records too, more or fewer by the same coin, and trains on them. "
    )
    if audited["neighbours"] is not None:
        neighbours = Neighbours.of_json(audited["neighbours"])
        text += f"Without noise, neighbouring data sets were compared: {neighbours.words}. "
    if audited["method"] != "canary-clients":
        text += (
            f"True claims are refuted with a probability of {100 * ERROR:g} % at most, all together, and all "
            f"lower bounds hold with {100 * (1 - ERROR):g} % confidence. A ceiling is the largest bound that "
            'so many canaries could have given. The bound under "if Gaussian" takes what is seen of a canary '
            f"for its answer plus Gaussian noise, holds with {100 * CONFIDENCE:g} % confidence by itself, "
            "and is given where the ledger charges such noise, without sampling, and nothing else is seen. "
        )
    if audited["method"] != "one-run":
        text += (
            "An estimate is no bound; it is given only for Gaussian noise or none, and where everybody is "
            "asked: it takes what is seen of a canary for normal. "
        )
    if privacy["trust"] == "local":
        text += (
            "The noise of the canaries covers each of them too: what is claimed here of an outsider, or a "
            "participant, may be that of more clients, and the scenario's own claim larger. "
        )
    if scenario["sampling"]["name"] == "fixed":
        text += "A cohort of fixed size is drawn from canaries too: the claim here is that of more clients. "
    return text.strip()


def dearest(ledgers: Sequence[Mapping[str, Any]], observer: str) -> int:
    """Returns the index of the ledger with the largest epsilon: a bound that all runs satisfy.

    Args:
        ledgers: Of all runs, as JSON.
        observer: "server", "participant" or "outsider".
    """
    claims = [
        next(stated for stated in guarantees(ledger) if stated.observer == observer) for ledger in ledgers
    ]
    costs = [math.inf if claim.epsilon is None else claim.epsilon for claim in claims]
    return costs.index(max(costs))
