"""What scenarios release at most, known before their work begins: the plans that an account charges."""

from __future__ import annotations

import hashlib
import json
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.account.entry import Ledgers, PlannedWork
from fedprivacy.account.populations import PopulationIds
from fedprivacy.data import npz
from fedprivacy.erm.study.people import records, study_streams
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.population.on_nodes import known
from fedprivacy.randomness.system import SEEDED
from fedprivacy.sampling.groups import Group
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.client_ids import collapsed
from fedprivacy.scenario.data import FileData
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario, loads
from fedprivacy.scenario.model import permit
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics.data import NpzTable
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import PublicTune
from fedprivacy.statistics.ledger import StatisticsLedger
from fedprivacy.statistics.plan import StatisticsPlan
from fedprivacy.statistics.plan import plan_of as statistics_plan_of
from fedprivacy.statistics.population import People
from fedprivacy.training.model_spec import ModelSpec, model_of
from fedprivacy.tuning.ledgers import chosen_ledger
from scenarios.budgets.estimates_work import estimates_work

_ROUNDING = 1e-6  # relative, of a printed setting: more than seven digits cut off


def planned(scenario: AnyScenario, *, allow_code: bool = False, stated: Stated | None = None) -> PlannedWork:
    """Returns what `fedprivacy run` or `tune` would release of a scenario.

    Args:
        scenario: The scenario.
        allow_code: Whether it may run code (`--allow-code`).
        stated: Of a run on remote nodes, its submitter's statements; None: a simulation.

    Raises:
        InputError: it has no plan, or no event covers what it releases.
    """
    if isinstance(scenario, Statistics):
        from fedprivacy.statistics.plan import people_of
        from fedprivacy.statistics.streams import statistics_streams

        statistics = statistics_plan_of(scenario)
        people = people_of(scenario, statistics)
        key = statistics_streams(scenario, people).run
        return statistics_work(scenario, statistics, people, key, stated)
    if isinstance(scenario, ErmScenario):
        people_of_study = records(scenario)
        return estimates_work(scenario, people_of_study, study_streams(scenario, people_of_study).run)
    if type(scenario) not in (Scenario, TuneScenario):
        raise InputError(
            f"{scenario.name}: attacks are charged by the command that runs them: fedprivacy replay SCENARIO "
            "--account FILE."
        )
    assert isinstance(scenario, Scenario)
    permit(scenario.model, allow_code)
    clients = known(scenario.data) if isinstance(scenario.data, OnNodes) else population(scenario.data)

    def model_for(each: Scenario) -> ModelSpec:
        return model_of(each, clients, allow_code=allow_code)

    if isinstance(scenario, TuneScenario):
        candidates = [scenario.candidate(number) for number in range(len(scenario.settings))]
        plans = [plan_of(candidate, model_for(candidate)) for candidate in candidates]
        key = run_streams(scenario.plain, clients, model_for(scenario).code).run
        return tuning_work(scenario, plans, clients, key)
    model = model_for(scenario)
    key = run_streams(scenario, clients, model.code).run
    return training_work(scenario, plan_of(scenario, model), clients, key, stated)


def training_work(
    scenario: Scenario, plan: Plan, people: Population, noise_key: str, stated: Stated | None = None
) -> PlannedWork:
    """Returns what a training releases at most.

    Args:
        scenario: Its scenario.
        plan: Its plan.
        people: Its clients.
        noise_key: The run's (`run_streams`).
        stated: As of `planned`.
    """
    tested, sizes = people.tests_clients(scenario.evaluation.on), people.partition.sizes
    ledger_of = partial(
        Ledger, plan, tested=tested, sizes=sizes, held=stated is None, stated=stated or SIMULATION
    )
    whole = ledger_of().in_advance()

    def first(rounds: int) -> Ledgers:
        counts = {min(rounds, plan.answers): plan.population} if plan.distrusts_server else None
        ledger = ledger_of(counts=counts)
        ledger.rounds = rounds
        return (ledger.to_json(),)

    return PlannedWork(
        name=scenario.name,
        work="training",
        ledgers=(whole.to_json(),),
        population=_ids(people, scenario),
        seed=scenario.seed,
        noise_key=_remote(noise_key, stated),
        draws_cohorts=plan.sampler.name != "all" and (stated is None or stated.noise == SEEDED),
        size=plan.rounds,
        first=first,
        settings=lambda rounds: as_options(settings_of(scenario, [with_rounds(plan, rounds)])),
        ledgers_of_settings=lambda rounds: _ledgers_of(
            scenario, settings_of(scenario, [with_rounds(plan, rounds)]), stated
        ),
    )


def statistics_work(
    scenario: Statistics, plan: StatisticsPlan, people: People, noise_key: str, stated: Stated | None = None
) -> PlannedWork:
    """Returns what a statistics run releases.

    Args:
        scenario: Its scenario.
        plan: Its plan.
        people: Its clients.
        noise_key: The run's (`statistics_streams`).
        stated: As of `planned`.
    """
    held = stated is None
    whole = StatisticsLedger(plan, len(plan.asks), held, stated or SIMULATION).in_advance()
    population = PopulationIds(people.digest)
    if isinstance(scenario.data, NpzTable):
        path, users = scenario.data.path, scenario.data.owner == "user"
        population = PopulationIds(
            people.digest,
            ids=_digest(npz.array(path, "user_train")) if users else None,
            records=_records(npz.array(path, "y_train")) if "y_train" in npz.headers(path) else None,
            owners="by-user" if users else "one-per-example",
        )
    return PlannedWork(
        name=scenario.name,
        work="statistics",
        ledgers=(whole.to_json(),),
        population=population,
        seed=scenario.seed,
        noise_key=_remote(noise_key, stated),
        size=len(plan.asks),
        noun="queries",
        first=lambda queries: (replace(whole, charged=queries).to_json(),),
    )


def tuning_work(scenario: TuneScenario, plans: list[Plan], people: Population, noise_key: str) -> PlannedWork:
    """Returns what a choice of settings releases, training of the chosen ones included.

    Public records may choose any candidate, so each one's ledger is possible.

    Args:
        scenario: Its scenario.
        plans: Of each candidate.
        people: Its clients.
        noise_key: The run's (`run_streams`) of the scenario without `[tune]`.
    """
    tested = people.tests_clients("test")
    choice = json.dumps(scenario.tables()["tune"], sort_keys=True)
    possible = len(plans) if isinstance(scenario.tune, PublicTune) else 1
    sizes = {plan.rounds for plan in plans}

    def first(rounds: int) -> Ledgers:
        fewer = [with_rounds(plan, rounds) for plan in plans]
        return tuple(chosen_ledger(scenario.tune, fewer, at, tested=tested) for at in range(possible))

    return PlannedWork(
        name=scenario.name,
        work="tuning",
        ledgers=tuple(chosen_ledger(scenario.tune, plans, at, tested=tested) for at in range(possible)),
        population=_ids(people, scenario),
        seed=scenario.seed,
        noise_key=f"{noise_key}/{choice}",
        draws_cohorts=any(plan.sampler.name != "all" for plan in plans),
        size=max(sizes),
        noun="rounds of each candidate",
        first=first if len(sizes) == 1 else None,
        settings=lambda rounds: as_options(
            settings_of(scenario, [with_rounds(plan, rounds) for plan in plans])
        ),
        ledgers_of_settings=lambda rounds: _ledgers_of(
            scenario, settings_of(scenario, [with_rounds(plan, rounds) for plan in plans])
        ),
    )


def with_rounds(plan: Plan, rounds: int) -> Plan:
    """A plan with fewer rounds of the same noise."""
    most = plan.max_participations
    return replace(plan, rounds=rounds, max_participations=None if most is None else min(most, rounds))


def settings_of(scenario: Scenario, fewer: Sequence[Plan]) -> list[str]:
    """The options that run plans with fewer rounds of the same noise, rounded towards more of it."""
    options = [f"server.rounds={fewer[0].rounds}"]
    if scenario.privacy.max_participations is not None:
        options.append(f"privacy.max_participations={fewer[0].max_participations}")
    noise, *others = {plan.noise_multiplier for plan in fewer}
    if noise is not None and not others:
        options.append(f"privacy.noise_multiplier={noise * (1 + _ROUNDING):.7g}")
        banded, groups = fewer[0].banded, fewer[0].groups  # they follow from an epsilon, which is gone
        if banded is not None:
            options.append(f"privacy.bands={banded.bands}")
        if groups is not None:
            budgets = scenario.privacy.groups or {}
            options += [
                f"privacy.groups.{group.name}={_table(replace(group, clients=budgets[group.name].clients))}"
                for group in groups.groups
            ]
    elif scenario.privacy.epsilon is not None:
        epsilon = min(plan.spent().epsilon for plan in fewer)
        options.append(f"privacy.epsilon={rounded_down(epsilon)}")
    return options


def rounded_down(epsilon: float) -> float:
    """An epsilon as a setting, of fewer digits."""
    return float(f"{epsilon * (1 - _ROUNDING):.7g}")


def as_options(options: Sequence[str]) -> str:
    """The `--set` options of settings, as a refusal names them."""
    return ": " + " ".join(f"--set {shlex.quote(option)}" for option in options)


def _table(group: Group) -> str:
    """The table of a group with its weight, rate or noise in place of an epsilon, rounded for less of it."""
    values: dict[str, str] = {}
    if group.share is not None:
        values["share"] = repr(group.share)
    if group.clients is not None:
        values["clients"] = json.dumps(collapsed(group.clients))
    if group.noise_multiplier is not None:
        values["noise_multiplier"] = f"{group.noise_multiplier * (1 + 2 * _ROUNDING):.7g}"
    for name, value in (("rate", group.rate), ("weight", group.weight)):
        if value is not None:
            values[name] = f"{value * (1 - _ROUNDING):.7g}"
    return "{" + ", ".join(f"{name}={value}" for name, value in values.items()) + "}"


def _ledgers_of(scenario: Scenario, options: Sequence[str], stated: Stated | None = None) -> Ledgers:
    """The ledgers of a scenario with options.

    Raises:
        InputError: it does not run with these.
    """
    smaller = loads(scenario.to_toml(), scenario.name, options)
    return planned(smaller, allow_code=True, stated=stated).ledgers  # its code planned the scenario before


def _ids(people: Population, scenario: Scenario) -> PopulationIds:
    """Identifies the clients of a training: by their data, and by their ids where the data name users."""
    data = scenario.data
    if isinstance(data, OnNodes):  # nobody here can compare them: each run's are others until it is stated
        return PopulationIds(secrets.token_hex(16))
    by_user = isinstance(data, FileData) and data.partition == "by-user"
    ids = None
    if by_user and isinstance(data, FileData):
        ids = _digest(npz.array(data.file, "user_train")[people.partition.order])
    owners = str(data.partition)
    if owners not in ("by-user", "one-per-example"):
        dealt = (data.clients, data.alpha, data.records_per_client, data.public_fraction, data.seed)
        owners = f"{owners}/{dealt}"
    return PopulationIds(people.digest, ids, _records(people.dataset.y), owners)


def _remote(noise_key: str, stated: Stated | None) -> str:
    """The key of the noise of a run on remote nodes, whose claims have other assumptions."""
    return noise_key if stated is None else f"{noise_key}/{stated}"


def _records(labels: NDArray[Any]) -> str | None:
    """A digest of the labels of all records in their order; None where there are too few to identify them.

    Scaling and columns, which change records, leave it as it is.
    """
    if len(np.unique(labels)) < 2:
        return None
    return hashlib.blake2b(labels.astype(np.int64).tobytes(), digest_size=16).hexdigest()


def _digest(users: NDArray[Any]) -> str:
    """A digest of the set of ids in a column."""
    digest = hashlib.blake2b(digest_size=16)
    for user in np.unique(users.astype(str)):
        digest.update(f"{len(user)}:{user}/".encode())
    return digest.hexdigest()
