"""The answer of an audit: the epsilon that canaries prove, beside the claimed one."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.attacks.assessment import down
from fedprivacy.documents.audit import AuditDocument, Observer
from fedprivacy.guarantees.statement import printed
from fedprivacy.report import audit_power, audit_terms, words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

CONFIDENT = "95 % confidence"
COST = "An audit tests claims and measures no accuracy: fedprivacy run does."


def of_audit(document: AuditDocument, cells: Sequence[Protected]) -> Answer:
    """The largest bound that the canaries prove, of a refuted claim where there is one.

    Args:
        document: The audit.
        cells: The claims.
    """
    judged = sorted(document.observers, key=_rank)
    worst = judged[0] if judged else None
    proved = None if worst is None or worst.one_run is None else worst.one_run.epsilon
    measured = [] if worst is None or proved is None else [_measured(worst, proved)]
    shown = [
        cards.cost([Entry("Not measured here")], COST),
        cards.protected(cells),
        cards.learned(cells, measured),
    ]
    if worst is None:
        return cards.answer("No observer was audited.", "—", "epsilon proved", cells, shown)
    who, claim = cards.brief(words.observer(worst.observer), 3), worst.guarantee.epsilon
    claimed = "nothing is claimed" if claim is None else f"epsilon {printed(claim)} is claimed"
    value = "—" if proved is None else down(proved)
    label = f"epsilon proved against {who}, {CONFIDENT}; {claimed}"
    if worst.verdict.holds is False:
        refuted = audit_terms.refuted(document)
        if proved is None or claim is None or proved <= claim:  # another test than the bound refutes it
            value, label = "REFUTED", f"the claim against {who}; {claimed}"
            sentence = f"{refuted}: against {who} {claimed}, and what was measured contradicts it."
        else:
            sentence = f"{refuted}: against {who} {claimed}, and canaries prove at least epsilon {value}."
    elif proved is None:
        sentence = f"Canaries prove no bound against {who}; {claimed}."
    elif worst.one_run is not None and audit_power.too_few(worst):
        value, label = audit_power.TOO_FEW, f"canaries to tell against {who}; {claimed}"
        sentence = (
            f"{worst.one_run.canaries:,} canaries are too few to tell: they prove nothing against {who}; "
            f"{claimed}."
        )
    elif proved == 0:
        value, label = "no bound", f"on epsilon is proved against {who}; {claimed}"
        sentence = f"No claim is refuted: canaries prove no bound against {who}; {claimed}."
    else:
        sentence = f"No claim is refuted: against {who} canaries prove at least epsilon {value}; {claimed}."
    return cards.answer(sentence, value, label, cells, shown, audit_terms.terms(document))


def _rank(observer: Observer) -> tuple[bool, bool, float]:
    """Refuted claims first, then other claims, then what is proved where nothing is claimed."""
    proved = 0.0 if observer.one_run is None else observer.one_run.epsilon
    return observer.verdict.holds is not False, not observer.guarantee.holds, -proved


def _measured(observer: Observer, proved: float) -> Entry:
    who = cards.brief(words.observer(observer.observer), 3)
    tone = "bad" if observer.verdict.holds is False else ""
    if proved == 0:
        return Entry("Canaries prove nothing", f"against {who}; that proves no guarantee", tone)
    return Entry(f"Canaries prove at least epsilon {down(proved)}", f"against {who}, {CONFIDENT}", tone)
