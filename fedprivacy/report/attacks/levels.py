"""Describes the privacy levels of a replay: epsilons, clipping alone, none."""

from __future__ import annotations

from fedprivacy.documents.attack import CLIPPED, Attack, Level
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.attacks import figures

CLIPPING = "clipping alone (a heuristic, no epsilon)"


def name(level: Level) -> str:
    """A level as part of a label.

    >>> name(8.0), name("clipped"), name(None)
    ('epsilon 8', 'clipping alone (a heuristic, no epsilon)', 'no privacy')
    """
    if level == CLIPPED:
        return CLIPPING
    return "no privacy" if level is None else f"epsilon {words.epsilon(level)}"


def at(level: Level) -> str:
    """A level as part of a sentence.

    >>> at(8.0), at("clipped"), at(None)
    ('at epsilon 8', 'with clipping alone (a heuristic, no epsilon)', 'without privacy')
    """
    if level == CLIPPED:
        return f"with {CLIPPING}"
    return "without privacy" if level is None else f"at {name(level)}"


def label(document: ReplayDocument, attack: Attack) -> str:
    """The label of an attack on a page: its name, and its privacy level if there are several."""
    return f"{attack.name}, {name(attack.level)}" if document.several else attack.name


def ends(document: ReplayDocument) -> list[Level]:
    """The levels in short texts: smallest and largest epsilon, clipping alone, no privacy."""
    private = [level for level in document.levels if isinstance(level, float)]
    return [
        *dict.fromkeys([*private[:1], *private[-1:]]),
        *(level for level in document.levels if not isinstance(level, float)),
    ]


def terms(document: ReplayDocument) -> str:
    """The terms and observers of the epsilons in labels; empty without any."""
    if not document.several:
        return ""
    private = [attack for attack in document.completed if attack.epsilon is not None]
    guarantees = [attack.guarantee for attack in private if attack.guarantee is not None]
    each = dict.fromkeys(
        f"delta {words.delta(g.delta)}, unit {g.unit}, adjacency {g.adjacency}"
        for g in guarantees
        if None not in (g.delta, g.unit, g.adjacency)
    )
    held = {g.observer for g in guarantees if g.holds}
    seats = list(dict.fromkeys(attack.seat for attack in private))
    against = [figures.seat(seat) for seat in seats if seat in held]
    unheld = [figures.seat(seat) for seat in seats if seat not in held]
    text = f"Each epsilon: {words.listed(each, 'or')}" if each else "Each epsilon is that of the attacked run"
    parts = [f"against {words.listed(against)}"] if against else []
    parts += [f"and guarantees nothing against {words.listed(unheld)}"] if unheld else []
    return ", ".join([text, *parts]) + "."
