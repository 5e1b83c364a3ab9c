"""The levels of privacy at which the same attacks were played, in words: epsilons, and no privacy."""

from __future__ import annotations

from fedprivacy.report import words
from fedprivacy.report.attacks import figures
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack


def name(level: float | None) -> str:
    """A level as part of a label.

    >>> name(8.0), name(None)
    ('epsilon 8', 'no privacy')
    """
    return "no privacy" if level is None else f"epsilon {words.epsilon(level)}"


def at(level: float | None) -> str:
    """A level as part of a sentence.

    >>> at(8.0), at(None)
    ('at epsilon 8', 'without privacy')
    """
    return "without privacy" if level is None else f"at {name(level)}"


def label(document: ReplayDocument, attack: Attack) -> str:
    """What an attack is called on a page: by its name, and where several levels were played by its level."""
    return f"{attack.name}, {name(attack.epsilon)}" if document.several else attack.name


def ends(document: ReplayDocument) -> list[float | None]:
    """The smallest and the largest epsilon, and no privacy: the levels that a short text tells."""
    private = [level for level in document.levels if level is not None]
    ends: list[float | None] = [*dict.fromkeys([private[0], private[-1]])] if private else []
    return ends + [None] * (None in document.levels)


def terms(document: ReplayDocument) -> str:
    """What the epsilons of labels stand with, and against whom; empty where no label has one."""
    if not document.several:
        return ""
    private = [one for one in document.attacks if one.epsilon is not None]
    found = [one.guarantee for one in private if one.guarantee is not None]
    each = dict.fromkeys(
        f"delta {words.number(g.delta)}, unit {g.unit}, adjacency {g.adjacency}"
        for g in found
        if None not in (g.delta, g.unit, g.adjacency)
    )
    held = {g.observer for g in found if g.holds}
    seats = [seat for seat in document.seats if any(one.seat == seat for one in private)]
    against = [figures.seat(seat) for seat in seats if seat in held]
    unheld = [figures.seat(seat) for seat in seats if seat not in held]
    said = f"Epsilon stands at {words.listed(each, 'or')}" if each else "Epsilon is that of the attacked run"
    parts = [f"against {words.listed(against)}"] if against else []
    parts += [f"and guarantees nothing against {words.listed(unheld)}"] if unheld else []
    return ", ".join([said, *parts]) + "."
