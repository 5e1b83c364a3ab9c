"""The settings of a comparison: shared ones, and those of single arms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.report import arm_labels, batches, page_end, public_records, words
from fedprivacy.report.blocks import Block, Details, Facts, Table
from fedprivacy.report.observer_wording import TRAINING

OF_EACH_ARM = ("scaling", "low", "high", "cut")  # keys of the data that a trust model may set otherwise
SHOWN_APART = ("clients", "public_fraction")


def blocks(document: CompareDocument) -> list[Block | Details]:
    """The data, clients and model of all arms, then a column for each arm."""
    shared = _shared(document)
    return [*([Facts(shared)] if shared else []), _by_arm(document)]


def _shared(document: CompareDocument) -> list[tuple[str, str]]:
    data = document.scenario.get("data")
    data = data if isinstance(data, Mapping) else {}
    clients = _each(cell.population for cell in document.cells)
    if clients == "—":  # an older record
        clients = _each([data.get("clients")])
    fraction = data.get("public_fraction")
    facts = (
        ("Data set", page_end.flat(data, (*OF_EACH_ARM, *SHOWN_APART))),
        ("Clients", clients if clients != "—" else ""),
        ("Public part", "" if fraction is None else public_records.share_of(data) or "none"),
        *((name.capitalize(), _section(document, name)) for name in ("model", "evaluation")),
    )
    return [(name, value) for name, value in facts if value]


def _section(document: CompareDocument, name: str) -> str:
    part = document.scenario.get(name)
    return page_end.flat(part) if isinstance(part, Mapping) else ""


def _by_arm(document: CompareDocument) -> Table:
    """A column for each arm: the settings of its runs."""
    shown = {arm: cells for arm in document.arms if (cells := document.of(arm))}
    facts: dict[str, Callable[[list[Cell]], str]] = {
        "Rounds": lambda cells: _each(cell.rounds for cell in cells),
        "Rounds until early stopping, each seed": _rounds_completed,
        "Batches of records": lambda cells: _each(batches.describe(cell.batches) or None for cell in cells),
        "Sampling": lambda cells: _each(words.sampling(c.sampling or _sampling_stated(c)) for c in cells),
        "Most answers of one client": lambda cells: _each(cell.max_participations for cell in cells),
        "Scaling of records": lambda cells: _each(cell.scaling for cell in cells),
        "Clipping norm": lambda cells: _each(cell.clipping_norm for cell in cells),
        "Mechanism and noise": _noise,
        "Inside each client": lambda cells: _each(_inside(cell) or None for cell in cells),
        "At the server": lambda cells: _each(page_end.flat(c.server, ("rounds",)) or None for c in cells),
    }
    rows = [("Who adds the noise", *(_adds_noise(arm, cells) for arm, cells in shown.items()))]
    if any(arm.unit for arm in shown):
        rows.append(("Unit of privacy", *(words.UNITS.get(arm.unit or "", "—") for arm in shown)))
    rows += [(name, *map(fact, shown.values())) for name, fact in facts.items()]
    epsilon_terms = words.terms(document.guarantees())
    caption = arm_labels.NOISE
    if epsilon_terms:
        caption += f" Each epsilon: {epsilon_terms}, against the observers named above."
    filled = [row for row in rows if any(value != "—" for value in row[1:])]
    return Table(caption, ("", *map(arm_labels.arm, shown)), filled, stacked=True)


def _adds_noise(arm: Arm, cells: Sequence[Cell]) -> str:
    unit = arm.unit or next((cell.unit for cell in cells), None)
    return TRAINING.of(unit).noise.get(arm.trust, "—")


def _inside(cell: Cell) -> str:
    """The settings of the clients' training that have an effect."""
    return page_end.flat(cell.training, batches.without_effect(cell.unit))


def _rounds_completed(cells: Sequence[Cell]) -> str:
    """After how many rounds early stopping ended runs, a line for each epsilon; a dash where it did not."""
    lines = [
        (f"At epsilon {words.target(cell.epsilon)}: " if cell.epsilon else "")
        + words.listed(f"{count:,}" for count in cell.rounds_played)
        for cell in cells
        if cell.ended_early
    ]
    return "\n".join(lines) or "—"


def _sampling_stated(cell: Cell) -> Any:
    return next((g.sampling for g in cell.guarantees if g.sampling), None)


def _each(values: Iterable[Any]) -> str:
    """The value that all cells share, or all their values."""
    return ", ".join(dict.fromkeys(page_end.plain(value) for value in values if value is not None)) or "—"


def _noise(cells: Sequence[Cell]) -> str:
    """The mechanism and its noise, a line for each epsilon."""
    lines = []
    for cell in cells:
        noise = arm_labels.noise(cell.noise, cell.noise_multiplier)
        text = ", ".join(
            part for part in (arm_labels.mechanism(cell.mechanism), noise) if part and part != "—"
        )
        if text:
            lines.append((f"At epsilon {words.target(cell.epsilon)}: " if cell.epsilon else "") + text)
    return "\n".join(dict.fromkeys(lines)) or "—"
