"""What each seat learns in a sentence, and what is guaranteed against it right beside."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import words
from fedprivacy.report.attacks import figures
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack, ModelAccuracy
from fedprivacy.report.blocks import Finding


def of(document: ReplayDocument) -> Finding:
    """The strongest attack of each seat, and the guarantee against that seat."""
    seats = document.seats
    if not seats:
        return Finding("No attack was played to its end.", "", "", "")
    return Finding(
        text=" ".join(map(sentence, seats.values())),
        terms=_terms(document.attacks),
        heading="What is guaranteed",
        caution=" ".join(guaranteed(own[0]) for own in seats.values()),
    )


def sentence(attacks: Sequence[Attack]) -> str:
    """The strongest attack of one seat: how often it is right, at which price, against which guarantee."""
    best = figures.strongest(attacks)
    rate = best.tpr_at_fpr.get("0.01")
    caught = (
        f"finds {figures.percent(rate.value)} of the members at 1 % FPR ({figures.ends(rate, rate=True)})"
        if rate
        else f"has {figures.TOO_FEW} to tell its TPR at 1 % FPR"
    )
    return (
        f"{words.capital(figures.seat(best.seat))}, with the attack {best.name}, tells members from "
        f"non-members with AUC {figures.share(best.auc.value)} (95 % interval {figures.ends(best.auc)}), "
        f"{caught}, and {_untouched(best.model_accuracy)}; {_bounded(best)}."
    )


def _bounded(attack: Attack) -> str:
    if attack.guarantee is None or not attack.guarantee.holds:
        return "no guarantee stands against it"
    if attack.bound.auc is None:
        return "its guarantee bounds no attack"
    return f"the guarantee allows AUC {figures.at_most(attack.bound.auc)} at most"


def guaranteed(attack: Attack) -> str:
    """What stands against a seat, or in words that nothing does."""
    who, g = figures.seat(attack.seat), attack.guarantee
    if g is None:
        return f"Against {who}: not stated."
    if g.epsilon is None or not g.holds:
        why = f", since {g.assumptions[0]}" if g.assumptions else ""
        return f"Against {who}: no guarantee{why}."
    allowed = f"AUC at most {figures.at_most(attack.bound.auc)}" if attack.bound.auc is not None else ""
    rate = figures.allowed(attack.bound, "0.01")
    if rate is not None:
        allowed += f", TPR at 1 % FPR at most {figures.at_most(rate, rate=True)}"
    return (
        f"Against {who}: epsilon {words.epsilon(g.epsilon)} at {words.terms([g])}"
        + (f", hence {allowed}, whatever the attack" if allowed else "")
        + "."
    )


def exceeded(attacks: Sequence[Attack]) -> str:
    """The attacks that beat their bound by more than chance explains; empty where there is none."""
    found = [one.name for one in attacks if figures.above(one)]
    if not found:
        return ""
    return (
        f"Above the bound: the whole interval of {words.listed(found)} lies above what the guarantee allows. "
        "Of many attacks one may by chance; else an assumption of the guarantee does not hold, or there is a "
        "mistake in noise, accounting or game. Do not rely on the guarantee before this is explained."
    )


def _untouched(accuracy: ModelAccuracy) -> str:
    before, after = words.accuracy(accuracy.before), words.accuracy(accuracy.after)
    if accuracy.before is None or accuracy.after is None:
        return "the attacked model's accuracy was not measured"
    if before == after:
        return f"leaves the model's accuracy at {after}"
    return f"meanwhile the model's accuracy goes from {before} to {after}"


def _terms(attacks: Sequence[Attack]) -> str:
    covered = figures.covered(attacks)
    chance = f" {covered}" if covered else ""
    several = len(attacks) > len({one.seat for one in attacks})
    best = "Named is each seat's strongest attack by its AUC, which flatters it a little. " if several else ""
    return (
        f"{best}AUC is the share of pairs of a member and a non-member that are told apart; guessing gives "
        f"0.5.{chance}"
    )
