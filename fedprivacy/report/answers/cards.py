"""Three questions: what privacy costs, who is protected, and what an attacker would learn.

Whether somebody is protected is read from the guarantees of the document, never decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import ANSWER_WORDS, Answer, Card, Entry
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.protection import Protected

COST, WHO, LEARNED = "What does privacy cost?", "Who is protected?", "What would an attacker learn?"
MOST = 4  # lines of a card
BOUNDS = 3  # bounds on guesses of a card; of more, evenly spaced ones
NAME_WORDS, NAME_LETTERS = 4, 40  # of a name that somebody chose, in a sentence
NOTHING_HOLDS = "nobody has a guarantee"


def answer(
    sentence: str,
    value: str,
    label: str,
    cells: Sequence[Protected],
    cards: Sequence[Card],
    terms: str = "",
) -> Answer:
    """An answer whose sentence is short enough, with the terms of its epsilons.

    Args:
        sentence: One sentence; names in it went through `brief`.
        value: The number in focus.
        label: What the number is.
        cells: Whose guarantees have the epsilons.
        cards: The answers to the three questions.
        terms: Those of the epsilons, where others than guarantees are shown; empty: of the guarantees.
    """
    epsilon_terms = terms or words.terms(guarantees(cells))
    each = f"Each epsilon: {epsilon_terms}." if epsilon_terms else ""
    if any(g.holds and g.trust == "distributed" for g in guarantees(cells)):
        each += " Those of distributed trust hold if the sum is secure."
    return Answer(brief(sentence, ANSWER_WORDS, 400), value, label, each, cards)


def brief(name: str, most: int = NAME_WORDS, letters: int = NAME_LETTERS) -> str:
    """The first words of a text, so that a long one leaves a sentence short; "…" counts as a word.

    >>> brief("Which of these films have you seen?"), brief("seen")
    ('Which of these …', 'seen')
    """
    parts = name.split()
    text = name if len(parts) <= most else " ".join([*parts[: most - 1], "…"])
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def guarantees(cells: Iterable[Protected]) -> list[Guarantee]:
    """All guarantees of the cells."""
    return [g for cell in cells for g in cell.guarantees]


def against(cells: Sequence[Protected]) -> str:
    """The epsilon, and whom it holds against, as a clause of at most 15 words.

    >>> terms = {"delta": 1e-5, "unit": "client", "adjacency": "replace-one"}
    >>> from fedprivacy.documents.envelope import Arm
    >>> held = Guarantee(observer="outsider", epsilon=2.0, **terms)
    >>> against([Protected(Arm("central"), None, [held, Guarantee(observer="server")])])
    'epsilon 2 against outsiders, no guarantee against the server'
    """
    held = [g for g in guarantees(cells) if g.holds]
    if not held:
        return NOTHING_HOLDS
    largest = max(g.epsilon or 0.0 for g in held)
    same = all(g.epsilon == largest for g in held)
    protected = list(dict.fromkeys(g.observer for g in held))
    others = [name for name in _observers(cells) if name not in protected]
    text = f"epsilon {'' if same else 'at most '}{words.epsilon(largest)} against "
    text += _who(protected)
    return text + (f", no guarantee against {_who(others)}" if others else "")


def cost(lines: Sequence[Entry], note: str = "") -> Card:
    """What privacy costs, as the page of each kind knows it."""
    return Card(COST, list(lines)[:MOST], note)


def protected(cells: Sequence[Protected], note: str = "") -> Card:
    """A line for each observer: the epsilon against it and what it rules out, or no guarantee."""
    several = len(dict.fromkeys(arm_labels.trust(cell.arm) for cell in cells if cell.guarantees)) > 1
    lines = [_line(name, cells, several) for name in _observers(cells)]
    return Card(WHO, lines or [Entry("Nothing here states a guarantee")], note)


def learned(cells: Sequence[Protected], measured: Sequence[Entry] = ()) -> Card:
    """The bound on an attacker's guesses at each epsilon, below what attacks have measured."""
    held = [g for g in guarantees(cells) if g.holds]
    bare = [g for g in guarantees(cells) if not g.holds]
    several = len(cells) > 1
    lines = list(measured)
    for g in spaced(_weakest_each(cells), BOUNDS):
        alike = dict.fromkeys(o.observer for o in held if certainty.of(o) == certainty.of(g))
        note = _epsilon(g) if several else f"{_epsilon(g)}: {_who(list(alike))}"
        lines.append(Entry(words.capital(certainty.phrase(g)), note, certainty.level(certainty.of(g))))
    if bare:
        who = "where there is no guarantee" if several else f"to {_who(_observers_of(bare))}"
        lines.append(Entry("Possibly everything", who, "none"))
    changes = dict.fromkeys(words.change(g.adjacency, g.unit) for g in held)
    note = (
        f"Guesses at even odds between the data and the data after {words.listed(changes, 'or')}, by an "
        "attacker who knows everything else."
    )
    return Card(LEARNED, lines or [Entry("Nothing here states a bound")], note if held else "")


def _weakest_each(cells: Sequence[Protected]) -> list[Guarantee]:
    """The weakest guarantee at each requested epsilon; of a single result, each that differs."""
    groups: dict[float | None, list[Guarantee]] = {}
    for cell in cells:
        for g in cell.guarantees:
            if g.holds:
                groups.setdefault(cell.target if len(cells) > 1 else certainty.of(g), []).append(g)
    return sorted(map(weakest, groups.values()), key=certainty.of)


def level_word(g: Guarantee) -> str:
    """What a guarantee rules out, in words."""
    return certainty.WORDS[certainty.level(certainty.of(g), holds=g.holds)]


def weakest(held: Iterable[Guarantee]) -> Guarantee:
    """The guarantee that leaves an attacker the most."""
    return max(held, key=certainty.of)


def _line(observer: str, cells: Sequence[Protected], several: bool) -> Entry:
    """Who is protected from one observer; of several arms those that hold are named."""
    who = words.capital(f"from {_name(observer)}")
    seen = [(cell, g) for cell in cells for g in cell.guarantees if g.observer == observer]
    held = [(cell, g) for cell, g in seen if g.holds]
    if not held:
        return Entry(f"{who}: no guarantee", tone="none")
    # All trust models together, as on the terminal: the table has the epsilons of each.
    strictest = min((g for _, g in held), key=certainty.of)
    largest = weakest(g for _, g in held)
    notes = []
    if strictest.epsilon == largest.epsilon:
        text = f"{who}: {_epsilon(largest)}, {level_word(largest)}"
    else:
        text = f"{who}: {_epsilon(strictest)} to {words.epsilon(largest.epsilon)}"
        ends = [f"{level_word(g)} at {words.epsilon(g.epsilon)}" for g in (strictest, largest)]
        notes.append(level_word(largest) if level_word(strictest) == level_word(largest) else ", ".join(ends))
    if several:
        under = words.listed(_by_trust(held))
        bare = any(cell.arm.trust != "none" and not g.holds for cell, g in seen)
        notes.append(f"{under} only" if bare else under)
    elif len(held) < len(seen):
        notes.append("only in part: some have no guarantee")
    return Entry(text, words.capital("; ".join(notes)), certainty.level(certainty.of(largest)))


def _by_trust(held: Sequence[tuple[Protected, Guarantee]]) -> list[str]:
    """The trust models with a guarantee, each with its epsilons where they differ."""
    groups: dict[str, list[Guarantee]] = {}
    for cell, g in held:
        groups.setdefault(arm_labels.trust(cell.arm), []).append(g)
    ends = {name: (min(group, key=certainty.of), weakest(group)) for name, group in groups.items()}
    texts = {
        name: " to ".join(dict.fromkeys(words.epsilon(g.epsilon) for g in pair))
        for name, pair in ends.items()
    }
    if len(set(texts.values())) == 1:
        return list(texts)
    return [f"{name} {text}" for name, text in texts.items()]


def _epsilon(g: Guarantee) -> str:
    return f"epsilon\u00a0{words.epsilon(g.epsilon)}"


def _observers(cells: Sequence[Protected]) -> list[str]:
    return _observers_of(guarantees(cells))


def _observers_of(shown: Sequence[Guarantee]) -> list[str]:
    present = dict.fromkeys(g.observer for g in shown)
    return [*(name for name in OBSERVERS if name in present), *(n for n in present if n not in OBSERVERS)]


def _name(observer: str) -> str:
    return brief(words.observer(observer), 3)


def _who(observers: Sequence[str]) -> str:
    """Observers in a sentence; many are counted."""
    few = len(observers) <= len(OBSERVERS)
    return words.listed(map(_name, observers)) if few else f"{len(observers)} observers"
