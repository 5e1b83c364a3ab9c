"""The page of one federated run: learning curve, guarantees by observer, and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.guarantee import Privacy
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import (
    arm_labels,
    batches,
    budget_groups,
    candidates,
    classes,
    exposure,
    groups,
    learning_curves,
    limits,
    measures,
    page_end,
    personal,
    protection,
    public_records,
    stopped,
    units,
    words,
)
from fedprivacy.report.answers import run as answer
from fedprivacy.report.blocks import Block, Details, Facts, Page, Picture, Section, Text, Tiles
from fedprivacy.report.charts import Chart, looks
from fedprivacy.report.observer_wording import TRAINING


def page(document: RunDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The run, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the run.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        done, planned = _done(document), _planned(document)
        status = page_end.status(document, done, planned, "rounds", error=error, charge=stopped.PLANNED)
        lead.append(status)
    picture = _picture(document)
    missing = "There is no learning curve: no round of this run was evaluated."
    lead.append(picture or Text(words.ACCURACY_WITHHELD if document.lacks_accuracy else missing, "status"))
    lead += [*limits.lead_of_run(document), Tiles(_tiles(document))]
    trust = _trust(document)
    cells = [protection.Protected(Arm(trust), None, document.privacy.guarantees)]
    uncovered = public_records.statement(document.scenario.get("data"), [document.setting("data", "scaling")])
    settings = [*_privacy(document), *_settings(document)]
    return Page(
        title=page_end.title(document),
        eyebrow="Federated run",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_run(document, cells),
        lead=lead,
        sections=[
            Section(
                "guarantees",
                "Who is protected from whom",
                [
                    Text(TRAINING.caution([trust], [_unit(document)])),
                    *stopped.blocks(document.privacy),
                    *protection.blocks(cells, uncovered),
                ],
                folded=False,
            ),
            *budget_groups.of_run(document),
            *limits.of_run(document),
            *batches.of_run(document),
            *units.of_run(document),
            *candidates.of_run(document),
            *personal.of_run(document),
            *groups.of_run(document, trust),
            *classes.of_run(document, trust),
            *measures.of_run(document),
            *exposure.of_run(document),
            Section("settings", "Settings", [Facts(settings)]),
            *page_end.closing(document, command=command),
        ],
    )


def _trust(document: RunDocument) -> str:
    return document.privacy.trust or str(document.setting("privacy", "trust") or "none")


def _unit(document: RunDocument) -> str | None:
    return document.privacy.unit


def _adds_noise(document: RunDocument) -> str:
    """The party that adds the noise, and its target."""
    return TRAINING.of(_unit(document)).noise.get(_trust(document), "")


def _planned(document: RunDocument) -> int | None:
    rounds = document.setting("server", "rounds")
    return rounds if isinstance(rounds, int) else None


def _done(document: RunDocument) -> int:
    return len(document.rounds)


def _tiles(document: RunDocument) -> list[tuple[str, str, str]]:
    on = words.evaluated_on(document.evaluated_on)
    loss = document.final.loss if document.final else None
    done, planned = _done(document), _planned(document)
    population = document.privacy.population
    tiles = [
        ("Loss", words.number(loss, 3), f"on {on}, at the end"),
        ("Rounds", f"{done:,}", f"of {planned:,} planned" if planned else "run"),
        ("Trust model", words.trust(_trust(document)), _adds_noise(document)),
    ]
    if population is not None:
        tiles.insert(2, ("Clients", f"{population:,}", "in the population"))
    return tiles


def _picture(document: RunDocument) -> Picture | None:
    panels = []
    look = looks.look(Arm(_trust(document)))
    planned, done = _planned(document), _done(document)
    title = words.capital(document.primary.title)
    for name, heading in (("accuracy", f"{title} (higher is better)"), ("loss", "Loss (lower is better)")):
        measured = [(at, getattr(event, name)) for at, event in enumerate(document.rounds, start=1)]
        finite = [(at, value) for at, value in measured if value is not None and math.isfinite(value)]
        if finite:
            share = name == "accuracy"
            levels = limits.majority_level(document.final.per_class) if share and document.final else ()
            panels.append(learning_curves.measure(heading, finite, look, planned, share=share, levels=levels))
    if not panels:
        return None
    rows = [
        (f"{at:,}", words.accuracy(event.accuracy), words.number(event.loss))
        for at, event in enumerate(document.rounds, start=1)
        if event.accuracy is not None or event.loss is not None
    ]
    on = words.evaluated_on(document.evaluated_on)
    stopped = f" It stopped at the dotted line, of {planned:,} rounds." if planned and done < planned else ""
    return Chart(
        "learning",
        "Line chart of the evaluations by round",
        f"{title} and loss of the global model on {on}, by round.{stopped}",
        tuple(panels),
        tables=(page_end.sampled(f"Evaluations on {on}, by round.", ("Round", title, "Loss"), rows),),
    ).picture


def _privacy(document: RunDocument) -> list[tuple[str, str]]:
    plan = document.privacy
    trust, unit, adjacency, cap = _trust(document), plan.unit, plan.adjacency, plan.max_participations
    facts: Sequence[tuple[str, str]] = (
        ("Trust model", f"{words.trust(trust)}. {_adds_noise(document)}"),
        ("Unit of privacy", f"{unit}: {words.UNITS.get(unit, unit)}" if unit else ""),
        ("Adjacency", f"{adjacency}: {words.change(adjacency, unit)}" if adjacency else ""),
        ("Delta", words.number(plan.delta) if plan.delta is not None else ""),
        ("Mechanism", arm_labels.mechanism(plan.mechanism)),
        ("Clipping norm", words.number(plan.clipping_norm) if plan.clipping_norm is not None else ""),
        ("Noise", _noise(plan)),
        ("Batches", batches.describe(plan.batches)),
        ("Sampling", words.sampling(plan.sampling or document.scenario.get("sampling"))),
        ("Most answers of one client", f"{cap:,}" if cap is not None else ""),
        ("Randomness", document.drawn),
    )
    return [(name, value) for name, value in facts if value and value != "—"]


def _noise(plan: Privacy) -> str:
    text = arm_labels.noise(plan.noise, plan.noise_multiplier)
    return f"{words.capital(text)}. {arm_labels.NOISE}" if text else ""


def _settings(document: RunDocument) -> list[tuple[str, str]]:
    sections = ("data", "model", "training", "server", "federation", "evaluation")
    without = {"training": batches.without_effect(_unit(document))}
    facts = []
    for name in sections:
        part = document.scenario.get(name)
        if isinstance(part, Mapping) and part:
            facts.append((words.capital(name), page_end.flat(part, without.get(name, ()))))
    return facts
