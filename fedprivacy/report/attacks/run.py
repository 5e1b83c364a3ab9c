"""The page of attacks that were played: what each seat learns, how, and what its guarantee allows."""

from __future__ import annotations

from fedprivacy.report import common, protection, words
from fedprivacy.report.attacks import figures, finding, overview, panels, settings, story, table
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack
from fedprivacy.report.blocks import Block, Details, Page, Section, Text, Tiles
from fedprivacy.report.documents import Arm


def page(document: ReplayDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The attacks, without its operator-only fields.
        error: Whether the operator-only section holds an error's text.
        command: Whether it holds the command that reproduces the attacks.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        done, planned = len(document.attacks), len(document.asked)
        lead.append(common.status(document, done, planned or None, "attacks", error=error))
    exceeded = finding.exceeded(document.attacks)
    lead += [Text(exceeded, "status stopped")] if exceeded else []
    lead.append(finding.of(document))
    lead += [overview.picture(document.seats)] if document.attacks else []
    lead.append(Tiles(_tiles(document)))
    return Page(
        title=document.name,
        eyebrow="Membership attacks",
        subtitle=str(document.scenario.get("description") or ""),
        lead=lead,
        sections=[
            *story.sections(document.attacks),
            *table.sections(document.seats),
            *panels.sections([one for own in document.seats.values() for one in own]),
            Section("guarantees", "Who is protected from whom", _guarantees(document)),
            *settings.sections(document),
            *common.closing(document, command=command),
        ],
    )


def _guarantees(document: ReplayDocument) -> list[Block | Details]:
    cells = [protection.Protected(Arm(document.trust), None, document.guarantees)]
    # Whose records count as public is no matter here: the game makes members of them, too.
    shown = protection.blocks(cells, "")
    follows = dict.fromkeys(text for one in document.attacks if (text := _follows(one)))
    return [*shown, *map(Text, follows)]


def _follows(attack: Attack) -> str:
    """How the bound follows from the guarantee; empty where there is none."""
    if attack.bound.auc is None or attack.guarantee is None:
        return ""
    steps = [text for text in attack.bound.assumptions if text not in attack.guarantee.assumptions]
    basis = f" ({attack.bound.basis})" if attack.bound.basis else ""
    because = f", and {'; '.join(steps)}" if steps else ""
    return f"The bound on attacks of {figures.seat(attack.seat)} follows from its guarantee{basis}{because}."


def _tiles(document: ReplayDocument) -> list[tuple[str, str, str]]:
    tiles = [("Attacks", f"{len(document.attacks):,}", "played")]
    if document.attacks:
        first = document.attacks[0]
        tiles.append(("Members", f"{first.members or 0:,}", "of the victim, judged"))
        tiles.append(("Non-members", f"{first.nonmembers or 0:,}", "that nobody trains on, judged"))
        tiles.append(("Training runs", f"{first.seeds:,}", "attacked, each with a seed of its own"))
    tiles.append(("Trust model", words.trust(document.trust), words.WHO_ADDS_NOISE.get(document.trust, "")))
    return tiles
