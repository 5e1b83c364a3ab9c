"""The page of an audit: the claims, the bounds that canaries prove, and the audited settings."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.attacks.assessment import down
from fedprivacy.attacks.sample_size import tells_epsilon
from fedprivacy.documents.audit import AuditDocument, Observer
from fedprivacy.documents.envelope import Arm
from fedprivacy.guarantees.statement import printed
from fedprivacy.report import audit_chart, audit_power, audit_terms, page_end, protection
from fedprivacy.report.answers import audit as answer
from fedprivacy.report.blocks import Entry, Items, Page, Section, Table, Text, Value

HEAD = ("observer", "claimed", "at least", "if Gaussian", "ceiling", "estimate [95 %]")


def row(observer: Observer) -> tuple[str, ...]:
    """The figures of one observer, under `HEAD`; claims and ceilings are rounded up, proven bounds down."""
    claim, bound, guess = observer.guarantee.epsilon, observer.one_run, observer.canary_clients
    estimate = "-"
    if guess is not None:
        high = "" if guess.high is None else f"{guess.high:.3g}"
        printed_guess = f"over {guess.low:.3g}" if guess.epsilon is None else f"{guess.epsilon:.3g}"
        if not tells_epsilon(guess.low, guess.high, claim):
            printed_guess = audit_power.TOO_FEW
        estimate = f"{printed_guess} [{guess.low:.3g}, {high}]" if high else printed_guess
    return (
        observer.observer,
        "none" if claim is None else printed(claim),
        "-" if bound is None else down(bound.epsilon),
        "-" if observer.if_gaussian is None else down(observer.if_gaussian.epsilon),
        "-" if bound is None else printed(bound.ceiling),
        estimate,
    )


def page(document: AuditDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The audit, without its operator-only fields.
        error: As of every page; a record of this kind has none.
        command: Whether the operator-only section contains the command that reproduces it.
    """
    guarantees = [observer.guarantee for observer in document.observers]
    epsilon_terms = audit_terms.terms(document)
    rows: list[Sequence[Value]] = [
        (
            *_figures(observer),
            audit_power.needed(observer),
            Entry(observer.verdict.words, tone="bad" if observer.verdict.holds is False else ""),
        )
        for observer in document.observers
    ]
    caption = f"Epsilon as it is claimed and as canaries show it; each epsilon: {epsilon_terms}. "
    caption += audit_power.NEEDED
    head = (*HEAD, "canaries needed", "verdict")
    table = Table(caption, head, rows, numeric=frozenset(range(1, len(HEAD) + 1)), stacked=True)
    drawn = audit_chart.picture(document, epsilon_terms)
    refuted = [observer for observer in document.observers if observer.verdict.holds is False]
    lead = [
        Text(f"Against the {observer.observer}: {observer.verdict.words}", "status stopped")
        for observer in refuted
    ]
    trust = next((observer.trust for observer in guarantees if observer.trust), "none")
    cells = [protection.Protected(Arm(trust), None, guarantees)]
    return Page(
        title=page_end.title(document),
        eyebrow="Audit",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_audit(document, cells),
        lead=[*lead, *([drawn] if drawn else []), table],
        sections=[
            Section("audited", "What was audited", [Items([document.audited.words, *_how(document)])]),
            Section("guarantees", "Who is protected from whom", protection.blocks(cells, ""), folded=False),
            *page_end.closing(document, command=command),
        ],
    )


def _figures(observer: Observer) -> tuple[Value, ...]:
    """The row with how sure the claim leaves an attacker."""
    name, claim, *others = row(observer)
    return name, protection.spent(observer.guarantee, claim), *others


def _how(document: AuditDocument) -> list[str]:
    alarm = f"{100 * document.audited.false_alarm:g} %"
    bounds = [observer.if_gaussian for observer in document.observers if observer.if_gaussian is not None]
    expected = [
        'The bound under "if Gaussian" has no ceiling. If the claim is exactly true, half of all audits with '
        f"so many canaries prove at least epsilon = {down(bound.expected)} with it."
        for bound in bounds[:1]
    ]
    return [
        f"If all claims are true, some verdict says REFUTED with a probability of {alarm} at most.",
        *expected,
        "A bound below its claim proves no guarantee: canaries see what canaries can.",
    ]
