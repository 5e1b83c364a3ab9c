"""A study of private estimates as a plan of an account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.account.entry import Ledgers, PlannedWork
from fedprivacy.account.populations import PopulationIds
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.erm.study.approaches import cells_of
from fedprivacy.erm.study.claims import cell_claims
from fedprivacy.erm.study.people import Records
from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.scenario.erm import ErmScenario
from scenarios.budgets.operator_claims import as_operators

_LEAST = 2  # of study.repeats: their spread is measured
_MINIMISES = "the server of a study computes the exact minimum from all records"


def estimates_work(scenario: ErmScenario, people: Records, noise_key: str) -> PlannedWork:
    """Returns what a study of private estimates releases: each estimate of each cell.

    Args:
        scenario: The study's scenario.
        people: Its records.
        noise_key: The study's (`study_streams`).

    Raises:
        InputError: no event is known for an estimate.
    """
    claims, refused = _claims_of_cells(scenario)
    if not claims:
        raise InputError(f"{scenario.name}: no cell of the study can be estimated: {refused}")
    repeats = scenario.study.repeats
    trusts = " and ".join(dict.fromkeys(cell["outsider"]["trust"] for cell in claims))

    def ledgers(count: int) -> Ledgers:
        return (
            {
                "unit": scenario.privacy.unit,
                "adjacency": scenario.privacy.adjacency,
                "trust": trusts,
                "rounds": count * len(claims),
                "sampling": "as each approach draws records",
                "claims": [_of_study(claims, observer, count) for observer in OBSERVERS],
            },
        )

    work = PlannedWork(
        name=scenario.name,
        work="estimates",
        ledgers=ledgers(repeats),
        population=PopulationIds(people.digest),
        seed=scenario.seed,
        noise_key=noise_key,
        size=repeats,
        noun="repeats",
        first=ledgers,
        settings=lambda count: f": --set study.repeats={count}",
        least=_LEAST,
        remedy="Leave out values of study.epsilons or study.records, or approaches.",
    )
    return as_operators(work, "estimates", _MINIMISES)


def _claims_of_cells(scenario: ErmScenario) -> tuple[list[dict[str, Any]], str | None]:
    """The claims of the cells that are estimated, against the participant and the outsider."""
    cells, refused = [], None
    for cell in cells_of(scenario):
        # Noise of a silo that does not answer protects nobody: only a single answer is certain.
        stated = cell_claims(scenario, cell, None, present=1, absent=0, away=0.0)
        if stated["refused"] is not None:
            refused = stated["refused"]
            continue
        by_observer = {
            claim["observer"]: {**claim, "trust": guarantee["trust"], "assumptions": guarantee["assumptions"]}
            for claim, guarantee in zip(stated["claims"], stated["guarantees"], strict=True)
        }
        # Of a curator's estimate all others see the same.
        by_observer.setdefault("participant", by_observer["outsider"])
        if any(by_observer[observer]["event"] is None for observer in ("participant", "outsider")):
            raise InputError(
                f"--account: approaches.{cell.name}: its epsilon is known at its delta alone, which bounds no"
                " divergence: it cannot be added to others. Leave the approach out, or its Gaussian noise."
            )
        cells.append(by_observer)
    return cells, refused


def _of_study(cells: Sequence[dict[str, Any]], observer: str, count: int) -> dict[str, Any]:
    """The claim against an observer of `count` estimates of each cell."""
    if observer == "server":
        return {"observer": observer, "event": None, "assumptions": [_MINIMISES]}
    claims = [cell[observer] for cell in cells]
    events = [dp.SelfComposedDpEvent(from_json(claim["event"]), count) for claim in claims]
    texts = dict.fromkeys(text for claim in claims for text in claim["assumptions"])
    return {"observer": observer, "event": to_json(dp.ComposedDpEvent(events)), "assumptions": [*texts]}
