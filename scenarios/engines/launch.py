"""The engines that run Flower apps: their options, and how each is started.

No other module knows all engines. `Launched` holds what a run needs of one: a Flower Grid, and the view of a
simulation on its nodes. The bits of a run do not depend on the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedprivacy.errors import InputError
from fedprivacy.io.install_hint import install
from fedprivacy.io.processes import cores

if TYPE_CHECKING:  # torch and Flower are imported when a run begins, so that help is instant
    from flwr.serverapp import Grid
    from numpy.typing import NDArray

    from clients.erm import Silos
    from clients.fleet import Fleet
    from clients.worker_pool import WorkerPool
    from fedprivacy.scenario import Scenario
    from fedprivacy.scenario.erm import ErmScenario
    from scenarios.engines.simulated_grid import SimulatedGrid
    from server.app import NodeView

MOST_WORKERS = 1024


@dataclass(frozen=True)
class Engine:
    """The engine of a run and its options; `engine_of` checks those of a user.

    Args:
        name: One of `OPENERS`.
        workers: Processes that train clients; 0 on an existing Ray cluster: as many as fit there.
        gpus_per_worker: On Ray, the share of a GPU that each gets; 0 for none.
        ray_address: The Ray cluster to run on; None starts one for the run, on this machine.
    """

    name: str = "embedded"
    workers: int = 1
    gpus_per_worker: float = 0.0
    ray_address: str | None = None


EMBEDDED = Engine()  # in this process alone


@dataclass(frozen=True)
class Launched:
    """A running engine.

    Args:
        grid: The Flower grid, which reaches the nodes.
        view: The view of the simulation on the nodes.
        restore: Gives the nodes the state of a checkpoint (its tensors), before the first message.
        workers: How many processes train clients.
    """

    grid: Grid
    view: NodeView
    restore: Callable[[Mapping[str, NDArray[Any]]], None]
    workers: int


def engine_of(
    name: str,
    workers: int | None = None,
    gpus_per_worker: float | None = None,
    ray_address: str | None = None,
    superlink: str | None = None,
    root_certificates: Path | None = None,
    federation: Path | None = None,
    pinned: bool = False,
    roster: Path | None = None,
) -> Engine:
    """Returns the engine of the options that a user gave.

    Args:
        name: `--engine`.
        workers: `--workers`, None for one a core, on an existing cluster one for each of its CPUs.
        gpus_per_worker: `--gpus-per-worker`, for ray alone.
        ray_address: `--ray-address`, for ray alone.
        superlink: `--superlink`, for superlink alone, as the next two (`scenarios/federation/state.py`).
        root_certificates: `--root-certificates`.
        federation: `--federation`.
        pinned: `--pinned`, for superlink alone.
        roster: `--roster`, for superlink alone.

    Raises:
        InputError: if there is no such engine, or it is not installed, or an option is invalid.
    """
    if name not in (*OPENERS, *REMOTE):
        known = ", ".join((*OPENERS, *REMOTE))
        raise InputError(f"--engine {name}: unknown engine. Choose one of: {known}.")
    only_ray = {"--gpus-per-worker": gpus_per_worker, "--ray-address": ray_address}
    only_remote = {
        "--superlink": superlink,
        "--root-certificates": root_certificates,
        "--federation": federation,
        "--pinned": pinned or None,
        "--roster": roster,
    }
    if name in REMOTE and workers is not None:
        raise InputError(
            f"--workers {workers}: has no effect with --engine {name}, whose nodes do the work. Leave it out."
        )
    for option, place in only_remote.items():
        if name not in REMOTE and place is not None:
            raise InputError(f"{option}: only with --engine superlink; here it is {name}.")
    if name != "ray":
        for option, value in only_ray.items():
            if value is not None:
                raise InputError(f"{option} {value}: only with --engine ray; here it is {name}.")
    elif find_spec("ray") is None:
        raise InputError(f"--engine ray: needs the extra: {install('ray')}")
    if gpus_per_worker is not None and not (0 < gpus_per_worker <= 1 or gpus_per_worker in range(1, 65)):
        raise InputError(
            f"--gpus-per-worker {gpus_per_worker:g}: must be a share above 0 and up to 1, or a whole number."
        )
    many = check_workers(workers)
    if ray_address is not None and workers is None:
        many = 0
    return Engine(name, many, gpus_per_worker or 0.0, ray_address)


def check_workers(workers: int | None) -> int:
    """Returns the number of parallel processes: `--workers`, or one for each available core.

    Raises:
        InputError: if it is out of range.
    """
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise InputError(
            f"--workers {workers}: must be from 1 to {MOST_WORKERS}. Leave it out for one a core."
        )
    return workers or cores()


def only_embedded(name: str, command: str) -> None:
    """Refuses engines other than the embedded one, for a command that does not support them.

    Args:
        name: `--engine`.
        command: The subject of the message, as "statistics run".

    Raises:
        InputError: if it is another engine.
    """
    engine_of(name)
    if name != "embedded":
        raise InputError(f"--engine {name}: {command} on the embedded engine only; leave --engine out.")


def launched(
    engine: Engine, scenario: Scenario, fleet: Fleet, *, allow_code: bool = False
) -> AbstractContextManager[Launched]:
    """Starts an engine for a run, to be used as a context; its processes end with it.

    Args:
        engine: Which.
        scenario: The scenario to run there.
        fleet: All clients of the scenario, with the run's plan.
        allow_code: Whether the scenario may run code (`--allow-code`).
    """
    return OPENERS[engine.name](engine, scenario, fleet, allow_code)


@contextmanager
def _embedded(engine: Engine, scenario: Scenario, fleet: Fleet, allow_code: bool) -> Iterator[Launched]:
    from clients.app import faults_of, make_app
    from clients.worker_pool import WorkerPool
    from scenarios.engines.embedded import EmbeddedGrid
    from server.app import NodeView

    with WorkerPool(engine.workers) as pool:
        grid = EmbeddedGrid(make_app(fleet, pool=pool), [{"partition-id": 0, "num-partitions": 1}])
        view = NodeView(
            grid.node_states,
            lambda round: faults_of(grid.states.values(), round),
            personal=_personal(scenario, fleet, grid, pool),
        )
        yield Launched(grid, view, grid.restore_node_states, pool.workers)


@contextmanager
def _ray(engine: Engine, scenario: Scenario, fleet: Fleet, allow_code: bool) -> Iterator[Launched]:
    from clients.app import faults_of
    from clients.state_merge import changes, merged
    from clients.worker_pool import WorkerPool
    from scenarios.engines.fleet_app import fleet_app, stops_clients
    from scenarios.engines.ray_cluster import OPEN_PORTS, cluster
    from server.app import NodeView

    if (fleet.device == "cuda") != (engine.gpus_per_worker > 0):
        raise InputError(
            f'--gpus-per-worker {engine.gpus_per_worker:g}: set it exactly if training.device = "cuda"; '
            f'here the device is "{fleet.device}".'
        )
    make_app = partial(
        fleet_app, scenario.to_toml(), fleet.plan.to_json(), fleet.streams.run, allow_code=allow_code
    )
    with cluster(engine.workers, engine.gpus_per_worker, engine.ray_address) as room:
        print(OPEN_PORTS, file=sys.stderr)
        from scenarios.engines.ray_grid import RayGrid
        from scenarios.engines.ray_worker_pool import Workers

        with Workers(room, make_app, changes) as workers:
            nodes = [{"partition-id": 0, "num-partitions": 1}]
            grid = RayGrid(workers, nodes, merge=merged, patient=stops_clients(fleet))
            view = NodeView(
                grid.node_states,
                lambda round: faults_of(grid.states.values(), round),
                lambda: grid.retried,
                _personal(scenario, fleet, grid, WorkerPool()),
            )
            yield Launched(grid, view, grid.restore_node_states, workers.count)


def _personal(
    scenario: Scenario, fleet: Fleet, grid: SimulatedGrid, pool: WorkerPool
) -> Callable[[NDArray[Any]], dict[str, Any] | None] | None:
    """Measures personal models of a simulation; None without any, or where test records are not read."""
    from clients.app import personal_states
    from clients.personal_evaluation import evaluate_personal

    if fleet.personal is None or scenario.evaluation.on != "test":
        return None

    def evaluated(model: NDArray[Any]) -> dict[str, Any] | None:
        states = personal_states(grid.states.values(), fleet)
        with pool:
            return evaluate_personal(fleet, states, model, scenario.data, pool)

    return evaluated


@contextmanager
def launched_silos(engine: Engine, scenario: ErmScenario, silos: Silos) -> Iterator[Grid]:
    """Starts an engine for a study of private estimates, to be used as a context.

    Args:
        engine: Which: embedded, where one node in this process has all silos; or ray, where each logical host
            is a node, and each worker serves one at a time.
        scenario: The scenario to run there.
        silos: All silos of the scenario.

    Raises:
        InputError: if the engine has a share of a GPU, which silos cannot use.
    """
    from clients.app import make_app

    if engine.name == "embedded":
        from scenarios.engines.embedded import EmbeddedGrid

        yield EmbeddedGrid(make_app(silos), [{"partition-id": 0, "num-partitions": 1}])
        return
    if engine.gpus_per_worker:
        raise InputError(
            f"--gpus-per-worker {engine.gpus_per_worker:g}: silos compute on CPUs; leave it out."
        )
    from scenarios.engines.ray_cluster import OPEN_PORTS, cluster
    from scenarios.engines.silo_app import silo_app

    hosts = silos.hosts
    app = partial(silo_app, scenario.to_toml(), silos.study.streams.run)
    with cluster(engine.workers, 0.0, engine.ray_address) as room:
        print(OPEN_PORTS, file=sys.stderr)
        from scenarios.engines.ray_grid import RayGrid
        from scenarios.engines.ray_worker_pool import Workers

        with Workers(room, app) as workers:
            yield RayGrid(workers, [{"partition-id": at, "num-partitions": hosts} for at in range(hosts)])


Opener = Callable[["Engine", "Scenario", "Fleet", bool], AbstractContextManager[Launched]]

# Engines whose ServerApp runs elsewhere: a run is submitted there, and its record sent back.
REMOTE = ("superlink",)
# A new engine has an entry here, and its options in `Engine` and `engine_of`.
OPENERS: dict[str, Opener] = {"embedded": _embedded, "ray": _ray}
