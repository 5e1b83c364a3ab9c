"""The finding of a comparison: what it showed, in a few sentences with numbers and intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedprivacy.documents.headline import headline
from fedprivacy.io.percentages import percent
from fedprivacy.mechanisms.registry import title
from fedprivacy.records.seed_statistics import Difference, difference

Cell = Mapping[str, Any]
COMPARED = ("central", "distributed", "local")
AUTO = "auto"


def finding(cells: Sequence[Cell]) -> str:
    """The accuracy that local and distributed cost against central, with intervals over paired seeds.

    Where the interval of a difference covers 0, it says that no difference can be told, and where it is
    `Difference.vague`, that the seeds are too few. Where there are several local mechanisms, `auto` stands
    for local, which was chosen without any data, or else the first one named; a second sentence says what
    each reaches at the largest epsilon that several have.

    Of several units of privacy each is spoken of by itself at the largest epsilon, trust models compared
    within a unit unless none of its models has learned anything; then what it costs to protect clients and
    not records alone.

    Args:
        cells: The cells of a compare document that have finished.
    """
    cells = [cell for cell in cells if headline(cell) is not None]
    without = [
        f"without any noise the model reaches {_reached(cell)}" for cell in cells if cell["trust"] == "none"
    ]
    noisy: dict[str | None, list[Cell]] = {}
    for cell in cells:
        if cell["trust"] != "none":
            noisy.setdefault(cell.get("unit"), []).append(cell)
    if len(noisy) < 2:
        (cells_of_unit,) = noisy.values() or [[]]
        sentences = [_sentence([*_costs(cells_of_unit, _ends), *without]), *_best(cells_of_unit)]
    else:
        sentences = []
        for unit, cells_of_unit in noisy.items():
            compared = _sentence([f"with unit {unit} {'; '.join(_costs(cells_of_unit, _widest))}"])
            hopeless = _hopeless(str(unit), cells_of_unit)
            sentences += [hopeless] if hopeless else [compared, *_best(cells_of_unit)]
        sentences += [*_change_of_unit(noisy), _sentence(without)]
    return _once(" ".join(filter(None, sentences))) or "No cell of the comparison has finished."


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _spoken(cells: Sequence[Cell]) -> dict[tuple[str, float], Cell]:
    """The cells by trust model and epsilon; of several local mechanisms the one that stands for local."""
    requested = _requested_mechanisms(cells)
    stands = AUTO if AUTO in requested else next(iter(requested), None)
    return {
        (cell["trust"], cell["epsilon"]): cell
        for cell in cells
        if cell["trust"] != "local" or cell.get("asked") == stands
    }


def _requested_mechanisms(cells: Sequence[Cell]) -> list[str | None]:
    return list(dict.fromkeys(cell.get("asked") for cell in cells if cell["trust"] == "local"))


def _change_of_unit(noisy: Mapping[str | None, Sequence[Cell]]) -> list[str]:
    """The accuracy cost, under each trust model, of protecting clients instead of records."""
    clients, records = (_spoken(noisy.get(unit, [])) for unit in ("client", "example"))
    sentences = []
    for trust in COMPARED:
        changes = {
            e: gap
            for kind, e in clients
            if kind == trust and (kind, e) in records
            if (gap := difference(records[kind, e], clients[kind, e])) is not None
        }
        if changes:
            costs = _differences(changes, _widest(changes), "with unit example")
            sentences.append(f"Protecting a client and not a record alone ({trust}) {costs}.")
    return sentences


def _hopeless(unit: str, cells: Sequence[Cell]) -> str:
    """A sentence if no model of this unit beats always predicting one class; else nothing."""
    classes = [cell.get("per_class") or [] for cell in cells]
    records = [interval["records"] for interval in next(iter(classes), [])]
    if not records or not sum(records):
        return ""
    always = max(records) / sum(records)
    accuracies = [cell["accuracy"] for cell in cells]
    if any(
        (interval["mean"] if interval["low"] is None else interval["low"]) > always for interval in accuracies
    ):
        return ""
    plainly = all(interval["mean"] <= always for interval in accuracies)
    better = "is more accurate" if plainly else "can be told to be more accurate"
    clients = f" ({cells[0]['population']:,} clients)" if cells[0].get("population") else ""
    return (
        f"With unit {unit}{clients} no epsilon here gives a model that {better} than naming the most "
        f"frequent class every time ({percent(always)})."
    )


def _once(text: str) -> str:
    """The number of seeds at its first mention, and at a change."""
    counts = re.findall(r" over \d+ paired seeds", text)
    if len(set(counts)) != 1:
        return text
    before, number, after = text.partition(counts[0])
    return before + number + after.replace(number, "")


def _ends(differences: Mapping[float, Difference]) -> list[float]:
    """The smallest and the largest epsilon."""
    return list(dict.fromkeys((min(differences), max(differences))))


def _widest(differences: Mapping[float, Difference]) -> list[float]:
    """The largest epsilon, where the noise disturbs least."""
    return [max(differences)]


def _costs(cells: Sequence[Cell], choose: Callable[[Mapping[float, Difference]], list[float]]) -> list[str]:
    """Local and distributed against central at some of their epsilons, or the available ones."""
    spoken, several = _spoken(cells), len(_requested_mechanisms(cells)) > 1
    differences = _behind_central(spoken, "local")
    shared = _behind_central(spoken, "distributed")
    of_sums = "not showing the server any update (distributed)"
    costs = [f"{of_sums} {_differences(shared, choose(shared), 'under central')}"] if shared else []
    if not differences and shared:
        return costs
    if not differences:
        parts = []
        for trust in COMPARED:
            known = sorted(e for kind, e in spoken if kind == trust)
            for e in known[-1:]:
                cell = spoken[trust, e]
                by = f" ({title(cell['mechanism'])})" if several and trust == "local" else ""
                parts.append(f"{trust}{by} reaches {_reached(cell)} at epsilon {e:g}")
        return parts
    shown = choose(differences)
    ran = {e: title(spoken["local", e]["mechanism"]) if several else "" for e in shown}
    names = list(dict.fromkeys(ran.values()))
    suffix = f", {names[0]}" if names[0] and len(names) == 1 else ""
    of_local = _differences(differences, shown, "under central", ran if len(names) > 1 else {})
    return [f"not having to trust the server (local{suffix}) {of_local}", *costs]


def _behind_central(spoken: Mapping[tuple[str, float], Cell], trust: str) -> dict[float, Difference]:
    """The differences of a trust model to central at the epsilons that both have."""
    return {
        e: gap
        for kind, e in spoken
        if kind == trust and ("central", e) in spoken
        if (gap := difference(spoken["central", e], spoken[trust, e])) is not None
    }


def _differences(
    differences: Mapping[float, Difference],
    shown: Sequence[float],
    other: str,
    ran: Mapping[float, str] | None = None,
) -> str:
    """`costs 70.0 points at epsilon 1 (20.0 % against 90.0 % ...; 95 % interval ...) and ...`.

    Args:
        differences: By epsilon the accuracy elsewhere less that of what is spoken of.
        shown: The epsilons to speak of.
        other: Where elsewhere is, in words.
        ran: By epsilon the mechanism of what is spoken of, where it is named.
    """
    costs, before = [], ""
    for e in shown:
        gap, by = differences[e], f"{ran[e]} " if ran else ""
        verb, amount = "costs" if gap.points >= 0 else "gains", f"{abs(gap.points):.1f} points"
        uncertain = gap.interval()
        if gap.undecided:
            uncertain = f"a {verb[:-1]} of {amount}, {uncertain}"
            verb, amount = "makes", "no difference that can be told"
        elif gap.vague:
            uncertain = f"a {verb[:-1]} of {amount}, {uncertain}"
            amount = f"an amount that {gap.seeds} seeds are too few to tell"
        against = f"{by}{percent(gap.minus)} against {percent(gap.mean)} {other}"
        repeated = "" if verb == before else f"{verb} "
        costs.append(f"{repeated}{amount} at epsilon {e:g} ({against}; {uncertain})")
        before = verb
    return " and ".join(costs)


def _best(cells: Sequence[Cell]) -> list[str]:
    """The accuracy of the local mechanisms at the largest shared epsilon; empty for one mechanism.

    One of them is called the best only where its interval against each other one excludes 0.
    """
    by_epsilon: dict[float, list[Cell]] = {}
    for cell in (cell for cell in cells if cell["trust"] == "local"):
        by_epsilon.setdefault(cell["epsilon"], []).append(cell)
    compared = [e for e, group in by_epsilon.items() if len(group) > 1]
    if not compared:
        return []
    e = max(compared)
    ranked = sorted(by_epsilon[e], key=lambda cell: -headline(cell)["mean"])
    best = ranked[0]
    if len({cell["mechanism"] for cell in ranked}) == 1:
        each = [f"{_reached(cell)} {_by(cell)}" for cell in ranked]
        return [f"At epsilon {e:g} both local choices are {title(best['mechanism'])}: {' and '.join(each)}."]
    chosen = {cell["mechanism"] for cell in ranked if cell["asked"] == AUTO}
    names, others = {}, []
    for cell in ranked:
        ran = cell["mechanism"]
        if ran not in names:  # what auto chose may also stand there by its name
            names[ran] = title(ran) + (" (chosen by auto)" if ran in chosen else "")
            others.append((cell, difference(best, cell)))
    rest = [
        f"{names[cell['mechanism']]} {_reached(cell)}"
        + (f" ({abs(gap.points):.1f} points {gap.word}, {gap.interval()})" if gap else "")
        for cell, gap in others[1:]
    ]
    if all(gap is not None and gap.low is not None and gap.low > 0 for _, gap in others[1:]):
        lead = f"the best local mechanism is {names[best['mechanism']]}: it"
    else:
        lead = f"no local mechanism can be told to be better than all others: {names[best['mechanism']]}"
    return [f"At epsilon {e:g} {lead} reaches {_reached(best)}, {', '.join(rest)}."]


def _by(cell: Cell) -> str:
    return "chosen by auto" if cell["asked"] == AUTO else "by name"


def _reached(cell: Cell) -> str:
    return percent(headline(cell)["mean"])
