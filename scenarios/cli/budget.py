"""The `fedprivacy budget` commands, made from the options in `scenarios/budgets/command_options.py`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from scenarios.budgets.command_options import COMMANDS, Help, Options
from scenarios.budgets.libraries.registry import LIBRARIES, Entry
from scenarios.cli.output import Json, print_answer

app = typer.Typer(
    help="Epsilon to noise and back, for each mechanism; what composition, groups and shuffling do to it; "
    "and the cost of other libraries' settings.",
    no_args_is_help=True,
)


def command_of(options: type[Options]) -> Callable[..., None]:
    """Returns the function that typer makes a command of: one parameter for each option, then `--json`."""

    def command(*, json_: bool, **values: Any) -> None:
        from scenarios.cli.display import show_budget

        module, name = options.question.split(".")
        question = getattr(import_module(f"scenarios.budgets.{module}"), name)
        print_answer(question(**values).document(), json_, show_budget)

    parameters = [
        *_parameters(options),
        inspect.Parameter("json_", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json),
    ]
    command.__doc__ = options.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def command_of_library(entry: Entry) -> Callable[..., None]:
    """Returns the command that reads a library's settings."""

    def command(
        settings: Annotated[
            list[str],
            typer.Argument(metavar="[FILE] [KEY=VALUE]...", help="A file of settings, and settings."),
        ],
        adjacency: Annotated[
            str | None,
            typer.Option(
                help="replace-one, add-remove or zero-out.",
                show_default="add-remove for Opacus and pfl, else replace-one",
            ),
        ] = None,
        verbose: Annotated[
            bool, typer.Option("--verbose", help="Print every guarantee with its assumptions.")
        ] = False,
        json_: Json = False,
    ) -> None:
        from scenarios.cli.display_libraries import show_library

        document = entry.load().document(settings, adjacency)
        print_answer(document, json_, lambda stated: show_library(stated, verbose))

    command.__doc__ = entry.help
    return command


def _parameters(options: type[Options]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    for field in dataclasses.fields(options):
        kind, info = hints[field.name].__origin__, hints[field.name].__metadata__[0]
        assert isinstance(info, Help)
        flag = [f"--{field.name.replace('_', '-')}"] if kind is bool else []  # without its negation
        option = typer.Option(*flag, help=info.text, show_default=info.default or True)
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
        )


for _options in COMMANDS:
    app.command(_options.mechanism)(command_of(_options))
for _entry in LIBRARIES:
    app.command(_entry.name)(command_of_library(_entry))
