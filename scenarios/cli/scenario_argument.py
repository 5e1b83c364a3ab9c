"""What a user asks for: a scenario with options laid over it, and what its words still hold for."""

from __future__ import annotations

import re
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.records.run_directory import read_document
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.changes import parse_overrides
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario, load
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from scenarios.authoring.catalogue import find
from scenarios.jobs.manifest import BEGUN, begun_in

# Neither how a scenario was tuned nor what it is about depends on these.
_BESIDE = re.compile(
    r"(name|description|duration|tuning|seed|evaluation|federation|data\.path"
    r"|compare\.(seeds|epsilons|trusts|mechanisms|repeats)|study\.(epsilons|records|repeats))(\.|$)"
)


def asked(
    source: str,
    overrides: list[str] | None,
    seed: int | None,
    *,
    attacks: bool = False,
    tuned: bool = False,
) -> Scenario | Statistics:
    """The scenario of a ready name or a file with `--set` and `--seed` laid over.

    What the file says of itself and of the choice of its settings was said before they were changed,
    so both then name the keys that were.

    Args:
        source: A ready name or a file.
        overrides: `--set` options.
        seed: The seed; None for the scenario's own.
        attacks: Whether one with attacks is asked for; elsewhere they would be left out without a word.
        tuned: Whether one with a section `[tune]` is; as with attacks.

    Raises:
        InputError: it is no scenario, none with these options, to be attacked, or one that fits estimates.
    """
    scenario = asked_any(source, overrides, seed, attacks=attacks, tuned=tuned)
    if isinstance(scenario, ErmScenario):
        raise InputError(
            f"{source}: fits private estimates, which `fedprivacy run {source}` does, and no other command."
        )
    return scenario


def asked_any(
    source: str,
    overrides: list[str] | None,
    seed: int | None,
    *,
    attacks: bool = False,
    tuned: bool = False,
) -> AnyScenario:
    """As `asked`, also one that fits private estimates.

    Raises:
        InputError: it is no scenario, none with these options, or one to be attacked or tuned.
    """
    given = overrides or []
    seeded = [] if seed is None else [f"seed={seed}"]
    scenario = load(find(source), [*given, *seeded])
    if isinstance(scenario, AttackScenario) and not attacks:
        raise InputError(
            f"{source}: has attacks, which `fedprivacy replay {source}` plays, and no other command."
        )
    if isinstance(scenario, TuneScenario) and not tuned:
        raise InputError(
            f"{source}: has a [tune], which `fedprivacy tune {source}` does, and no other command."
        )
    settings, _ = parse_overrides(given)
    keys = dict.fromkeys(key for one in settings for key in _keys(".".join(map(str, one.path)), one.value))
    stopping = isinstance(scenario, Scenario) and scenario.server.patience is not None
    changed = ", ".join(
        key for key in keys if not _BESIDE.match(key) or (stopping and key == "evaluation.every")
    )
    if not changed:
        return scenario
    said = {
        "tuning": f"Said before these were changed: {changed}.",
        "description": f"(Changed here: {changed}.)",
    }
    words = {
        key: f"{getattr(scenario, key).rstrip()} {more}"
        for key, more in said.items()
        if getattr(scenario, key) and key not in keys
    }
    return scenario.model_copy(update=words)


def attacked(
    source: str, overrides: list[str] | None, names: list[str] | None, seed: int | None
) -> tuple[AttackScenario, Path | None]:
    """The attack scenario that is to be played, and where its trained runs lie if it was played before.

    Args:
        source: A ready name, a file, or the directory of an earlier replay.
        overrides: `--set` options.
        names: The attacks to play; None: all.
        seed: The seed of the first run.

    Raises:
        InputError: it has no attacks, or not these, or an earlier replay is to be played otherwise.
    """
    folder = Path(source)
    if (folder / BEGUN).is_file() and not (folder / "run.json").is_file():
        begun_in(folder, "replay")
        again = f"fedprivacy replay --resume {shlex.quote(source)}"
        raise InputError(f"{source}: has not finished. Go on with it by: {again}")
    stored = folder if (folder / "run.json").is_file() else None
    if stored is not None:
        if read_document(stored / "run.json").get("kind") != "replay":
            raise InputError(f"{source}: not a replay; only attack scenarios and their replays have a game.")
        kept = [text for text in overrides or [] if not text.startswith("attacks.")]
        if kept or seed is not None:
            changed = " ".join([*(f"--set {text}" for text in kept), *([] if seed is None else ["--seed"])])
            raise InputError(
                f"{changed}: the runs of {source} are trained; only their attacks can be changed. "
                "Replay the scenario instead."
            )
        scenario = load(stored / "scenario.toml", overrides or [])
    else:
        scenario = asked(source, overrides, seed, attacks=True)
    if not isinstance(scenario, AttackScenario):
        raise InputError(f"{source}: has no [attacks.NAME]; `fedprivacy scenarios` says which have.")
    unknown = [name for name in names or [] if name not in scenario.attacks]
    if unknown:
        raise InputError(f"--attack {unknown[0]}: there is none. There are: {', '.join(scenario.attacks)}.")
    chosen = {name: one for name, one in scenario.attacks.items() if not names or name in names}
    return scenario.model_copy(update={"attacks": chosen}), stored


def asked_again(resume: Path) -> Scenario | Statistics:
    """The scenario of a comparison that is to be gone on with.

    Args:
        resume: Its directory.

    Raises:
        InputError: nothing was begun in it, or something else.
    """
    begun_in(resume, "compare", "compare-statistics")
    scenario = load(resume / "scenario.toml")
    assert not isinstance(scenario, ErmScenario)  # none is begun as a comparison
    return scenario


def attacked_again(resume: Path) -> tuple[AttackScenario, Path | None]:
    """The scenario of a replay that is to be gone on with, and where its trained runs lie if not in it.

    Args:
        resume: Its directory.

    Raises:
        InputError: nothing was begun in it, or something else.
    """
    stored = begun_in(resume, "replay")["facts"].get("stored")
    scenario = load(resume / "scenario.toml")
    if not isinstance(scenario, AttackScenario):
        raise InputError(
            f"{resume / 'scenario.toml'}: has no [attacks.NAME] any more: changed since it began."
        )
    return scenario, None if stored is None else Path(stored)


def one_of(command: str, scenario: str | None, resume: Path | None, beside: Mapping[str, object]) -> None:
    """Refuses a command that is to begin something and to go on with something, or neither.

    Args:
        command: Its name: "run", "compare" or "replay".
        scenario: What to begin.
        resume: What to go on with.
        beside: Options, by name, that only a beginning has; false where they were not given.

    Raises:
        InputError: both, none, or one with options of the other.
    """
    if (scenario is None) == (resume is None):
        raise InputError(
            f"fedprivacy {command}: give a SCENARIO to start (`fedprivacy scenarios` lists them), "
            f"or else --resume {'RUN' if command == 'run' else 'DIR'} to go on with one."
        )
    if resume is not None and any(beside.values()):
        *most, last = beside
        raise InputError(
            f"--resume: a {'comparison' if command == 'compare' else command} goes on with its own scenario, "
            f"where it is; leave out {', '.join(most)} and {last}."
        )


def seed_of(text: str | None, seeds: int = 1) -> int | None:
    """The seed that `--seed` gives: a number, or one that nobody can guess.

    Args:
        text: A whole number, "random", or None.
        seeds: How many seeds a comparison counts up from it.

    Raises:
        InputError: it is neither, or too large.
    """
    most = MAX_SEED - seeds + 1
    if text is None:
        return None
    if text == "random":
        return secrets.randbelow(most + 1)
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > most:
        raise InputError(f"--seed {text}: must be a whole number from 0 to {most}, or random.")
    return int(text)


def command_again(seed: int | None) -> str:
    """The command that was given, so that it gives the same numbers again.

    Args:
        seed: The seed that takes the place of `--seed random`.
    """
    given = list(sys.argv[1:])
    for at, word in enumerate(given):
        if word == "--seed=random" or (word == "random" and given[at - 1] == "--seed"):
            given[at] = word.replace("random", str(seed))
    return shlex.join(["fedprivacy", *given])


def _keys(path: str, value: Any) -> Iterator[str]:
    """The keys that an override sets, each table by its own."""
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, item in value.items():
        yield from _keys(f"{path}.{key}", item)
