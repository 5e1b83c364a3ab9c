"""The protection of each unit, and the meaning of a record's epsilon for a client."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.accounting.composition import group
from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.guarantee import Records
from fedprivacy.documents.run import RunDocument
from fedprivacy.errors import InputError
from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.report import words
from fedprivacy.report.blocks import Block, Details, Entry, Facts, Section, Table, Text, Value
from fedprivacy.report.protection import ROUNDED

PROTECTS = {
    "example": "One record: what an observer sees is nearly as probable if it changes, as epsilon says. A "
    "person or a hospital of many records is not protected as a whole: that it took part, and what its "
    "records have in common, may show.",
    "client": "One client with all its records: a person whose phone holds them, or a hospital with all its "
    "patients. That takes many clients: noise that hides one of few hides what all have in common, too.",
}
SAYS_NOTHING = "Says nothing"


def of_comparison(document: CompareDocument) -> list[Section]:
    """The protection of the compared units; no section if only clients are protected."""
    cells = [cell for cell in document.cells if cell.unit == "example"]
    sizes = next((cell.records_per_client for cell in cells if cell.records_per_client), None)
    guarantees = [g for cell in cells for g in cell.guarantees]
    units = document.units or ["client"]
    if "example" not in units:
        return []
    few = _noise_of_few([cell for cell in document.cells if cell.unit == "client"])
    return _section(units, guarantees, sizes, few)


def of_run(document: RunDocument) -> list[Section]:
    """The protection of a run's unit, if it is a record and there is noise."""
    privacy = document.privacy
    if privacy.unit != "example" or not any(g.holds for g in privacy.guarantees):
        return []
    return _section(["example"], privacy.guarantees, privacy.records_per_client, "")


def _section(
    units: Sequence[str], guarantees: Sequence[Guarantee], sizes: Records | None, few: str
) -> list[Section]:
    blocks: list[Block | Details] = [
        Facts([(f"Unit {unit}", PROTECTS.get(unit, f"One {unit}.")) for unit in units])
    ]
    blocks += [Text(few)] if few else []
    held = {g.epsilon: g for g in guarantees if g.holds and g.epsilon is not None and g.unit == "example"}
    if sizes is not None and held:
        blocks += _of_clients([held[epsilon] for epsilon in sorted(held)], sizes)
    heading = "What is protected: a record, or a client" if len(units) > 1 else "What is protected: a record"
    return [Section("units", heading, blocks)]


def _of_clients(held: Sequence[Guarantee], sizes: Records) -> list[Block | Details]:
    """The meaning of a record's epsilon for the smallest, median and largest client."""
    rows: dict[str, Sequence[Value]] = {}
    for g in held:  # of those that are printed alike the largest
        spent = words.epsilon(g.epsilon)
        rows[spent] = (spent, *(_together(g, records) for records in sizes.named.values()))
    caption = (
        "What the epsilon of one record promises a client all of whose m records change at once, by group "
        "privacy (Dwork and Roth 2014, Theorem 2.2): m epsilon at a delta of m e^((m - 1) epsilon) delta. "
        "How many records each client has is taken as public. Each epsilon of one record: "
        f"{words.terms(held)}, against the observers named above. {ROUNDED}"
    )
    head = (
        "Epsilon of one record",
        *(f"{client} ({words.counted(records, 'record')})" for client, records in sizes.named.items()),
    )
    entries = [entry for row in rows.values() for entry in row[1:] if isinstance(entry, Entry)]
    nothing = [entry.text == SAYS_NOTHING for entry in entries]
    blocks: list[Block | Details] = [Table(caption, head, list(rows.values()), stacked=True)]
    if all(nothing):
        blocks.append(
            Text(
                "So the guarantee for records says nothing about any of these clients as a whole. Who has to "
                'protect them needs unit = "client".'
            )
        )
    return blocks


def _together(g: Guarantee, records: int) -> Entry:
    """The guarantee for a group of records, from that for one."""
    assert g.epsilon is not None
    assert g.delta is not None
    try:
        epsilon, delta = group(g.epsilon, g.delta, records)
    except InputError:  # an epsilon or delta outside the range of `group`
        epsilon, delta = math.inf, 1.0
    if delta >= 1 or not math.isfinite(epsilon):
        return Entry(SAYS_NOTHING, "its delta would be 1 or more", "bad")
    together = g.model_copy(update={"epsilon": epsilon, "delta": delta})
    note = f"at delta {_rounded_up(delta)}; {certainty.phrase(together)}"
    return Entry(f"Epsilon {words.epsilon(epsilon)}", note, certainty.level(certainty.of(together)))


def _rounded_up(delta: float) -> str:
    """A delta as epsilons are printed: never smaller than it is."""
    return words.epsilon(delta).replace("e-0", "e-")


def _noise_of_few(cells: Sequence[Cell]) -> str:
    """The noise in the mean update of a round where whole clients are protected; empty where unknown."""
    ratios = []
    for cell in cells:
        cohort = _cohort(cell)
        alike = cell.mechanism != BandedGaussian.name  # else no two rounds have the same
        if cell.noise_multiplier is not None and cohort and alike and cell.trust in ("central", "local"):
            spread = cohort if cell.trust == "central" else math.sqrt(cohort)
            ratios.append((cell.noise_multiplier / spread, cohort))
    if not ratios:
        return ""
    least, most = min(ratios)[0], max(ratios)[0]
    cohorts = sorted({cohort for _, cohort in ratios})
    clients = " or ".join(words.number(cohort) for cohort in cohorts)
    noise = " to ".join(dict.fromkeys(words.number(ratio, 3) for ratio in (least, most)))
    return (
        f"With unit client the mean update of a round of {clients} clients, which is at most one clipping "
        f"norm long, carries noise of standard deviation {noise} clipping norms in each of its "
        "coordinates, as the trust model and the budget ask for."
    )


def _cohort(cell: Cell) -> float | None:
    """The mean number of clients in a round; None where it is not known."""
    how = cell.sampling if isinstance(cell.sampling, dict) else {}
    rate, cohort, population = how.get("rate"), how.get("cohort"), cell.population
    if how.get("name") in ("poisson", "cyclic-poisson") and isinstance(rate, (int, float)) and population:
        return rate * population
    if how.get("name") in ("fixed", "separated") and isinstance(cohort, int):
        return float(cohort)
    return float(population) if how.get("name") == "all" and population else None
