"""The arms of a game: overlays of trust model, training or rounds on one scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.rule_table import broken_rules
from fedprivacy.io.toml_text import dotted, literal
from fedprivacy.scenario.attack.derived_values import GameValues
from fedprivacy.scenario.attack.rules import ARMS_RULES, between
from fedprivacy.scenario.attack.sections import Attack, GameSettings
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.cells import overlaid
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import OVERLAID, Kind, shared
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.validation import inspect


class Arm(Section):
    """The settings of one arm that differ from the scenario; an empty one is the scenario itself."""

    data: dict[str, Any] = Field({}, description="Keys of [data] for this arm: how it scales.")
    training: dict[str, Any] = Field({}, description="Keys of [training] for this arm.")
    server: dict[str, Any] = Field({}, description="Keys of [server] for this arm.")
    sampling: dict[str, Any] = Field({}, description="Keys of [sampling] for this arm.")
    privacy: dict[str, Any] = Field(
        {},
        description="Keys of [privacy] for this arm; with an epsilon, or noise, of its own it is run at "
        "that alone.",
    )
    game: dict[Literal["warm_up"], Any] = Field(
        {}, description="Keys of [game] for this arm: after how many rounds attacks begin."
    )

    @property
    def laid(self) -> dict[KeyPath, Any]:
        """The overrides of the scenario, without the game."""
        return {(part, key): value for part in OVERLAID for key, value in getattr(self, part).items()}

    @property
    def tables(self) -> Tables:
        """The tables of a file."""
        return {part: dict(keys) for part in (*OVERLAID, "game") if (keys := getattr(self, part))}


ARM = Kind({"": Arm})


@dataclass(frozen=True)
class ArmRun:
    """One arm at one epsilon.

    Args:
        run: The training.
        game: The attack game on it.
        attacks: Those that can be had there.
        refused: The findings against the others, by name.
    """

    run: Scenario
    game: GameSettings
    attacks: Mapping[str, Attack]
    refused: Mapping[str, Finding]


def epsilons_of(run: Scenario, arm: Arm, game: GameSettings) -> tuple[float | None, ...]:
    """The epsilons of an arm; None for its own privacy."""
    trust = arm.privacy.get("trust", run.privacy.trust)
    fixed = trust == "none" or {"epsilon", "noise_multiplier"} & set(arm.privacy)
    return (None,) if fixed or not game.epsilons else game.epsilons


def game_in_arm(
    run: Scenario, game: GameSettings, attacks: Mapping[str, Attack], arm: Arm, epsilon: float | None
) -> ArmRun | list[Finding]:
    """One arm at one epsilon, or the reason why it is impossible.

    Args:
        run: The scenario without its game.
        game: The scenario's.
        attacks: The scenario's.
        arm: The overlay.
        epsilon: The arm's epsilon; None for its own privacy.
    """
    laid = arm.laid | ({} if epsilon is None else {("privacy", "epsilon"): epsilon})
    try:
        whole = inspect(overlaid(run.tables(), laid))
    except KeyError as error:  # a key of a section is laid through something that is none
        return [Finding(error.args[0], "leads through a key that is not a section")]
    default = GameSettings.model_fields["warm_up"]
    began = arm.game.get("warm_up", game.warm_up)
    if began is not None and (isinstance(began, bool) or not isinstance(began, int) or began < 0):
        what = "must be a whole number of at least 0"
        return [Finding(("game", "warm_up"), what, str(default.description), literal(began))]
    if whole.findings:
        return whole.findings
    trained = Scenario(**whole.parts)
    bare = {"warm_up": began, "epsilons": (), "clipped": False, "unprotected": False}
    requested, left, refused = game.model_copy(update=bare), dict(attacks), dict[str, Finding]()
    while True:  # replies to one attack's messages would be there for the others
        conflicts = list(between(trained, requested, left))
        names = {
            str(conflict.path[1]): conflict for conflict in conflicts if conflict.path[:1] == ("attacks",)
        }
        if not names:
            return conflicts or ArmRun(trained, requested, left, refused)
        refused |= names
        left = {name: conflict for name, conflict in left.items() if name not in names}


def inspect_arms(
    run: Scenario, game: GameSettings, attacks: Mapping[str, Attack], arms: Mapping[str, Arm]
) -> Iterator[Finding]:
    """All that is wrong with the arms, where the rest of the scenario is valid by itself."""
    yield from broken_rules(ARMS_RULES, GameValues(run, game, attacks))
    used: set[str] = set()
    refused: dict[str, Finding] = {}
    reported: set[tuple[KeyPath, str]] = set()
    crossed = False
    for name, arm in arms.items():
        for key in arm.data:
            if shared("data", key):
                what = "all arms play with the same records"
                yield Finding(("arms", name, "data", key), what, "Remove it: [data] says which.")
                return
        for epsilon in epsilons_of(run, arm, game):
            crossed |= epsilon is not None
            outcome = game_in_arm(run, game, attacks, arm, epsilon)
            if isinstance(outcome, ArmRun):
                used |= set(outcome.attacks)
                refused = {**outcome.refused, **refused}
                continue
            for finding in (_here(wrong, name, arm) for wrong in outcome):
                if (finding.path, finding.what) not in reported:
                    yield finding
                reported.add((finding.path, finding.what))
    if game.epsilons and not crossed:
        what = "has no effect: each arm has no privacy, or an epsilon of its own"
        yield Finding(("game", "epsilons"), what, "Remove it, or an arm's own epsilon.")
    if not reported:
        yield from (finding for name, finding in refused.items() if name not in used)


def _here(finding: Finding, name: str, arm: Arm) -> Finding:
    """Moves a finding about an arm to the arm's key, or to the arm."""
    if finding.path[:2] in arm.laid or (finding.path[:1] == ("game",) and finding.path[-1] in arm.game):
        return replace(finding, path=("arms", name, *finding.path))
    shown = f" = {finding.shown}" if finding.shown else ""
    what = f"cannot run: {dotted(finding.path)}{shown}: {finding.what}"
    return Finding(("arms", name), what, finding.remedy)
