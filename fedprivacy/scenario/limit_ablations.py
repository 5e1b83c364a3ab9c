"""Ablations for `--limits` and `compare.limits`: a scenario with one limit of its accuracy removed.

Each is trained with the seeds of the planned runs, so that differences are paired. Those that keep the noise
keep the epsilon too: their noise is calibrated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import dotted
from fedprivacy.scenario.cells import Corner, cell, overlaid
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.rules.comparison import LIMIT_RULES, CompareValues
from fedprivacy.scenario.sections import ABLATIONS, Ablation, Compare
from fedprivacy.scenario.validation import Inspection, inspect

WITHOUT_NOISE: tuple[Ablation, ...] = ("no-noise", "no-clipping")


def planned(compare: Compare, privacy: Mapping[str, Any]) -> Corner:
    """The cell that ablations change: the scenario's own trust model and unit, with their overlays."""
    unit = privacy.get("unit", "client") if compare.units else None
    return Corner(privacy.get("trust", "none"), unit)


def corner_of(
    name: Ablation, compare: Compare, privacy: Mapping[str, Any], *, baseline: bool = False
) -> Corner:
    """The cell of an ablation.

    Args:
        name: The ablation.
        compare: The section with the compared settings.
        privacy: The scenario's privacy section.
        baseline: Whether it is the baseline of a comparison, and not an ablation beside others.
    """
    base = planned(compare, privacy)
    trust = "none" if name in WITHOUT_NOISE else base.trust
    return Corner(trust, base.unit, clipped=name == "no-noise", ablation=name, baseline=baseline)


def corners_of(compare: Compare, privacy: Mapping[str, Any], tables: Tables) -> list[Corner]:
    """The cells of a comparison's ablations, after clipping alone as its baseline where that is possible."""
    ablations = [corner_of(name, compare, privacy) for name in compare.limits]
    alone = compare.baselines and "no-noise" not in compare.limits and can_clip_alone(tables, compare)
    return [corner_of("no-noise", compare, privacy, baseline=True)] * alone + ablations


def can_clip_alone(tables: Tables, compare: Compare) -> bool:
    """Whether the planned training can do without its noise, all else the same.

    Under central trust with unit "example" the server makes the gradient step, and adaptive clipping,
    encodings and denoising belong to the noise: none of them exists without it.
    """
    base = planned(compare, tables["privacy"])
    if base.trust == "none" or tables["data"]["name"] == "on-nodes":
        return False
    laid = cell(tables, base, 1.0)
    privacy = laid["privacy"]
    central_records = (base.trust, privacy.get("unit")) == ("central", "example")
    bound = {"encoding", "clipping_quantile"} & privacy.keys()
    return not (central_records or bound or laid["server"].get("denoise", "none") != "none")


def applicable(tables: Tables, compare: Compare) -> tuple[Ablation, ...]:
    """The ablations that a scenario can run.

    Args:
        tables: A valid scenario.
        compare: Its comparison.
    """
    return tuple(name for name in ABLATIONS if not list(_findings(tables, compare, name)))


def ablated(tables: Tables, corner: Corner, epsilon: float | None, seed: int | None = None) -> Tables:
    """The tables of an ablation of a scenario, without `[compare]`.

    Args:
        tables: A whole scenario.
        corner: The cell of the ablation.
        epsilon: The scenario's own epsilon, which ablations with noise keep.
        seed: The seed; None keeps the scenario's.
    """
    base = cell(tables, Corner(tables["privacy"]["trust"], corner.unit), epsilon, seed)
    assert corner.ablation is not None
    return overlaid(base, _changes(base, corner.ablation), clipped=corner.clipped)


def _changes(tables: Tables, name: Ablation) -> dict[KeyPath, Any]:
    """What an ablation changes in the planned training."""
    if name in WITHOUT_NOISE:
        return {("privacy", "trust"): "none"}
    if name in ("norm-half", "norm-double"):
        factor = 0.5 if name == "norm-half" else 2.0
        return {("privacy", "clipping_norm"): factor * tables["privacy"]["clipping_norm"]}
    if name == "rounds-double":
        return {("server", "rounds"): 2 * tables["server"]["rounds"]}
    sampling = tables["sampling"]
    if name == "cohort-double":
        return {("sampling", "rate"): 2 * sampling["rate"]}
    # Half of the records (by user: of the people) take no part. Cohorts of fixed size are halved too, so
    # that the rate of sampling, and with it the noise, stays.
    halved: dict[KeyPath, Any] = {
        ("data", "public_fraction"): (1 + tables["data"].get("public_fraction", 0.0)) / 2
    }
    if "cohort" in sampling:
        halved["sampling", "cohort"] = max(1, sampling["cohort"] // 2)
    return halved


def inspect_ablations(tables: Tables, whole: Inspection) -> Iterator[Finding]:
    """The problems of a comparison's ablations, if the scenario itself has none."""
    compare = whole.parts.get("compare")
    if compare is None or not compare.limits or whole.findings:
        return
    if refused := [
        finding
        for rule in LIMIT_RULES
        for finding in rule.findings(CompareValues(compare, tables["privacy"]))
    ]:
        yield from refused[:1]
        return
    for name in compare.limits:
        yield from _findings(tables, compare, name)


def _findings(tables: Tables, compare: Compare, name: Ablation) -> Iterator[Finding]:
    """Why a scenario cannot run an ablation."""
    path: KeyPath = ("compare", "limits")
    remedy = f'Remove "{name}" from compare.limits.'
    if tables["data"]["name"] == "on-nodes":
        yield Finding(path, "records on nodes cannot be trained on without the planned noise", remedy)
    elif name == "cohort-double" and tables["sampling"]["name"] != "poisson":
        yield Finding(path, f'"{name}" needs Poisson sampling', remedy)
    elif name in WITHOUT_NOISE and not can_clip_alone(tables, compare):
        what = "the server's gradient step, an encoding, adaptive clipping or denoising belongs to the noise"
        yield Finding(path, f'"{name}" cannot run: {what}', remedy)
    else:
        corner = corner_of(name, compare, tables["privacy"])
        for finding in inspect(ablated(tables, corner, 1.0)).findings:
            yield Finding(path, f'"{name}" cannot run: {dotted(finding.path)}: {finding.what}', remedy)
