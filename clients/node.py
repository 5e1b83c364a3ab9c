"""The clients of a node, their scenario, and the settings of the node's owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from flwr.app import Context

from clients.budget_account import enter_plan
from clients.erm import Silos
from clients.error_filter import kind, log
from clients.fleet import Fleet, hosts_here
from clients.owner import Owner
from clients.participation_ledger import Account
from clients.statistics import StatisticsClients
from fedprivacy.data import npz
from fedprivacy.errors import InputError, Refusal
from fedprivacy.population.clients import Population
from fedprivacy.population.on_nodes import agreed_sizes, of_node
from fedprivacy.randomness.system import SEEDED, check_noise, streams_for
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.bundled import code_allowed, own_scenario, scenario_of_app
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.rules.personal import NO_PERSONAL_MODELS
from fedprivacy.scenario.statistics import Statistics

Clients = Fleet | StatisticsClients | Silos
NOBODY = Owner()  # has said nothing


@dataclass(frozen=True)
class NodeClients:
    """The clients of a node.

    Args:
        clients: The clients of the scenario, of whom those on `hosts` live here.
        hosts: The logical hosts that the node serves.
        owner: Its owner's settings: none, in a simulation.
        account: The account of their participations; None: Flower's node state.
        observe: What its own scenario allows a server to see: "sum" or "each"; for statistics only sums.
    """

    clients: Clients
    hosts: list[int]
    owner: Owner = NOBODY
    account: Account | None = None
    observe: str = "sum"

    @property
    def pinned(self) -> bool:
        """Whether the node holds its plan itself."""
        return self.owner.pinned

    def greet(self) -> None:
        """Says in the node's log what its owner has to know when a run begins."""
        for warning in self.owner.warnings(self.hosts):
            log(warning)
        if self.account is not None:
            answered = len(self.account.read())
            words = f"clients who have answered before: {answered}" if answered else "begins, empty"
            log(f"account {self.account.file}: {words}")


def clients_of_node(context: Context) -> NodeClients:
    """The clients of a Flower node: by its own scenario, or else by that of the run.

    Raises:
        Refusal: if the owner's configuration, scenario, data or account cannot be used.
        InputError: if the run's scenario cannot be, on a node without one.
    """
    owner = Owner.of(context.node_config)
    if owner.scenario is None:
        noise = owner.noise or check_noise(context.run_config.get("noise", SEEDED), "run config")
        clients = _of_run(str(context.run_config["scenario"]), code_allowed(context.run_config), noise)
        return NodeClients(clients, clients.hosts_of(context.node_config), owner)
    with kind("scenario"):
        scenario = own_scenario(owner.scenario, owner.named)
    with kind("node-config"):
        hosts = hosts_here(scenario.federation.hosts, context.node_config)
    with kind("data"):
        stamp = None if owner.data is None else npz.stamp(owner.data)
    clients = _of_owner(owner, tuple(hosts), stamp)
    assert owner.home is not None  # it is pinned
    account = Account.open(owner.home, scenario)
    if owner.account is not None:
        assert owner.noise is not None
        enter_plan(owner.account, account, scenario, clients, owner.noise)
    observe = getattr(scenario.federation, "observe", "sum")
    return NodeClients(clients, hosts, owner, account, observe)


@lru_cache(maxsize=2)
def _of_run(source: str, allow_code: bool, noise: str) -> Clients:
    return _clients(scenario_of_app(source), allow_code, noise)


@lru_cache(maxsize=4)
def _of_owner(owner: Owner, hosts: tuple[int, ...], stamp: tuple[str, int, int] | None) -> Clients:
    """The clients of a pinned node; `stamp` changes when its records do."""
    assert owner.scenario is not None  # it is pinned,
    assert owner.noise is not None  # so that this is known
    scenario = own_scenario(owner.scenario, owner.named)
    if not isinstance(scenario.data, OnNodes):
        if owner.data is not None:
            raise Refusal(
                f"node config: data = {owner.data}: the node's scenario has data of its own. Leave it out, "
                'or pin a scenario with data.name = "on-nodes".',
                "node-config",
            )
        with kind("scenario"):
            return _clients(scenario, owner.allow_code, owner.noise)
    if owner.data is None:
        raise Refusal(
            "node config: the node's scenario says that records are on nodes, and this one was given none. "
            "Add data = PATH.",
            "node-config",
        )
    assert isinstance(scenario, Scenario)  # the only kind whose records may be on nodes
    exact = scenario.privacy.unit == "example" and scenario.privacy.adjacency != "add-remove"
    clients = np.arange(scenario.population)
    with kind("data"):
        here = clients[np.isin(clients % scenario.federation.hosts, hosts)]
        people = of_node(scenario.data, owner.data, here, exact=exact)
    with kind("scenario"):
        return _clients(scenario, owner.allow_code, owner.noise, people)


def _clients(
    scenario: AnyScenario, allow_code: bool, noise: str, people: Population | None = None
) -> Clients:
    return CLIENTS[scenario.kind](scenario, allow_code, noise, people)


def _fleet(scenario: Scenario, allow_code: bool, noise: str, people: Population | None) -> Fleet:
    if noise != SEEDED and scenario.training.trainer == "opacus":
        raise InputError(
            'training.trainer = "opacus": torch draws its noise, from 64 bits alone, and not the operating '
            'system. Set trainer = "fedprivacy".'
        )
    if scenario.training.personal is not None:
        raise InputError(f"training.personal: {NO_PERSONAL_MODELS}")
    # Rates and denominators use the agreed record counts, never those of the node's file.
    agreed = isinstance(scenario.data, OnNodes) and scenario.privacy.unit == "example"
    sizes = agreed_sizes(scenario.data) if agreed and isinstance(scenario.data, OnNodes) else None
    fleet = Fleet.of(scenario, people, sizes=sizes, allow_code=allow_code)
    return replace(fleet, streams=streams_for(noise, fleet.streams))


def _statistics_clients(
    scenario: Statistics, allow_code: bool, noise: str, people: Population | None
) -> StatisticsClients:
    clients = StatisticsClients.of(scenario)
    return replace(clients, streams=streams_for(noise, clients.streams))


def _silos(scenario: ErmScenario, allow_code: bool, noise: str, people: Population | None) -> Silos:
    silos = Silos.of(scenario)
    return replace(silos, study=silos.study.drawing(streams_for(noise, silos.study.streams)))


# Kind of scenario -> the clients that live on a node: from the scenario, whether it may run code, the source
# of noise, and the node's own records, if it has some.
CLIENTS: Mapping[str, Callable[[Any, bool, str, Population | None], Clients]] = {
    Scenario.kind: _fleet,
    Statistics.kind: _statistics_clients,
    ErmScenario.kind: _silos,
}
