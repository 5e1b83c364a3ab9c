"""From the arguments of a call to the scenario that a file would give."""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import tomli_w

from fedprivacy.errors import InputError, Problem, ScenarioError
from fedprivacy.scenario.loading import SCENARIOS, AnyScenario, kind_of, loads
from fedprivacy.scenario.option_names import settings_named
from scenarios.api.data_argument import People
from scenarios.api.models import is_object, settings_of
from scenarios.authoring.brought_data import Brought
from scenarios.cli.changed_texts import with_changes_noted
from scenarios.cli.kind_registry import kind_of as handling_of
from scenarios.cli.kind_registry import scenario_for
from scenarios.jobs.outcome import IN_MEMORY

# Arguments that are not the last part of a key, or of several keys -> the key that they set.
KEYS: Mapping[str, str] = {
    "trust": "privacy.trust",
    "epsilon": "privacy.epsilon",
    "delta": "privacy.delta",
    "unit": "privacy.unit",
    "adjacency": "privacy.adjacency",
    "rounds": "server.rounds",
    "optimizer": "server.optimizer",
    "learning_rate": "training.learning_rate",
    "server_learning_rate": "server.learning_rate",
    "momentum": "training.momentum",
    "trusts": "compare.trusts",
    "units": "compare.units",
    "epsilons": "compare.epsilons",
    "seeds": "compare.seeds",
    "mechanisms": "compare.mechanisms",
    "mechanism": "privacy.mechanism",
}
Source = Any  # a ready name, a file, People or a scenario


class _Mistake(InputError):
    """A mistake in one argument, gathered with those of the others."""

    def __init__(self, key: str, what: str, remedy: str = "") -> None:
        self.problem = Problem(key, what, remedy)
        super().__init__(str(self.problem))


@dataclass(frozen=True)
class Request:
    """What a call asks to run.

    Args:
        scenario: The scenario, complete.
        command: The command that reproduces it; empty where Python objects are in it.
        allow_code: Whether a scenario file may run its code.
        people: The records, so that their temporary file stays as long as the request.
    """

    scenario: AnyScenario
    command: str
    allow_code: bool
    people: People | None = None


def request(
    command: str,
    source: Source,
    settings: Mapping[str, Any],
    *,
    seed: int | None,
    allow_code: bool = False,
    options: Sequence[tuple[str, Any]] = (),
) -> Request:
    """Returns the scenario of a call.

    Args:
        command: The command that runs such scenarios: "run", "compare", "replay", "audit" or "tune".
        source: The name of a ready scenario, the path of a file, a scenario, or `People`.
        settings: Arguments by keyword: short names (`epsilon`), names of keys that are there once
            (`clipping_norm`), or whole keys in `set`.
        seed: The seed; None for the scenario's own.
        allow_code: Whether a scenario file may run its code.
        options: Further options of the command and their values, for the record.

    Raises:
        ScenarioError: with every mistake of the scenario and the arguments.
    """
    if not isinstance(source, str | os.PathLike | People) and type(source) not in SCENARIOS.values():
        raise InputError(
            f"{type(source).__name__}: no scenario. Give the name of a ready one, the path of a file, a "
            "scenario, or the result of fedprivacy.people."
        )
    model = settings.get("model")
    labels: dict[str, str] = {}
    overrides: list[str] = []
    kind = _kind(source)
    problems: list[Problem] = []
    for name, value in settings.items():
        try:
            for key, item in _settings(name, value, kind):
                text = f"{key}={_toml(item)}"
                overrides.append(text)
                labels[f"--set {text}"] = f"{name}={value!r}" if name != "set" else f"{key}={item!r}"
        except _Mistake as mistake:
            problems.append(mistake.problem)
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral)):
        problems.append(Problem(f"seed={seed!r}", "not a whole number", "Give one from 0, or None."))
        seed = None
    objects = is_object(model) or (isinstance(source, People) and source.temporary)
    try:
        if isinstance(source, str | os.PathLike):
            scenario = scenario_for(command, str(source), overrides, seed)
        else:
            text = _people_text(source) if isinstance(source, People) else source.to_toml()
            seeded: list[str] = [] if seed is None else [f"seed={seed}"]
            name = "people" if isinstance(source, People) else source.name
            scenario = loads(text, name, [*overrides, *seeded])
            handling_of(scenario).check_command(command, name)
            if not isinstance(source, People) or "unit" in settings:
                scenario = with_changes_noted(scenario, overrides, command)
    except ScenarioError as error:
        others = [replace(each, key=labels.get(each.key, each.key)) for each in error.problems]
        raise ScenarioError([*problems, *others]) from None
    except InputError:
        if problems:
            raise ScenarioError(problems) from None
        raise
    if problems:
        raise ScenarioError(problems)
    if objects:
        scenario = scenario.model_copy(update={"description": _of_objects(scenario, source, model)})
        if isinstance(source, People):  # its temporary file goes with the last object that needs it
            weakref.finalize(scenario, _release, source).atexit = False
    line = _command_line(command, source, overrides, seed, allow_code, options)
    return Request(
        scenario,
        "" if objects or line is None else line,
        allow_code,
        source if isinstance(source, People) else None,
    )


def _release(people: People) -> None:
    """Holds records until here."""


def _kind(source: Source) -> type[AnyScenario]:
    """Returns the kind of scenario that a source is, a training where it cannot be read."""
    from fedprivacy.scenario import reading
    from scenarios.authoring.catalogue import find

    if isinstance(source, str | os.PathLike):
        try:
            return kind_of(reading.read_text(find(str(source))))
        except InputError:
            return kind_of("")
    return kind_of("") if isinstance(source, People) else type(source)


def _settings(name: str, value: Any, kind: type[AnyScenario]) -> Iterator[tuple[str, Any]]:
    """Returns the keys that an argument sets, and their values."""
    if name == "set":
        try:
            yield from dict(value).items()
        except (TypeError, ValueError):
            raise _Mistake(name, f"{value!r} is no dictionary", "Give keys and their values.") from None
    elif name == "model":
        try:
            yield from settings_of(value).items()
        except InputError as error:
            where, _, problem = str(error).partition(": ")
            raise _Mistake(where, problem) from None
    elif name == "rate":
        yield from (("sampling.name", "poisson"), ("sampling.rate", value))
    elif name == "cohort":
        yield from (("sampling.name", "fixed"), ("sampling.cohort", value))
    elif name in KEYS:
        yield KEYS[name], value
    else:
        named = [text.partition("=")[0] for text in settings_named(name, "", kind)]
        exact = [key for key in named if key.rpartition(".")[2] == name]
        if len(exact) != 1:
            problem = "several keys have this name" if exact else "no such setting"
            names = exact or named or [*KEYS, "model", "rate", "cohort"]
            raise _Mistake(name, problem, f"Choose from {', '.join(names)}; keys go in set = {{...}}.")
        yield exact[0], value


def _toml(value: Any) -> str:
    """Returns a value as TOML.

    Raises:
        _Mistake: if TOML has no such value.
    """
    if isinstance(value, tuple | set | range):
        value = list(value)
    if hasattr(value, "item") and not isinstance(value, list | dict | str):  # a number of numpy
        value = value.item()
    try:
        text = tomli_w.dumps({"value": {"value": value} if isinstance(value, dict) else value})
    except TypeError as error:
        raise _Mistake(
            f"{value!r}", f"no value of a scenario: {error}", "Give numbers, texts or lists."
        ) from None
    if isinstance(value, dict):
        pairs = (f"{_toml_key(key)} = {_toml(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return " ".join(text.partition("=")[2].split("\n")).strip()


def _toml_key(key: str) -> str:
    return tomli_w.dumps({key: 0}).partition(" =")[0]


def _people_text(people: People) -> str:
    return Brought(
        name="people",
        path=str(people.path.absolute()),
        facts=people.facts,
        bounds=people.bounds,
        read=people.read,
        owners=people.owners,
    ).text()


def _of_objects(scenario: AnyScenario, source: Source, model: Any) -> str:
    """Returns the description of a scenario with Python objects in it: what a record of it lacks."""
    parts = []
    if isinstance(source, People) and source.temporary:
        parts.append("the records, which were arrays in Python")
    if is_object(model):
        parts.append("the model, which was an object in Python")
    return f"{scenario.description} {IN_MEMORY}{' and '.join(parts)}.".strip()


def _command_line(
    command: str,
    source: Source,
    overrides: list[str],
    seed: int | None,
    allow_code: bool,
    options: Sequence[tuple[str, Any]],
) -> str | None:
    """Returns the command that does the same, None where no file holds the scenario."""
    if not isinstance(source, str | os.PathLike):
        return None
    words = ["fedprivacy", command, str(source)]
    for text in overrides:
        words += ["--set", text]
    for option, value in options:
        words += [option, str(value)]
    if seed is not None:
        words += ["--seed", str(seed)]
    return shlex.join([*words, *(["--allow-code"] if allow_code else [])])


def out_of(out: str | Path) -> Path:
    """Returns the folder of run directories, once it is known to be writable.

    Raises:
        InputError: if it is not.
    """
    from fedprivacy.records.run_directory import check_out

    path = Path(out)
    check_out(path)
    return path
