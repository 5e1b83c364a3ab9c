"""Every command with its arguments and options, read off the command line's own definition."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import typer

from generators.text import code, plain, table
from scenarios.cli.main import app


def markdown() -> str:
    """Returns a heading for each command, with its usage, its description and a table of options."""
    root = typer.main.get_command(app)
    assert isinstance(root, click.Group)
    return "\n".join(_group(root, "fedprivacy", 2))


def _group(group: click.Group, path: str, level: int) -> Iterator[str]:
    for name, command in group.commands.items():
        here = f"{path} {name}"
        yield from (f"{'#' * level} {here}", "")
        yield from _description(command.help or "")
        if isinstance(command, click.Group):
            yield from _group(command, here, level + 1)
            continue
        yield from ("```text", _usage(command, here), "```", "")
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if rows := [(code(_names(each)), plain(_help(each))) for each in options if each.name != "help"]:
            yield from table(("option", "meaning"), rows)


def _description(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        yield from (plain(re.sub(r"\[/?[a-z ]+\]", "", paragraph)), "")


def _usage(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path)
    return " ".join([path, *command.collect_usage_pieces(context)])


def _names(option: click.Option) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    if option.is_flag or option.count:
        return names
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    return f"{names} {option.metavar or '|'.join(map(str, choices)) or option.type.name.upper()}"


def _help(option: click.Option) -> str:
    text = option.help or ""
    default = option.show_default if isinstance(option.show_default, str) else option.default
    if option.required:
        text += " Needed."
    elif default not in (None, False, (), [], "") and not callable(default):
        text += f" Default: `{default}`."
    return text
