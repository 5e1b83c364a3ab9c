"""What each seat learns in a sentence, and what is guaranteed against it right beside."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import words
from fedprivacy.report.attacks import figures, levels
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack, ModelAccuracy
from fedprivacy.report.blocks import Finding


def of(document: ReplayDocument) -> Finding:
    """The strongest attack of each seat, the guarantee against that seat, and the verdict on all attacks."""
    if not document.attacks:
        return Finding("No attack was played to its end.", "", "", "")
    verdict = document.verdict
    # One that refutes a guarantee stands above all else.
    agreed = [verdict.words] if verdict and not verdict.refuted else []
    return Finding(
        text=" ".join(sentences(document)),
        terms=_terms(document),
        heading="What is guaranteed",
        caution=" ".join([*_guaranteed(document), *agreed]),
    )


def sentences(document: ReplayDocument) -> list[str]:
    """What each seat learns; where several levels were played at the strictest, the widest, and without."""
    if not document.several:
        return [sentence(own) for own in document.seats.values()]
    told = [_at_levels(document, seat) for seat in document.seats]
    price = _price(document)
    return [*told, price] if price else told


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


def _at_levels(document: ReplayDocument, seat: str) -> str:
    """The strongest attack of one seat at each level that is told, the least private one first."""
    said: list[str] = []
    for level in reversed(levels.ends(document)):
        own = document.cells.get((seat, level))
        if not own:
            continue
        best = figures.strongest(own)
        who = f"{figures.seat(seat)} tells members from non-members" if not said else "it reaches"
        auc = f"AUC {figures.share(best.auc.value)} ({figures.ends(best.auc)}; {best.name})"
        guess = "" if figures.from_guessing(best.auc) else ", which cannot be told from guessing"
        bound = f"; {_bounded(best)}" if level is not None else ""
        where = words.capital(levels.at(level))
        said.append(f"{where} {who}{' with' if not said else ''} {auc}{guess}{bound}.")
    return " ".join(said)


def _price(document: ReplayDocument) -> str:
    """The accuracy of the attacked models, the least private one first."""
    known = []
    for level in reversed(levels.ends(document)):
        found = {one.model_accuracy.before for one in document.attacks if one.epsilon == level} - {None}
        if len(found) == 1:  # attacks that began at other times attacked other models
            known.append(f"{words.accuracy(found.pop())} {levels.at(level)}")
    return f"The attacked model's accuracy is {words.listed(known)}." if known else ""


def _bounded(attack: Attack) -> str:
    if attack.guarantee is None or not attack.guarantee.holds:
        return "no guarantee stands against it"
    if attack.bound.auc is None:
        return "its guarantee bounds no attack"
    return f"the guarantee allows AUC {figures.at_most(attack.bound.auc)} at most"


def _guaranteed(document: ReplayDocument) -> list[str]:
    """What stands against each seat, at each level that is told."""
    told = levels.ends(document)
    said: list[str] = []
    for seat, own in document.seats.items():
        each = [one for level in told for one in document.cells.get((seat, level), [])[:1]]
        private = [one for one in each if one.epsilon is not None] if document.several else own[:1]
        said += dict.fromkeys(map(guaranteed, private))
    if document.several and None in told:
        said.append("Without privacy: no guarantee against anyone.")
    return said


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


def _untouched(accuracy: ModelAccuracy) -> str:
    before, after = words.accuracy(accuracy.before), words.accuracy(accuracy.after)
    if accuracy.before is None or accuracy.after is None:
        return "the attacked model's accuracy was not measured"
    if before == after:
        return f"leaves the model's accuracy at {after}"
    return f"meanwhile the model's accuracy goes from {before} to {after}"


def _terms(document: ReplayDocument) -> str:
    attacks = document.attacks
    several = len(attacks) > len(document.cells)
    whose = (
        "each seat's strongest attack at each epsilon" if document.several else "each seat's strongest attack"
    )
    best = f"Named is {whose} by its AUC, which flatters it a little." if several else ""
    area = "AUC is the share of pairs of a member and a non-member that are told apart; guessing gives 0.5."
    intervals = "In brackets: 95 % intervals." if document.several else ""
    parts = (best, area, intervals, figures.covered(attacks), levels.terms(document))
    return " ".join(part for part in parts if part)
