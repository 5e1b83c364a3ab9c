"""The table of protection: a row for each trust model and unit, a column for each observer.

Every epsilon is printed with its delta, unit, adjacency and observer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.documents.envelope import Arm
from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Details, Entry, Group, Table, Text, Value
from fedprivacy.report.observer_wording import TRAINING, Wording

LISTED = 6  # epsilons that a cell of the table lists; of more, the smallest and the largest
Row = tuple[str, str | None]  # a trust model, and its unit where several are compared
ROUNDED = "Epsilons and factors are rounded up, never down."
GUESSES = (
    "How sure it leaves an attacker: below each epsilon stands in how many guesses someone is right at most "
    "who knows everything else and holds the data and the changed data equally likely, (e^epsilon + delta) / "
    "(1 + e^epsilon) (Kairouz, Oh and Viswanath 2015); a coin is right in 50 %."
)
BARS = (
    "Three bars: at most 60 % (strong). Two: 75 % (moderate). One: 95 % (weak). Empty ones: more than that."
)


@dataclass(frozen=True)
class Protected:
    """The guarantees of one arm at its target epsilon (None: no privacy)."""

    arm: Arm
    target: float | None
    guarantees: Sequence[Guarantee]


def blocks(cells: Sequence[Protected], uncovered: str, wording: Wording = TRAINING) -> list[Block | Details]:
    """The guarantees of a run (one cell) or of a comparison, as tables.

    Args:
        cells: The guarantees of each cell.
        uncovered: Of whom no guarantee speaks, since their data are public; empty where there is nobody.
        wording: The sentences that depend on the kind of release.
    """
    guarantees = [g for cell in cells for g in cell.guarantees]
    if not guarantees:
        return [Text("Nothing here has a result that states a guarantee for anyone.")]
    arms: dict[Row, list[Arm]] = {}
    for arm in dict.fromkeys(cell.arm for cell in cells if cell.guarantees):
        arms.setdefault((arm.trust, arm.unit), []).append(arm)
    present = dict.fromkeys(g.observer for g in guarantees)
    observers = [
        *(name for name in OBSERVERS if name in present),
        *(n for n in present if n not in OBSERVERS),
    ]
    epsilon_terms = words.terms(guarantees)
    shown: list[Block | Details] = [_matrix(cells, arms, observers, epsilon_terms, wording)]
    if uncovered and epsilon_terms:
        shown.append(Text(uncovered))
    held = {g.epsilon for g in guarantees if g.epsilon is not None and g.holds}
    epsilons = sorted({cell.target for cell in cells if cell.target} or held)
    if epsilons:
        changes = dict.fromkeys((g.adjacency, g.unit) for g in guarantees if g.holds)
        change = words.listed((words.change(*changed) for changed in changes), "or")
        factors = epsilons if len(epsilons) <= LISTED else [epsilons[0], epsilons[-1]]
        read = Text(words.how_to_read(factors, change, epsilon_terms))
        shown.append(
            Details(
                "How to read epsilon, and how sure it leaves an attacker", [read, Text(GUESSES), Text(BARS)]
            )
        )
    assumed = [
        (arm_labels.trust(group[0]), lines)
        for group in arms.values()
        if (lines := _assumptions([g for arm in group for g in _of(cells, arm)]))
    ]
    if len(assumed) > 2:
        assumed = _shared_once(assumed)
    if assumed:
        caption = "Assumptions: the guarantees hold only if all of these do."
        shown.append(Table(caption, ("Trust model", "Provided that"), assumed, stacked=True))
    if len(cells) > len(arms):
        shown.append(Details("Each requested epsilon", [_each(cells, observers, epsilon_terms)]))
    shown.append(Details("Every guarantee as a sentence, to quote", [_sentences(cells, wording)]))
    return shown


def _of(cells: Sequence[Protected], arm: Arm) -> list[Guarantee]:
    return [g for cell in cells if cell.arm == arm for g in cell.guarantees]


def _units(cells: Sequence[Protected]) -> list[str | None]:
    """The units of privacy of the protected arms, if any."""
    guarantees = [g for cell in cells for g in cell.guarantees]
    return list(dict.fromkeys(g.unit for g in [g for g in guarantees if g.holds] or guarantees))


def _matrix(
    cells: Sequence[Protected],
    arms: Mapping[Row, Sequence[Arm]],
    observers: Sequence[str],
    epsilon_terms: str,
    wording: Wording,
) -> Table:
    units = _units(cells)
    caption = f"Is {words.protected(units)} protected from this observer?"
    if epsilon_terms:
        caption += f" Each epsilon: {epsilon_terms}, against the observer of its column."
    seen = [f"{words.capital(words.observer(o))} {wording.sees[o]}." for o in observers if o in wording.sees]
    rows = []
    for (trust, unit), group in arms.items():
        noun = wording.of(unit or next(iter(units), None))
        note = noun.noise.get(trust, "") + (f" Protects {words.UNITS.get(unit, unit)}." if unit else "")
        entries = (
            _shared(
                {arm: _protection(_of(cells, arm), o, trust, noun.why) for arm in group},
                _protection([g for arm in group for g in _of(cells, arm)], o, trust, noun.why),
            )
            for o in observers
        )
        rows.append((Entry(arm_labels.trust(group[0]), note), *entries))
    head = ("Trust model", *(f"From {words.observer(name)}" for name in observers))
    return Table(" ".join([caption, *seen]), head, rows, stacked=True)


def _shared(entries: Mapping[Arm, Entry], together: Entry) -> Entry:
    """One entry for all arms of a trust model: shared parts once, others by mechanism.

    Args:
        entries: That of each arm.
        together: That of all arms as if they were one, for what is the same and for the weakest bound.
    """
    first, *others = entries.values()
    if all(entry == first for entry in others):
        return first
    same: dict[str, list[str]] = {}
    for arm, entry in entries.items():
        same.setdefault(f"{entry.text[:1].lower()}{entry.text[1:]}", []).append(
            arm_labels.mechanism_label(arm.mechanism or "")
        )
    lines = [f"{words.capital(words.listed(who))}: {text}" for text, who in same.items()]
    # The mark is that of the weakest; where one has no guarantee, none stands for all of them.
    held = all(entry.tone not in ("none", "bad", "") for entry in entries.values())
    alike = len({entry.tone for entry in entries.values()}) == 1
    return Entry("\n".join(lines), together.note, together.tone if held else first.tone if alike else "")


def _protection(
    guarantees: Sequence[Guarantee], observer: str, trust: str, consequences: Mapping[tuple[str, str], str]
) -> Entry:
    """The guarantee of one arm against one observer over all its epsilons, and the reason."""
    why = consequences.get((trust, observer), "")
    against = [g for g in guarantees if g.observer == observer]
    if not against:
        return Entry("Not stated")
    if not any(g.holds for g in against):
        reasons = dict.fromkeys(words.unprotected(g, consequences) for g in against)
        return Entry(words.NO_GUARANTEE, " ".join(filter(None, reasons)), "none")
    if not all(g.holds for g in against):
        return Entry("Only in part: see each epsilon below", why, "bad")
    strictest, weakest = min(against, key=certainty.of), max(against, key=certainty.of)
    leaves = words.capital(certainty.phrase(weakest))
    if certainty.of(strictest) < certainty.of(weakest):
        leaves = f"{leaves}, {certainty.percent(certainty.of(strictest))} at the strictest"
    level = certainty.level(certainty.of(weakest))
    return Entry(f"Epsilon {_range(against)}", f"{leaves} ({certainty.WORDS[level]}). {why}".strip(), level)


def spent(g: Guarantee | None, text: str | None = None) -> Entry:
    """An epsilon in a table, with how sure it leaves an attacker.

    Args:
        g: The guarantee; None where none is stated.
        text: The epsilon as the table prints it; None: as every page does.
    """
    if g is None:
        return Entry("—")
    if not g.holds:
        return Entry(text or words.NO_GUARANTEE, tone="none")
    level = certainty.level(certainty.of(g))
    return Entry(text or words.epsilon(g.epsilon), certainty.phrase(g), level)


def _range(guarantees: Sequence[Guarantee]) -> str:
    """All epsilons of the guarantees, or their range."""
    values = sorted({g.epsilon or 0.0 for g in guarantees})
    if len(values) > LISTED:
        return f"{words.epsilon(values[0])} to {words.epsilon(values[-1])}"
    return words.listed(dict.fromkeys(map(words.epsilon, values)))


def _assumptions(guarantees: Sequence[Guarantee]) -> tuple[str, ...]:
    """The assumptions of a trust model's guarantees, with the observer if not for all."""
    holding = [g for g in guarantees if g.holds]
    everyone = {g.observer for g in holding}
    lines = []
    for text in dict.fromkeys(assumption for g in holding for assumption in g.assumptions):
        needed = dict.fromkeys(g.observer for g in holding if text in g.assumptions)
        who = words.listed(map(words.observer, needed))
        lines.append(text + ("" if set(needed) == everyone else f" (against {who})"))
    return tuple(lines)


def _shared_once(assumed: Sequence[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """Shared assumptions in a first row, then the additional ones of each."""
    shared = tuple(line for line in assumed[0][1] if all(line in lines for _, lines in assumed))
    assumed_once = [(name, tuple(line for line in lines if line not in shared)) for name, lines in assumed]
    return [*([("All of them", shared)] if shared else []), *(entry for entry in assumed_once if entry[1])]


def _each(cells: Sequence[Protected], observers: Sequence[str], epsilon_terms: str) -> Table:
    """Each cell of a comparison in a row of its own; arms with the same rows share them."""
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    same: dict[tuple[str, tuple[tuple[Value, ...], ...]], list[Arm]] = {}
    for arm in arms:
        rest: list[tuple[Value, ...]] = []
        for cell in (cell for cell in cells if cell.arm == arm):
            against = {g.observer: g for g in cell.guarantees}
            rest.append((words.target(cell.target), *(spent(against.get(o)) for o in observers)))
        same.setdefault((arm.trust, tuple(rest)), []).append(arm)
    rows: list[Sequence[Value] | Group] = []
    for (_, alike), shared in same.items():
        rows += [Group(arm_labels.arms(shared, arms).replace("\n", "; ")), *alike]
    caption = f"{ROUNDED} Each epsilon: {epsilon_terms}, against the observer of its column."
    head = ("Requested epsilon", *(f"From {words.observer(name)}" for name in observers))
    return Table(caption, head, rows)


def _sentences(cells: Sequence[Protected], wording: Wording) -> Table:
    """Every guarantee; one that several arms of a trust model share is listed once."""
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    same: dict[tuple[Value, ...], list[Arm]] = {}
    for cell in cells:
        for g in cell.guarantees:
            row = (
                words.capital(words.observer(g.observer)),
                spent(g),
                f"delta {words.number(g.delta)}\n{g.unit}, {g.adjacency}" if g.holds else "—",
                g.words or words.meaning(g, wording.of(g.unit).why),
                (g.accountant or "—") if g.holds else "—",
            )
            shared = same.setdefault((cell.arm.trust, *row), [])
            shared += [] if cell.arm in shared else [cell.arm]
    rows = [(arm_labels.arms(shared, arms), *row) for (_, *row), shared in same.items()]
    epsilon_terms = words.terms([g for cell in cells for g in cell.guarantees])
    caption = ROUNDED + (f" Each epsilon: {epsilon_terms}, against its observer." if epsilon_terms else "")
    return Table(caption, ("Trust model", "Observer", "Epsilon", "At", "In words", "Accountant"), rows)
