"""The page of attacks: each seat's results, its method, and the bound of its guarantee."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import CLIPPED, Attack
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.report import page_end, protection, words
from fedprivacy.report.attacks import (
    answer,
    arms,
    ascent_story,
    attack_table,
    figures,
    finding,
    levels,
    observed_rounds,
    outsider_table,
    overview,
    panels,
    price_section,
    published,
    settings,
    strongest,
    trials,
)
from fedprivacy.report.blocks import Block, Details, Page, Section, Text, Tiles
from fedprivacy.report.observer_wording import TRAINING


def page(document: ReplayDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The attacks, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the attacks.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        done = len(document.completed)
        lead.append(page_end.status(document, done, document.planned, "attacks", error=error))
    if (verdict := document.judged) and verdict.refuted:
        terms = strongest.terms(document) if document.arms else levels.terms(document)
        lead.append(Text(f"{verdict.words} {terms}".strip(), "status stopped"))
    if document.arms:
        return _of_arms(document, lead, command=command)
    areas = [overview.picture(document)] if document.attacks else []
    lead += [] if document.several else areas
    if document.attacks or not document.trials:
        lead.append(finding.of(document))
    if document.trials:
        lead += [*([] if document.attacks else [trials.picture(document)]), trials.finding(document)]
    lead.append(Tiles(_tiles(document)))
    cells = _protected(document)
    compared = [
        *price_section.sections(document),
        *([Section("overview", "Every attack at each level of privacy", areas)] if areas else []),
    ]
    return Page(
        title=page_end.title(document),
        eyebrow="Attacks" if document.trials else "Membership attacks",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_attacks(document, cells),
        lead=lead,
        sections=[
            *trials.sections(document),
            *(compared if document.several else []),
            *published.sections(document),
            *outsider_table.sections(document),
            *observed_rounds.sections(document),
            *ascent_story.sections(document),
            *attack_table.sections(document),
            *panels.sections(document),
            Section("guarantees", "Who is protected from whom", _guarantees(document, cells), folded=False),
            *settings.sections(document),
            *page_end.closing(document, command=command),
        ],
    )


def _of_arms(document: ReplayDocument, lead: list[Block | Details], *, command: bool) -> Page:
    """The page of a game in several arms."""
    units = {arm.unit for arm in document.arms if arm.trust != "none"}
    cells = [
        protection.Protected(
            Arm(
                arm.trust,
                ClipOnly.name if arm.level == CLIPPED else None,
                unit=arm.unit if len(units) > 1 and arm.trust != "none" else None,
            ),
            arm.epsilon,
            arm.guarantees,
        )
        for arm in document.arms
    ]
    return Page(
        title=page_end.title(document),
        eyebrow="Attacks" if document.trials else "Membership attacks",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_attacks(document, cells),
        lead=[
            *lead,
            *([arms.finding(document)] if document.attacks or not document.trials else []),
            *([trials.picture(document)] if document.trials and not document.attacks else []),
            *([trials.finding(document)] if document.trials else []),
            Tiles(_arm_tiles(document)),
        ],
        sections=[
            *(arms.sections(document) if document.attacks else []),
            *trials.sections(document),
            Section("guarantees", "Who is protected from whom", protection.blocks(cells, ""), folded=False),
            *settings.sections(document),
            *page_end.closing(document, command=command),
        ],
    )


def _arm_tiles(document: ReplayDocument) -> list[tuple[str, str, str]]:
    names = dict.fromkeys(arm.arm for arm in document.arms)
    first = document.attacks[0] if document.attacks else None
    counted = [
        ("Arms", f"{len(names):,}", "of the same game"),
        ("Arms and epsilons", f"{len(document.arms):,}", "each with runs of its own"),
        (
            "Training runs",
            f"{sum(arm.seeds for arm in document.arms):,}",
            "each with a seed and noise of its own",
        ),
        (
            "Attacks",
            f"{len({attack.name for attack in document.completed}):,}",
            "in each arm where they can be had",
        ),
    ]
    if first is not None:
        counted.append(("Members", f"{first.members or 0:,}", "of the victim, judged"))
        counted.append(("Non-members", f"{first.nonmembers or 0:,}", "that nobody trains on, judged"))
    return counted


def _protected(document: ReplayDocument) -> list[protection.Protected]:
    return [
        protection.Protected(
            Arm(document.trust_at(level), ClipOnly.name if level == CLIPPED else None),
            level if document.several and isinstance(level, float) else None,
            document.guarantees(level),
        )
        for level in document.levels
    ]


def _guarantees(document: ReplayDocument, cells: Sequence[protection.Protected]) -> list[Block | Details]:
    # Whose records count as public is no matter here: the game makes members of them, too.
    shown = protection.blocks(cells, "")
    return [*shown, *(Text(text) for seat in document.seats.values() if (text := _follows(seat)))]


def _follows(attacks: Sequence[Attack]) -> str:
    """The derivation of a seat's bound from its guarantee, at every level; empty without one."""
    bounded = [attack for attack in attacks if attack.bound.auc is not None and attack.guarantee is not None]
    if not bounded:
        return ""
    known = {text for attack in bounded if attack.guarantee for text in attack.guarantee.assumptions}
    steps = dict.fromkeys(
        text for attack in bounded for text in attack.bound.assumptions if text not in known
    )
    bases = dict.fromkeys(attack.bound.basis for attack in bounded if attack.bound.basis)
    basis = f" ({'; '.join(bases)})" if bases else ""
    because = f", and {'; '.join(steps)}" if steps else ""
    return (
        f"The bound on attacks of {figures.seat(bounded[0].seat)} follows from its guarantee{basis}{because}."
    )


def _tiles(document: ReplayDocument) -> list[tuple[str, str, str]]:
    names = {(attack.seat, attack.name) for attack in document.completed}
    count = f"each run at {len(document.levels)} levels of privacy" if document.several else "completed"
    tiles = [("Attacks", f"{len(names):,}", count)]
    if document.trials and not document.attacks:
        trials_of_each = [sum(run["trials"] for run in trial.runs) for trial in document.trials]
        repeats = words.counted(document.trials[0].seeds, "training run")
        tiles.append(("Trials", f"{max(trials_of_each):,}", f"of each attack, on {repeats}"))
    if document.attacks:
        first = document.attacks[0]
        tiles.append(("Members", f"{first.members or 0:,}", "of the victim, judged"))
        tiles.append(("Non-members", f"{first.nonmembers or 0:,}", "that nobody trains on, judged"))
        each = " at each level" if document.several else ""
        tiles.append(("Training runs", f"{first.seeds:,}", f"attacked{each}, each with a seed of its own"))
    unit = document.setting("privacy", "unit")
    adds = TRAINING.of(unit if isinstance(unit, str) else None).noise.get(document.trust, "")
    bare = document.several and not {None, CLIPPED}.isdisjoint(document.levels)
    beside = " Beside it: runs without noise." if bare else ""
    tiles.append(("Trust model", words.trust(document.trust), adds + beside))
    return tiles
