"""The result of each seat in a sentence, beside the guarantee against it."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import CLIPPED, Attack, Level, ModelAccuracy
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures, headline, levels
from fedprivacy.report.blocks import Finding


def of(document: ReplayDocument) -> Finding:
    """The strongest attack of each seat, the guarantee against that seat, and the verdict on all attacks."""
    if not document.attacks:
        return Finding("No attack was completed.", "", "", "")
    verdict = document.judged
    # A verdict that refutes a guarantee is already shown above the finding.
    agreed = [verdict.words] if verdict and not verdict.refuted else []
    return Finding(
        text=" ".join(sentences(document)),
        terms=_terms(document),
        heading="What is guaranteed",
        caution=" ".join([*_guaranteed(document), *agreed]),
    )


def sentences(document: ReplayDocument) -> list[str]:
    """The results: a sentence for each seat, or for each reported privacy level."""
    if not document.several:
        return [sentence(group) for group in document.seats.values()]
    ends = list(reversed(levels.ends(document)))
    return [_at_level(document, level, first=level == ends[0]) for level in ends]


def sentence(attacks: Sequence[Attack]) -> str:
    """The strongest attack of one seat: how often it is right, at which price, against which guarantee."""
    best = figures.strongest(attacks)
    shown = best.tpr_at_fpr.get("0.01")
    rate = headline.telling(shown)
    caught = (
        f"finds {figures.percent(rate.value)} of the members at 1 % FPR ({figures.ends(rate, rate=True)})"
        if rate
        else f"has {headline.too_few(shown)} how many members it finds at 1 % FPR "
        f"({headline.needed(shown, 0.01)})"
    )
    area = (
        f"distinguishes members from non-members with AUC {figures.share(best.auc.value)} (95 % interval "
        f"{figures.ends(best.auc)})"
        if headline.telling(best.auc)
        else f"has {headline.too_few(best.auc)} whether it distinguishes members from non-members "
        f"(AUC between {figures.ends(best.auc).replace(' to ', ' and ')}; {headline.needed(best.auc)})"
    )
    return (
        f"{words.capital(figures.seat(best.seat))}, with the attack {best.name}, {area}, "
        f"{caught}, and {_untouched(best.model_accuracy)}; {_bounded(best)}."
    )


def _at_level(document: ReplayDocument, level: Level, *, first: bool) -> str:
    """The strongest attack of every seat at one level, and the model's accuracy there."""
    cells = {seat: group for (seat, at), group in document.cells.items() if at == level}
    strongest = map(figures.strongest, cells.values())
    parts = [_reached(best, place if first else None) for place, best in enumerate(strongest)]
    accuracies = {attack.model_accuracy.before for group in cells.values() for attack in group} - {None}
    # Attacks that began at other times attacked other models.
    quality = f"; the model's accuracy is {words.accuracy(accuracies.pop())}" if len(accuracies) == 1 else ""
    return f"{words.capital(levels.at(level))} {words.listed(parts)}{quality}."


def _reached(best: Attack, place: int | None) -> str:
    """The result of one seat; the first sentence (place 0) explains the figure."""
    if not headline.telling(best.auc):
        ends = figures.ends(best.auc).replace(" to ", " and ")
        bound = "" if best.epsilon is None else f"; {_bounded(best)}"
        return f"{figures.seat(best.seat)} has {headline.too_few(best.auc)} (AUC between {ends}{bound})"
    verbs = {None: "reaches", 0: "distinguishes members from non-members with"}
    verb, interval = verbs.get(place, "with"), "95 % interval " if place == 0 else ""
    notes = [f"{interval}{figures.ends(best.auc)}"]
    notes += [] if figures.from_guessing(best.auc) else ["not distinguishable from guessing"]
    notes += [] if best.epsilon is None else [_bounded(best)]
    return f"{figures.seat(best.seat)} {verb} AUC {figures.share(best.auc.value)} ({'; '.join(notes)})"


def _bounded(attack: Attack) -> str:
    if attack.guarantee is None or not attack.guarantee.holds:
        return "there is no guarantee against it"
    if attack.bound.auc is None:
        return "its guarantee bounds no attack"
    return f"the guarantee allows AUC {figures.at_most(attack.bound.auc)} at most"


def _guaranteed(document: ReplayDocument) -> list[str]:
    """The guarantee against each seat at each reported level; equal ones together."""
    sentences: list[str] = []
    ends = levels.ends(document)
    bare = (CLIPPED, None) if document.several else ()
    for level in (level for level in ends if level not in bare):
        same: dict[str, list[str]] = {}
        for seat, group in ((seat, group) for (seat, at), group in document.cells.items() if at == level):
            same.setdefault(_promised(group[0]), []).append(figures.seat(seat))
        sentences += [f"Against {words.listed(who)}: {what}" for what, who in same.items()]
    sentences += [
        f"{words.capital(levels.at(level))}: no guarantee against anyone." for level in bare if level in ends
    ]
    return list(dict.fromkeys(sentences))


def _promised(attack: Attack) -> str:
    """The guarantee against an attack's seat, or "no guarantee" in words."""
    g = attack.guarantee
    if g is None:
        return "not stated."
    if g.epsilon is None or not g.holds:
        why = f", since {g.assumptions[0]}" if g.assumptions else ""
        return f"no guarantee{why}."
    allowed = f"AUC at most {figures.at_most(attack.bound.auc)}" if attack.bound.auc is not None else ""
    rate = figures.allowed(attack.bound, "0.01")
    if rate is not None:
        allowed += f", TPR at 1 % FPR at most {figures.at_most(rate, rate=True)}"
    return (
        f"epsilon {words.epsilon(g.epsilon)} at {words.terms([g])}"
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
    whose = "Shown is each seat's strongest attack at each level of privacy"
    if not document.several:
        whose = "Named is each seat's strongest attack"
    flattered = "the largest of several, which flatters it a little; its interval is for one attack"
    best = f"{whose} by its AUC, {flattered}." if several else ""
    area = "AUC is the share of pairs of a member and a non-member that are ranked right; guessing gives 0.5."
    intervals = "In brackets: 95 % intervals." if document.several else ""
    parts = (best, area, intervals, figures.covered(attacks), levels.terms(document))
    return " ".join(part for part in parts if part)
