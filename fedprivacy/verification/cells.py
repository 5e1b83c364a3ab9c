"""Rebuilds the cells of a comparison of trust models from their runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.documents import comparison
from fedprivacy.documents.cell import Ablated, Gap
from fedprivacy.documents.cell import Cell as StoredCell
from fedprivacy.documents.headline import headline, primary_of, scored, task_of
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.guarantees.charge import under_way
from fedprivacy.models.metrics.registry import PRIMARY
from fedprivacy.records.comparison_summary import finding
from fedprivacy.records.limits import gaps, limiting
from fedprivacy.records.quality_statistics import quality_over_seeds
from fedprivacy.records.run_record import choice_notes, simulation_only
from fedprivacy.records.seed_statistics import (
    Difference,
    difference,
    interval,
    interval_words,
    mean_curve,
    mean_per_class,
    weakest,
)
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.cells import Corner, corners, options
from fedprivacy.scenario.limit_ablations import corners_of
from fedprivacy.scenario.sections import Privacy
from fedprivacy.scenario.variations import Variation, variations
from fedprivacy.training.early_stopping import words_of_runs

ONE_RUN_ALONE = (
    "Each epsilon is that of one run alone. Who sees the results of several cells or seeds has seen several "
    "releases of the same people. No epsilon here covers them together: cells with one seed share their "
    "cohorts, so that they can be compared in pairs, and may then cost more than the sum of their epsilons."
)
WITHOUT_NOISE = (
    "Baselines and ablations without noise are trained on the same records and have no guarantee, as trust "
    '"none" has none: no epsilon here covers their accuracies, or a setting that is chosen by them.'
)
CELL_PRIVACY = (
    "unit", "noise_multiplier", "noise", "clipping_norm", "sampling", "max_participations", "population",
    "batches", "records_per_client",
)  # fmt: skip


@dataclass
class Cell:
    """One trust model with one unit at one epsilon, and the run documents of its seeds that have finished.

    The corner has the unit, and the local mechanism, where a comparison names some, else None. A variation is
    what the scenario's own privacy was run with otherwise; `origin` is the scenario's privacy, which an
    ablation is compared with.
    """

    corner: Corner
    epsilon: float | None
    scenarios: dict[int, Scenario]
    candidates: list[dict[str, Any]] | None = None
    variation: Variation | None = None
    origin: Privacy | None = None
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def first(self) -> Scenario:
        """The scenario of the first seed: those of the others have the same settings."""
        return next(iter(self.scenarios.values()))

    @property
    def part(self) -> str:
        """The document's list that contains the cell."""
        if self.variation is not None:
            return "variations"
        if self.corner.ablation is not None:
            return "baselines" if self.corner.baseline else "limits"
        return "cells" if self.corner.option is None else "options"

    @property
    def label(self) -> str:
        """A name for folders and progress."""
        if self.variation is not None:
            return f"{self.variation.name}-{self.variation.value}"
        corner = self.corner
        if corner.ablation is not None:
            return "clipping-alone" if corner.baseline else f"limits-{corner.ablation}"
        if corner.option is not None:
            return f"option-{corner.option}-epsilon-{self.epsilon:g}"
        kind = "-".join(part for part in (corner.trust, corner.unit, corner.mechanism) if part)
        return kind if self.epsilon is None else f"{kind}-epsilon-{self.epsilon:g}"


def places(scenario: Scenario) -> Iterator[tuple[Corner, float | None, Variation | None]]:
    """Yields the corner, epsilon and variation of each cell of a comparison, in its order."""
    settings = scenario.compare
    optional = options(settings, scenario.privacy.trust)
    for corner in [*corners(settings, scenario.privacy.unit), *optional]:
        for epsilon in (None,) if corner.trust == "none" else settings.epsilons:
            yield corner, epsilon, None
    tables = scenario.tables()
    for corner in corners_of(settings, tables["privacy"], tables):
        yield corner, None if corner.trust == "none" else scenario.privacy.epsilon, None
    for variation in variations(settings):
        trust = variation.value if variation.name == "privacy.trust" else scenario.privacy.trust
        yield Corner(trust), scenario.privacy.epsilon, variation


def results(cells: Sequence[Cell], base: Path) -> dict[str, Any]:
    """The cells of the document and its finding, from the runs that have finished."""
    finished = [(cell, _cell_document(cell, base)) for cell in cells if cell.runs]
    plain = [result for cell, result in finished if cell.part == "cells"]
    varied = [
        comparison.Variation.new(
            **result, varied=comparison.Varied.new(key=cell.variation.name, value=cell.variation.value)
        ).to_json()
        for cell, result in finished
        if cell.variation is not None
    ]
    optional = [
        comparison.Option.new(
            **result, option=cell.corner.option, difference=_less_without(result, plain)
        ).to_json()
        for cell, result in finished
        if cell.part == "options"
    ]
    alone = [result for cell, result in finished if cell.part == "baselines"]
    return {
        "cells": plain,
        **({"baselines": alone} if alone else {}),
        **_limits(finished),
        **({"variations": varied} if varied else {}),
        **({"options": optional} if optional else {}),
        "finding": finding(plain),
    }


def _limits(finished: Sequence[tuple[Cell, dict[str, Any]]]) -> dict[str, Any]:
    """The ablations that have finished, beside the planned run, and what limits it."""
    ablated = [(cell, result) for cell, result in finished if cell.part == "limits"]
    if not ablated:
        return {}
    privacy = ablated[0][0].origin
    assert privacy is not None  # a cell of an ablation has it
    wanted = (privacy.trust, privacy.epsilon, privacy.unit)
    planned = next(
        (r for c, r in finished if c.part == "cells" and (c.corner.trust, c.epsilon, r["unit"]) == wanted),
        None,
    )
    named = [{**result, "ablation": cell.corner.ablation} for cell, result in ablated]
    measured = {} if planned is None else gaps(planned, named)
    written = [
        Ablated.new(**cell, difference=_gap(measured.get(cell["ablation"]))).to_json() for cell in named
    ]
    whole = planned is not None and all(len(cell.runs) == len(cell.scenarios) for cell, _ in ablated)
    return {
        "limits": written,
        "limiting": limiting(planned, named) if planned is not None and whole else None,
    }


def _gap(gap: Difference | None) -> Gap | None:
    return None if gap is None else Gap.new(points=gap.points, low=gap.low, high=gap.high)


def closing(scenario: Scenario, cells: Sequence[Cell], status: str) -> dict[str, Any]:
    """The closing fields of all cells: intervals, operator-only fields, and notes.

    Held-out records belong to clients if those of any run do: cells may differ in who takes part.

    Args:
        scenario: What was compared.
        cells: With the runs that have finished.
        status: How the comparison ended.
    """
    tested = any(TESTED_NOTE in run["notes"] for cell in cells for run in cell.runs.values())
    return {
        "interval": interval_words(primary_of(scenario.tables())),
        "operator_only": list(comparison.CompareDocument.OPERATOR_ONLY),
        **simulation_only(
            (cell.first for cell in cells),
            [f"{part}[]" for part in dict.fromkeys(cell.part for cell in cells)],
        ),
        "notes": [
            *choice_notes(scenario),
            ONE_RUN_ALONE,
            *[WITHOUT_NOISE] * any(cell.part in ("baselines", "limits") for cell in cells),
            *under_way(status),
            *_stopping(cells),
            *[TESTED_NOTE] * tested,
        ],
    }


def _less_without(result: Mapping[str, Any], plain: Sequence[Mapping[str, Any]]) -> Gap | None:
    """By how many points an option's cell is more accurate than the one without it, seed by seed."""
    for cell in plain:
        if (cell["trust"], cell["epsilon"]) == (result["trust"], result["epsilon"]):
            gap = difference(result, cell)
            return _gap(gap)
    return None


def _stopping(cells: Sequence[Cell]) -> list[str]:
    """The notes about early stopping, one for each patience."""
    by_patience: dict[int, list[Cell]] = {}
    for cell in cells:
        patience = cell.first.server.patience
        if patience is not None and cell.runs:
            by_patience.setdefault(patience, []).append(cell)
    return [
        words_of_runs(
            [(len(run["rounds"]), cell.first.server.rounds) for cell in group for run in cell.runs.values()],
            patience,
            noise=any(run["privacy"]["noise"] is not None for cell in group for run in cell.runs.values()),
        )
        for patience, group in by_patience.items()
    ]


def _reached(task: str, figures: Sequence[float | None]) -> dict[str, Any]:
    """The headline figure of a cell over its seeds; one that a seed lacks has no interval."""
    known = [figure for figure in figures if figure is not None]
    if task == CLASSIFICATION:
        return {"accuracy": interval(known), "accuracies": figures}
    metric = PRIMARY[task]
    mean = interval(known, metric.most, metric.least) if len(known) == len(figures) else None
    return {**scored(task, mean), "scores": figures}


def _budget_groups(runs: Sequence[Sequence[Mapping[str, Any]] | None]) -> dict[str, Any]:
    """The groups of clients with budgets of their own, each with the weakest guarantees of its seeds."""
    of_seeds = [groups for groups in runs if groups]
    if not of_seeds:
        return {}
    stated = [
        {**groups[0], "guarantees": weakest([group["guarantees"] for group in groups])}
        for groups in zip(*of_seeds, strict=True)
    ]
    return {"budget_groups": stated}


def _cell_document(cell: Cell, base: Path) -> dict[str, Any]:
    runs = [cell.runs[seed] for seed in cell.scenarios if seed in cell.runs]
    reached = [headline(run["final"]) for run in runs]
    privacy = runs[0]["privacy"]
    ran = runs[0]["scenario"]
    return StoredCell.new(
        trust=cell.corner.trust,
        mechanism=privacy["mechanism"],
        asked=cell.corner.mechanism,
        candidates=cell.candidates,
        epsilon=cell.epsilon,
        seeds=[run["seed"] for run in runs],
        **_reached(task_of(runs[0]["scenario"]), reached),
        **{key: privacy[key] for key in CELL_PRIVACY},
        guarantees=weakest([run["privacy"]["guarantees"] for run in runs]),
        **_budget_groups([run["privacy"].get("groups") for run in runs]),
        rounds=cell.first.server.rounds,
        rounds_played=[len(run["rounds"]) for run in runs],
        curve=mean_curve([run["rounds"] for run in runs]),
        per_class=mean_per_class([run["final"]["per_class"] for run in runs]),
        **quality_over_seeds([run["final"] for run in runs]),
        scaling=ran["data"]["scaling"],
        training=ran["training"],
        server=ran["server"],
        seconds=round(sum(run["performance"]["seconds"] for run in runs), 3),
        runs=[str(Path(run["path"]).relative_to(base)) for run in runs],
    ).to_json()
