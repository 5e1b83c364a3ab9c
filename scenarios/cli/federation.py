"""`fedprivacy federation`: a local SuperLink with SuperNodes, to try deployments."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from scenarios.cli.output import Json, print_answer

app = typer.Typer(
    help="Start and stop a local Flower federation, a SuperLink and SuperNodes, to try deployments.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path, typer.Option("--dir", metavar="FOLDER", help="A folder for the state of this federation alone.")
]
PORT_SAYS = (
    "Its Control port has no login: every account of this machine can submit a run to it, and a run is code "
    "that executes here as you."
)


@app.command()
def up(
    nodes: Annotated[int, typer.Option(help="How many SuperNodes.")] = 3,
    tls: Annotated[
        bool, typer.Option("--tls", help="Encrypt, and let only nodes with registered keys join.")
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="The plan that each node pins; without it, nodes follow the submitted one.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The records of a node, once for each node, where data are on nodes.",
        ),
    ] = None,
    seeded_noise: Annotated[
        bool, typer.Option("--seeded-noise", help="Draw noise from the scenario's seed. For tests only.")
    ] = False,
    folder: Folder = Path("federation"),
    port: Annotated[int, typer.Option(help="The SuperLink's port; each node takes one of the next.")] = 18000,
) -> None:
    """Start a SuperLink and SuperNodes on loopback, and return when all nodes are online."""
    from fedprivacy.scenario.erm import ErmScenario
    from scenarios.cli.kind_registry import scenario_for
    from scenarios.engines.bundle import with_absolute_paths
    from scenarios.federation import local
    from scenarios.federation.state import FOLDER, SEEDED_WARNING

    requested = None if scenario is None else scenario_for("federation up", scenario, None, None)
    assert not isinstance(requested, ErmScenario)  # refused, because only `fedprivacy run` takes it
    pinned = None if requested is None else with_absolute_paths(requested)
    if seeded_noise:
        print(SEEDED_WARNING, file=sys.stderr)
    started = local.up(
        folder,
        nodes,
        tls=tls,
        scenario=pinned,
        data=data or [],
        seeded=seeded_noise,
        port=port,
        say=lambda line: print(line, file=sys.stderr),
    )
    where = "" if folder == FOLDER else f" --federation {shlex.quote(str(folder))}"
    which = "" if folder == FOLDER else f" --dir {shlex.quote(str(folder))}"
    lock = "TLS, nodes known by their keys" if tls else "not encrypted, any node may join"
    print(f"{nodes} node{'' if nodes == 1 else 's'} online, SuperLink on {started.address} ({lock}).")
    plan = "each node pins this plan" if scenario else "nodes follow the plan of a submitted run"
    print(f"Noise: {started.noise}; {plan}.")
    print(PORT_SAYS)
    print(f"Run:  fedprivacy run {scenario or 'SCENARIO'} --engine superlink{where}")
    print(f"Stop: fedprivacy federation down{which}")
    print(f"Logs: {folder / 'logs'}")


@app.command()
def status(folder: Folder = Path("federation"), json_: Json = False) -> None:
    """Report whether the federation of a folder is up, with all its nodes."""
    from scenarios.federation import local

    document = local.status(folder)
    print_answer(document, json_, _show)
    if not document["whole"]:
        raise typer.Exit(1)


@app.command()
def down(folder: Folder = Path("federation")) -> None:
    """Stop every process of the federation of a folder. Budgets, logs and records stay."""
    from scenarios.federation import local
    from scenarios.federation.state import read

    there = read(folder) is not None
    ended = local.down(folder)
    if there:
        print(f"Ended {ended} process{'' if ended == 1 else 'es'}; none is left. {folder} may be removed.")
    else:
        print(f"{folder}: no federation is running here.")


@app.command()
def roster(
    keys: Annotated[
        list[Path], typer.Argument(metavar="KEY.pub...", help="The public key of each client's node, from 0.")
    ],
) -> None:
    """Print the roster of nodes with these keys, which each owner installs to sum under masks."""
    from scenarios.federation.keys import roster_of_files

    print(roster_of_files(keys), end="")


def _show(document: dict[str, Any]) -> None:
    print(f"SuperLink on {document['address']}, {document['online']} of {document['nodes']} nodes online")
    for name, runs in document["processes"].items():
        print(f"- {name}: {'running' if runs else 'ended'}")
    if document["noise"] == "seeded":
        from scenarios.federation.state import SEEDED_WARNING

        print(SEEDED_WARNING)
    print(PORT_SAYS)
    if document["problem"]:
        print(document["problem"])
