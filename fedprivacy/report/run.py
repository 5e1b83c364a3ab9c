"""The page of one federated run: learning curve, guarantees by observer, and costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.guarantee import Privacy
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import (
    batches,
    candidates,
    classes,
    common,
    learning,
    names,
    protection,
    public,
    stopped,
    units,
    words,
)
from fedprivacy.report.blocks import Block, Details, Facts, Finding, Page, Picture, Section, Text, Tiles
from fedprivacy.report.charts import Chart, looks
from fedprivacy.report.wording import TRAINING


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
        status = common.status(document, done, planned, "rounds", error=error, charge=stopped.PLANNED)
        lead.append(status)
    picture = _picture(document)
    missing = "There is no learning curve: no round of this run was evaluated."
    lead.append(picture or Text(words.ACCURACY_WITHHELD if document.lacks_accuracy else missing, "status"))
    lead += [_finding(document), Tiles(_tiles(document))]
    trust = _trust(document)
    cells = [protection.Protected(Arm(trust), None, document.privacy.guarantees)]
    uncovered = public.statement(document.scenario.get("data"), [document.setting("data", "scaling")])
    settings = [*_privacy(document), *_settings(document)]
    return Page(
        title=document.name,
        eyebrow="Federated run",
        subtitle=str(document.scenario.get("description") or ""),
        lead=lead,
        sections=[
            Section(
                "guarantees",
                "Who is protected from whom",
                [*stopped.blocks(document.privacy), *protection.blocks(cells, uncovered)],
            ),
            *batches.of_run(document),
            *units.of_run(document),
            *candidates.of_run(document),
            *classes.of_run(document, trust),
            Section("settings", "Settings", [Facts(settings)]),
            *common.closing(document, command=command),
        ],
    )


def _finding(document: RunDocument) -> Finding:
    """The model's accuracy and its epsilon against each observer, in one sentence."""
    done, guarantees = _done(document), document.privacy.guarantees
    accuracy = document.final.accuracy if document.final else None
    reached = "The accuracy is operator-only" if document.lacks_accuracy else "No round was evaluated"
    if accuracy is not None:
        on = words.evaluated_on(document.evaluated_on)
        reached = f"After {done:,} rounds the model reaches {words.accuracy(accuracy)} on {on}"
    against: dict[str, list[str]] = {}
    for g in guarantees:
        text = f"epsilon {words.epsilon(g.epsilon)}" if g.holds else "no guarantee"
        against.setdefault(text, []).append(words.observer(g.observer))
    spent = [f"{text} against {words.listed(who)}" for text, who in against.items()]
    epsilon_terms = words.terms(guarantees)
    return Finding(
        text="; ".join([reached, *spent]) + ".",
        terms=f"Each epsilon: {epsilon_terms}." if epsilon_terms else "",
        heading="Against whom",
        caution=TRAINING.caution([_trust(document)], [_unit(document)]),
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
    accuracy = document.final.accuracy if document.final else None
    loss = document.final.loss if document.final else None
    done, planned = _done(document), _planned(document)
    population = document.privacy.population
    tiles = [
        ("Accuracy", words.accuracy(accuracy), f"on {on}, at the end"),
        ("Loss", words.number(loss, 3), f"on {on}, at the end"),
        ("Rounds", f"{done:,}", f"of {planned:,} planned" if planned else "run"),
        ("Trust model", words.trust(_trust(document)), _adds_noise(document)),
    ]
    if population is not None:
        tiles.insert(3, ("Clients", f"{population:,}", "in the population"))
    return tiles


def _picture(document: RunDocument) -> Picture | None:
    panels = []
    look = looks.look(Arm(_trust(document)))
    planned, done = _planned(document), _done(document)
    for name, heading in (("accuracy", "Accuracy (higher is better)"), ("loss", "Loss (lower is better)")):
        measured = [(at, getattr(event, name)) for at, event in enumerate(document.rounds, start=1)]
        finite = [(at, value) for at, value in measured if value is not None and math.isfinite(value)]
        if finite:
            panels.append(learning.measure(heading, finite, look, planned, share=name == "accuracy"))
    if not panels:
        return None
    rows = [
        (f"{at:,}", words.accuracy(event.accuracy), words.number(event.loss))
        for at, event in enumerate(document.rounds, start=1)
        if event.accuracy is not None or event.loss is not None
    ]
    on = words.evaluated_on(document.evaluated_on)
    stopped = f" It stopped at the dotted line, of {planned:,} rounds." if planned and done < planned else ""
    cut = "".join(words.cut_axis(p.y.limits[0]) for p in panels if p.y.tick_text and p.y.limits)
    return Chart(
        "learning",
        "Line chart of the evaluations by round",
        f"Accuracy and loss of the global model on {on}, by round.{stopped}{cut}",
        tuple(panels),
        tables=(common.sampled(f"Evaluations on {on}, by round.", ("Round", "Accuracy", "Loss"), rows),),
    ).picture


def _privacy(document: RunDocument) -> list[tuple[str, str]]:
    plan = document.privacy
    trust, unit, adjacency, cap = _trust(document), plan.unit, plan.adjacency, plan.max_participations
    facts: Sequence[tuple[str, str]] = (
        ("Trust model", f"{words.trust(trust)}. {_adds_noise(document)}"),
        ("Unit of privacy", f"{unit}: {words.UNITS.get(unit, unit)}" if unit else ""),
        ("Adjacency", f"{adjacency}: {words.change(adjacency, unit)}" if adjacency else ""),
        ("Delta", words.number(plan.delta) if plan.delta is not None else ""),
        ("Mechanism", names.mechanism(plan.mechanism)),
        ("Clipping norm", words.number(plan.clipping_norm) if plan.clipping_norm is not None else ""),
        ("Noise", _noise(plan)),
        ("Batches", batches.describe(plan.batches)),
        ("Sampling", words.sampling(plan.sampling or document.scenario.get("sampling"))),
        ("Most answers of one client", f"{cap:,}" if cap is not None else ""),
        ("Randomness", document.drawn),
    )
    return [(name, value) for name, value in facts if value and value != "—"]


def _noise(plan: Privacy) -> str:
    text = names.noise(plan.noise, plan.noise_multiplier)
    return f"{words.capital(text)}. {names.NOISE}" if text else ""


def _settings(document: RunDocument) -> list[tuple[str, str]]:
    sections = ("data", "model", "training", "server", "federation", "evaluation")
    without = {"training": batches.without_effect(_unit(document))}
    facts = []
    for name in sections:
        part = document.scenario.get(name)
        if isinstance(part, Mapping) and part:
            facts.append((words.capital(name), common.flat(part, without.get(name, ()))))
    return facts
