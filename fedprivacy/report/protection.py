"""Who is protected from whom: the guarantees of a run as cards, those of a comparison as tables.

Every epsilon that is printed here stands with its delta, unit, adjacency and observer.
"""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Card, Cards, Details, Entry, Items, Table, Text
from fedprivacy.report.documents import CompareDocument, Guarantee

OBSERVERS = ("server", "participant", "outsider")
# Above it the bound on the odds (e^20, 5e8) says nothing that anybody would call protection.
USEFUL_EPSILON = 20.0
ROUNDED = "Epsilons and factors are rounded up, never down."


def cards(guarantees: Sequence[Guarantee]) -> list[Block | Details]:
    """The guarantees of one run, one card for each observer."""
    if not guarantees:
        return [Text("This record states no guarantee for anyone.")]
    blocks: list[Block | Details] = [Cards([_card(g) for g in guarantees], "Provided that")]
    if any(g.holds for g in guarantees):
        blocks.append(Text(ROUNDED, "note"))
    sentences = [g.words for g in guarantees if g.words]
    if sentences:
        blocks.append(Details("The guarantees as sentences, to quote", [Items(sentences)]))
    return blocks


def compared(document: CompareDocument) -> list[Block | Details]:
    """The guarantees of a comparison: an observer in each row, a trust model in each column."""
    guarantees = document.guarantees()
    trusts = [trust for trust in document.trusts if document.guarantees(trust)]
    if not trusts:
        return [Text("No cell of this comparison has a result, so no guarantee is stated.")]
    stands_with = words.terms(guarantees)
    caption = "Is a client protected from this observer?"
    if stands_with:
        caption += f" Epsilon stands at {stands_with}, against the observer of its row."
    found = dict.fromkeys(g.observer for g in guarantees)
    observers = [*(name for name in OBSERVERS if name in found), *(n for n in found if n not in OBSERVERS)]
    rows = [
        (
            Entry(f"From {words.observer(observer)}", words.SEES.get(observer, "")),
            *(_protection(document, trust, observer) for trust in trusts),
        )
        for observer in observers
    ]
    head = ["A client is protected …", *map(words.trust, trusts)]
    blocks: list[Block | Details] = [Table(caption, head, rows, stacked=True)]
    assumed = [
        (words.trust(trust), lines) for trust in trusts if (lines := _assumptions(document.guarantees(trust)))
    ]
    if assumed:
        head = ["Trust model", "The guarantees hold provided that"]
        blocks.append(Table("", head, assumed, stacked=True))
    epsilons = sorted({cell.epsilon for cell in document.cells if cell.epsilon})
    if stands_with and epsilons:
        blocks.append(Text(words.how_to_read(epsilons, stands_with)))
    blocks.append(Details("Every guarantee, one by one", [_one_by_one(document, trusts)]))
    return blocks


def _card(g: Guarantee) -> Card:
    title = words.capital(words.observer(g.observer))
    sees = words.SEES.get(g.observer, "")
    if not g.holds:
        return Card(title, sees, words.NO_GUARANTEE, "", "bad", words.meaning(g))
    terms = [words.terms([g]), words.sampling(g.sampling) if g.sampling else ""]
    terms.append(f"{g.rounds:,} rounds" if g.rounds is not None else "")
    terms.append(f"{g.accountant} accountant" if g.accountant else "")
    return Card(
        title=title,
        subtitle=sees,
        headline=f"epsilon {words.epsilon(g.epsilon)}",
        terms="; ".join(filter(None, terms)),
        tone=_tone([g]),
        text=words.meaning(g),
        items=g.assumptions,
    )


def _protection(document: CompareDocument, trust: str, observer: str) -> Entry:
    """What one trust model guarantees against one observer, over all its epsilons."""
    found = [g for g in document.guarantees(trust) if g.observer == observer]
    why = words.WHY.get((trust, observer), "")
    if not found:
        return Entry("Not stated")
    if not any(g.holds for g in found):
        return Entry(words.NO_GUARANTEE, why, "bad")
    if not all(g.holds for g in found):
        return Entry("Only in part: see every guarantee below", why, "bad")
    values = words.listed(dict.fromkeys(words.epsilon(g.epsilon) for g in found))
    tone = _tone(found)
    return Entry("Protected" if tone else "Bounded", f"epsilon {values}. {why}".strip(), tone)


def _tone(found: Sequence[Guarantee]) -> str:
    """No tick of approval where an epsilon allows more than it forbids."""
    return "good" if all((g.epsilon or 0.0) <= USEFUL_EPSILON for g in found) else ""


def _assumptions(guarantees: Sequence[Guarantee]) -> tuple[str, ...]:
    """What the guarantees of a trust model rest on; against whom, where it is not for all."""
    holding = [g for g in guarantees if g.holds]
    everyone = {g.observer for g in holding}
    lines = []
    for text in dict.fromkeys(assumption for g in holding for assumption in g.assumptions):
        needed = dict.fromkeys(g.observer for g in holding if text in g.assumptions)
        who = words.listed(map(words.observer, needed))
        lines.append(text + ("" if set(needed) == everyone else f" (against {who})"))
    return tuple(lines)


def _one_by_one(document: CompareDocument, trusts: Sequence[str]) -> Table:
    rows = [
        (
            words.trust(trust),
            words.capital(words.observer(g.observer)),
            words.epsilon(g.epsilon),
            f"delta {words.number(g.delta)}\n{g.unit}, {g.adjacency}" if g.holds else "—",
            g.words or words.meaning(g),
            (g.accountant or "—") if g.holds else "—",
        )
        for trust in trusts
        for g in document.guarantees(trust)
    ]
    head = ("Trust model", "Observer", "Epsilon", "At", "In words", "Accountant")
    return Table(ROUNDED, head, rows)
