"""The finding of a comparison: what it showed, in a few sentences with numbers and intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedprivacy.mechanisms.registry import title
from fedprivacy.records.seed_statistics import Difference, difference

Cell = Mapping[str, Any]
COMPARED = ("central", "local")
AUTO = "auto"


def finding(cells: Sequence[Cell]) -> str:
    """What local costs against central, in a sentence with numbers and their intervals over paired seeds.

    Where the interval of a difference covers 0, it says that no difference can be told. Where there are
    several local mechanisms, `auto` stands for local, which was chosen without any data, or else the first
    one named; a second sentence says what each reaches at the largest epsilon that several have.

    Of several units of privacy each is spoken of by itself at the largest epsilon, trust models compared
    within a unit unless none of its models has learned anything; then what it costs to protect clients and
    not records alone.

    Args:
        cells: The cells of a compare document that have finished.
    """
    without = [
        f"without any noise the model reaches {_reached(cell)}" for cell in cells if cell["trust"] == "none"
    ]
    noisy: dict[str | None, list[Cell]] = {}
    for cell in cells:
        if cell["trust"] != "none":
            noisy.setdefault(cell.get("unit"), []).append(cell)
    if len(noisy) < 2:
        (own,) = noisy.values() or [[]]
        said = [_sentence([*_costs(own, _ends), *without]), *_best(own)]
    else:
        said = []
        for unit, own in noisy.items():
            compared = _sentence([f"with unit {unit} {'; '.join(_costs(own, _widest))}"])
            hopeless = _hopeless(str(unit), own)
            said += [hopeless] if hopeless else [compared, *_best(own)]
        said += [*_change_of_unit(noisy), _sentence(without)]
    return _once(" ".join(filter(None, said))) or "No cell of the comparison has finished."


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _spoken(cells: Sequence[Cell]) -> dict[tuple[str, float], Cell]:
    """The cells by trust model and epsilon; of several local mechanisms the one that stands for local."""
    asked = _asked(cells)
    stands = AUTO if AUTO in asked else next(iter(asked), None)
    return {
        (cell["trust"], cell["epsilon"]): cell
        for cell in cells
        if cell["trust"] != "local" or cell.get("asked") == stands
    }


def _asked(cells: Sequence[Cell]) -> list[str | None]:
    return list(dict.fromkeys(cell.get("asked") for cell in cells if cell["trust"] == "local"))


def _change_of_unit(noisy: Mapping[str | None, Sequence[Cell]]) -> list[str]:
    """What it costs under each trust model to protect whole clients and not single records alone."""
    clients, records = (_spoken(noisy.get(unit, [])) for unit in ("client", "example"))
    said = []
    for trust in COMPARED:
        found = {
            e: gap
            for kind, e in clients
            if kind == trust and (kind, e) in records
            if (gap := difference(records[kind, e], clients[kind, e])) is not None
        }
        if found:
            costs = _differences(found, _widest(found), "with unit example")
            said.append(f"Protecting a client and not a record alone ({trust}) {costs}.")
    return said


def _hopeless(unit: str, cells: Sequence[Cell]) -> str:
    """A sentence where no model with this unit is better than one that always says the same; else nothing."""
    classes = [cell.get("per_class") or [] for cell in cells]
    records = [one["records"] for one in next(iter(classes), [])]
    if not records or not sum(records):
        return ""
    always = max(records) / sum(records)
    found = [cell["accuracy"] for cell in cells]
    if any((one["mean"] if one["low"] is None else one["low"]) > always for one in found):
        return ""
    plainly = all(one["mean"] <= always for one in found)
    better = "is more accurate" if plainly else "can be told to be more accurate"
    clients = f" ({cells[0]['population']:,} clients)" if cells[0].get("population") else ""
    return (
        f"With unit {unit}{clients} no epsilon here gives a model that {better} than naming the most "
        f"frequent class every time ({_percent(always)})."
    )


def _once(text: str) -> str:
    """The number of seeds where it stands first, unless it is another one later on."""
    said = re.findall(r" over \d+ paired seeds", text)
    if len(set(said)) != 1:
        return text
    before, number, after = text.partition(said[0])
    return before + number + after.replace(number, "")


def _ends(found: Mapping[float, Difference]) -> list[float]:
    """The smallest and the largest epsilon."""
    return list(dict.fromkeys((min(found), max(found))))


def _widest(found: Mapping[float, Difference]) -> list[float]:
    """The largest epsilon, where the noise disturbs least."""
    return [max(found)]


def _costs(cells: Sequence[Cell], choose: Callable[[Mapping[float, Difference]], list[float]]) -> list[str]:
    """Local against central at some of the epsilons that both have, or what there is of them."""
    spoken, several = _spoken(cells), len(_asked(cells)) > 1
    found = {
        e: gap
        for trust, e in spoken
        if trust == "local" and ("central", e) in spoken
        if (gap := difference(spoken["central", e], spoken["local", e])) is not None
    }
    if not found:
        parts = []
        for trust in COMPARED:
            known = sorted(e for kind, e in spoken if kind == trust)
            for e in known[-1:]:
                cell = spoken[trust, e]
                by = f" ({title(cell['mechanism'])})" if several and trust == "local" else ""
                parts.append(f"{trust}{by} reaches {_reached(cell)} at epsilon {e:g}")
        return parts
    shown = choose(found)
    ran = {e: title(spoken["local", e]["mechanism"]) if several else "" for e in shown}
    names = list(dict.fromkeys(ran.values()))
    one = f", {names[0]}" if names[0] and len(names) == 1 else ""
    costs = _differences(found, shown, "under central", ran if len(names) > 1 else {})
    return [f"not having to trust the server (local{one}) {costs}"]


def _differences(
    found: Mapping[float, Difference],
    shown: Sequence[float],
    other: str,
    ran: Mapping[float, str] | None = None,
) -> str:
    """`costs 70.0 points at epsilon 1 (20.0 % against 90.0 % ...; 95 % interval ...) and ...`.

    Args:
        found: By epsilon the accuracy elsewhere less that of what is spoken of.
        shown: The epsilons to speak of.
        other: Where elsewhere is, in words.
        ran: By epsilon the mechanism of what is spoken of, where it is named.
    """
    costs, before = [], ""
    for e in shown:
        gap, by = found[e], f"{ran[e]} " if ran else ""
        verb, said = "costs" if gap.points >= 0 else "gains", f"{abs(gap.points):.1f} points"
        uncertain = gap.interval()
        if gap.undecided:
            uncertain = f"a {verb[:-1]} of {said}, {uncertain}"
            verb, said = "makes", "no difference that can be told"
        against = f"{by}{_percent(gap.minus)} against {_percent(gap.mean)} {other}"
        repeated = "" if verb == before else f"{verb} "
        costs.append(f"{repeated}{said} at epsilon {e:g} ({against}; {uncertain})")
        before = verb
    return " and ".join(costs)


def _best(cells: Sequence[Cell]) -> list[str]:
    """What the local mechanisms reach at the largest epsilon that several have; nothing for one mechanism.

    One of them is called the best only where its interval against each other one excludes 0.
    """
    found: dict[float, list[Cell]] = {}
    for cell in (cell for cell in cells if cell["trust"] == "local"):
        found.setdefault(cell["epsilon"], []).append(cell)
    compared = [e for e, group in found.items() if len(group) > 1]
    if not compared:
        return []
    e = max(compared)
    ranked = sorted(found[e], key=lambda cell: -cell["accuracy"]["mean"])
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
    return _percent(cell["accuracy"]["mean"])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
