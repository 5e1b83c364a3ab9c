"""Resolves the other arguments of commands on scenarios: attacks, `--resume`, `--seed`."""

from __future__ import annotations

import re
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.records.run_directory import RunDirectory, read_document
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.loading import AnyScenario, load
from scenarios.cli.kind_registry import kind_of, scenario_for
from scenarios.jobs.manifest import MANIFEST, manifest_in


def attack_scenario(
    source: str, overrides: list[str] | None, names: list[str] | None, seed: int | None
) -> tuple[AttackScenario, Path | None]:
    """Returns the attack scenario to replay, and the directory of its trained runs, if any.

    Args:
        source: A ready name, a file, or the directory of an earlier replay.
        overrides: `--set` options.
        names: The attacks to run; None: all.
        seed: The seed of the first run.

    Raises:
        InputError: if it has no attacks, or not these, or an option would change the runs of a replay.
    """
    folder = Path(source)
    if (folder / MANIFEST).is_file() and not (folder / "run.json").is_file():
        manifest_in(folder, "replay")
        command = f"fedprivacy replay --resume {shlex.quote(source)}"
        raise InputError(f"{source}: has not finished. Resume it with: {command}")
    stored = folder if (folder / "run.json").is_file() else None
    scenario: AnyScenario
    if stored is not None:
        if read_document(stored / "run.json").get("kind") != "replay":
            raise InputError(f"{source}: not a replay. Give an attack scenario, or a replay of one.")
        others = [text for text in overrides or [] if not text.startswith("attacks.")]
        if others or seed is not None:
            changed = " ".join([*(f"--set {text}" for text in others), *([] if seed is None else ["--seed"])])
            raise InputError(
                f"{changed}: the runs of {source} are trained; only their attacks can be changed. "
                "Replay the scenario instead."
            )
        scenario = load(stored / "scenario.toml", overrides or [])
    else:
        scenario = scenario_for("replay", source, overrides, seed)
    if not isinstance(scenario, AttackScenario):
        raise InputError(f"{source}: has no [attacks.NAME]. `fedprivacy scenarios` lists those that have.")
    unknown = [name for name in names or [] if name not in scenario.attacks]
    if unknown:
        raise InputError(f"--attack {unknown[0]}: no such attack. There are: {', '.join(scenario.attacks)}.")
    chosen = {name: attack for name, attack in scenario.attacks.items() if not names or name in names}
    return scenario.model_copy(update={"attacks": chosen}), stored


def run_to_resume(resume: Path) -> AnyScenario:
    """Returns the scenario of an interrupted run.

    Args:
        resume: The run's directory.

    Raises:
        InputError: if there is no run in it, or the work of another command.
    """
    file = RunDirectory.open(resume).path / "scenario.toml"
    if (resume / MANIFEST).exists():
        manifest_in(resume, "run")  # names the command that resumes it
    scenario = load(file)
    kind_of(scenario).check_command("run", str(file))
    return scenario


def comparison_to_resume(resume: Path) -> AnyScenario:
    """Returns the scenario of an interrupted comparison.

    Args:
        resume: The comparison's directory.

    Raises:
        InputError: if there is no comparison in it.
    """
    manifest_in(resume, "compare", "compare-statistics")
    file = resume / "scenario.toml"
    scenario = load(file)
    kind_of(scenario).check_command("compare", str(file))
    return scenario


def replay_to_resume(resume: Path) -> tuple[AttackScenario, Path | None]:
    """Returns the scenario of an interrupted replay, and where its trained runs are, if elsewhere.

    Args:
        resume: The replay's directory.

    Raises:
        InputError: if there is no replay in it, or its scenario changed.
    """
    stored = manifest_in(resume, "replay")["facts"].get("stored")
    scenario = load(resume / "scenario.toml")
    if not isinstance(scenario, AttackScenario):
        raise InputError(
            f"{resume / 'scenario.toml'}: has no [attacks.NAME]; it changed since the replay started. "
            "Replay the scenario again."
        )
    return scenario, None if stored is None else Path(stored)


def check_start_or_resume(
    command: str, scenario: str | None, resume: Path | None, start_only: Mapping[str, object]
) -> None:
    """Checks that exactly one of SCENARIO and `--resume` is given, and only options that go with it.

    Args:
        command: The command, without `fedprivacy`.
        scenario: The scenario to start.
        resume: The run to resume.
        start_only: Options, by name, that do not go with `--resume`; false where they were not given.

    Raises:
        InputError: if not.
    """
    if (scenario is None) == (resume is None):
        raise InputError(
            f"fedprivacy {command}: give a SCENARIO to start (`fedprivacy scenarios` lists them), "
            f"or --resume {'RUN' if command == 'run' else 'DIR'} to resume one."
        )
    if resume is not None and any(start_only.values()):
        *others, last = start_only
        raise InputError(
            f"--resume: a {'comparison' if command == 'compare' else command} is resumed with its own "
            f"scenario, in its own directory. Leave out {', '.join(others)} and {last}."
        )


def seed_of(text: str | None, seeds: int = 1) -> int | None:
    """Returns the seed that `--seed` gives: a number, or for "random" one that nobody can guess.

    Args:
        text: A whole number, "random", or None.
        seeds: How many seeds a comparison counts up from it.

    Raises:
        InputError: if it is neither, or too large.
    """
    largest = MAX_SEED - seeds + 1
    if text is None:
        return None
    if text == "random":
        return secrets.randbelow(largest + 1)
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > largest:
        raise InputError(f"--seed {text}: must be a whole number from 0 to {largest}, or random.")
    return int(text)


def reproducing_command(seed: int | None) -> str:
    """Returns the command line of this process, with the drawn seed in place of `--seed random`.

    Args:
        seed: The drawn seed.
    """
    arguments = list(sys.argv[1:])
    for at, word in enumerate(arguments):
        if word == "--seed=random" or (word == "random" and arguments[at - 1] == "--seed"):
            arguments[at] = word.replace("random", str(seed))
    return shlex.join(["fedprivacy", *arguments])
