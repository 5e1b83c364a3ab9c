"""The `fedprivacy` command: all its commands, its messages and its exit codes.

Heavy imports (torch, Flower, the accountants) happen inside the commands, so that help is instant.
Exit codes: 0 done, 1 the run failed, 2 the input is wrong, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import click
import typer

from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.terminal import guard_streams
from scenarios.cli.account import app as account_app
from scenarios.cli.attack_commands import audit, replay, risk
from scenarios.cli.budget import app as budget_app
from scenarios.cli.compare import compare
from scenarios.cli.federation import app as federation_app
from scenarios.cli.file_commands import doctor, import_table, new, report, scenarios
from scenarios.cli.plan import plan
from scenarios.cli.reproduce import reproduce
from scenarios.cli.run import run
from scenarios.cli.stored_commands import diff, export, list_runs, rm, show, tag
from scenarios.cli.tune import tune

if TYPE_CHECKING:
    from fedprivacy.scenario.loading import AnyScenario

# In the order of the help.
COMMANDS: tuple[Callable[..., None], ...] = (
    run, compare, plan, tune, replay, risk, audit, reproduce, scenarios, new, import_table, report,
    list_runs, show, diff, export, tag, rm, doctor,
)  # fmt: skip

app = typer.Typer(
    name="fedprivacy",
    help="Simulate federated learning with differential privacy, and state who is protected from whom.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _command in COMMANDS:
    app.command(_command.__name__.partition("_")[0])(_command)
app.add_typer(budget_app, name="budget")
app.add_typer(account_app, name="account")
app.add_typer(federation_app, name="federation")


# Errors of a given file name, rather than of the machine.
_NAME_ERRORS = {
    errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.EACCES, errno.EPERM,
}  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        from fedprivacy import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate federated learning with differential privacy, and state who is protected from whom."""


def main() -> None:
    """Runs the command; errors of the user or the machine end without a traceback."""
    signal.signal(signal.SIGTERM, _interrupt)
    guard_streams()
    sys.exit(_exit_code())


def _exit_code() -> int:
    """Runs the command and returns its exit code."""
    try:
        code = app(prog_name="fedprivacy", standalone_mode=False) or 0
        sys.stdout.flush()
        return int(code)
    except KeyboardInterrupt:  # before typer runs; within a command typer itself exits with 130
        return 130
    except click.ClickException as error:
        if error.format_message():  # empty where a command without arguments printed its help
            print(_message(error), file=sys.stderr)
        return error.exit_code
    except FedPrivacyError as error:
        if str(error):
            # A quoted text may have several lines: indented, none of them looks like a message of ours.
            print(error if error.several else str(error).replace("\n", "\n    "), file=sys.stderr)
        return error.exit_code
    except OSError as error:  # that no caller explained
        named = error.errno in _NAME_ERRORS and error.filename is not None
        where = on_one_line(str(error.filename)) if error.filename else "fedprivacy"
        remedy = "Files written before are complete."
        if named:  # links are followed neither for writing nor for removing
            remedy = "It is a link: remove it." if os.path.islink(error.filename) else "Choose another name."
        print(f"{where}: {error.strerror or error}. {remedy}", file=sys.stderr)
        return 2 if named else 1


def _message(error: click.ClickException) -> str:
    """Returns a message about a wrong option or argument on one line: where, problem, remedy."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "fedprivacy"
    problem = error.format_message().strip().rstrip(".")
    # Newer versions of click guess too, which repeats typer's guess.
    problem = re.sub(r"( Did you mean [^?]+\?)\1$", r"\1", problem)
    problem = problem.replace("a valid integer", "a whole number").replace("a valid float", "a number")
    problem = on_one_line(re.sub(r"(?<=[:,])\n\t", " ", problem))  # click's lists of choices have lines
    if isinstance(error, click.NoSuchOption) and (setting := _setting(error)):
        option = on_one_line(error.option_name)
        return f"{where}: no such option '{option}': a key of the scenario. Give it as {setting}."
    end = "" if problem.endswith(("?", "?)")) else "."
    return f"{where}: {problem[:1].lower()}{problem[1:]}{end} `{where} --help` lists the options."


def _setting(error: click.NoSuchOption) -> str:
    """Returns the `--set` for a scenario key that was given as an option; empty if it is no key."""
    from fedprivacy.scenario.option_names import settings_named

    if error.ctx is None or not any("--set" in option.opts for option in error.ctx.command.params):
        return ""
    value = "VALUE"
    for at, word in enumerate(sys.argv):
        name, given, after = word.partition("=")
        if name == error.option_name:
            following = [each for each in sys.argv[at + 1 : at + 2] if not each.startswith("--")]
            value = after if given else next(iter(following), value)
    settings = settings_named(error.option_name, value, _kind_of_scenario())
    return " or ".join(f"--set {on_one_line(shlex.quote(setting))}" for setting in settings)


def _kind_of_scenario() -> type[AnyScenario]:
    """Returns the kind of the scenario on the command line; training by default."""
    from fedprivacy.scenario import Scenario, reading
    from fedprivacy.scenario.loading import kind_of
    from scenarios.authoring.catalogue import find

    for word in sys.argv[2:]:
        with contextlib.suppress(InputError):  # another word
            return kind_of(reading.read_text(find(word)))
    return Scenario


def _interrupt(number: int, frame: object) -> None:
    """Treats SIGTERM, which job schedulers send, like Ctrl-C, so that a run leaves the same record."""
    raise KeyboardInterrupt
