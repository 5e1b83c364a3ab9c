"""The terms of an audit's epsilons: delta, unit and adjacency, and the confidence of lower bounds."""

from __future__ import annotations

from fedprivacy.attacks.canary_evidence import WITHOUT_CLAIM
from fedprivacy.attacks.measured_sensitivity import Neighbours
from fedprivacy.documents.audit import AuditDocument, Observer
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import words


def measured(document: AuditDocument) -> list[Guarantee]:
    """The bound or estimate against each observer, in the form of a guarantee, which has the terms too.

    Canaries measure an epsilon where nothing is claimed as well.
    """
    return [
        observer.guarantee.model_copy(update={"epsilon": epsilon, "delta": _delta(observer)})
        for observer in document.observers
        if (epsilon := _measured_epsilon(observer)) is not None
    ]


def confidence(document: AuditDocument) -> str:
    """How sure the lower bounds are, as a clause; empty where there is no bound."""
    bounds = [observer.one_run for observer in document.observers if observer.one_run is not None]
    shares = dict.fromkeys(f"{100 * bound.confidence:g} %" for bound in bounds)
    return f"lower bounds hold with {words.listed(shares, 'or')} confidence" if shares else ""


def refuted(document: AuditDocument) -> str:
    """The word for a refuted claim, with the confidence of the tests; an exact comparison has none."""
    compared = document.audited.neighbours
    if compared is not None and Neighbours.of_json(compared).refutes:
        return "REFUTED"
    return f"REFUTED with {100 * (1 - document.audited.false_alarm):g} % confidence"


def terms(document: AuditDocument) -> str:
    """The terms of every epsilon of an audit; empty where it has none."""
    claimed = words.terms(observer.guarantee for observer in document.observers)
    shown = words.terms(measured(document))
    if claimed and shown and claimed != shown:
        parts = [f"{claimed} where it is claimed", f"{shown} where it is measured"]
    else:
        parts = [claimed or shown]
    return "; ".join(filter(None, [*parts, confidence(document)]))


def _measured_epsilon(observer: Observer) -> float | None:
    if observer.one_run is not None:
        return observer.one_run.epsilon
    return None if observer.canary_clients is None else observer.canary_clients.low


def _delta(observer: Observer) -> float:
    """The delta that the audit measures at: of the claim, or of audits without one."""
    if observer.one_run is not None:
        return observer.one_run.delta
    return observer.guarantee.delta or WITHOUT_CLAIM
