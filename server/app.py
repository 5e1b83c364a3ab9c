"""The ServerApp: runs the rounds of a scenario over a grid and keeps the record up to date.

The record is begun before the first message and written after every round, so a run that is killed states its
progress and its charge. A round itself is `server.strategy.Federation.round`; this module loads data and
model, assigns hosts to nodes, evaluates, and commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray
from safetensors.torch import save
from torch import nn

from fedprivacy.erm.study.people import records, study_streams
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.io.processes import use_one_thread
from fedprivacy.mechanisms.banded import CorrelatedNoise
from fedprivacy.mechanisms.clipping import bounds_of_a_sum
from fedprivacy.messages.faults import Faults
from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.evaluation import evaluate
from fedprivacy.models.losses import loss_of
from fedprivacy.models.partial_training import frozen_part, whole_model
from fedprivacy.models.prediction import predictions
from fedprivacy.plan.from_scenario import candidates_of, plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.reference_data import check_references
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.population.on_nodes import for_server
from fedprivacy.randomness.system import SEEDED, check_noise, streams_for
from fedprivacy.records.final_evaluation import final_evaluation
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.records.run_record import RunRecord, round_event
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.bundled import code_allowed, scenario_of_app
from fedprivacy.scenario.data import TextFile
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.sections import Server
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.secure_sum.roster import roster_of
from fedprivacy.secure_sum.transcript import Roster
from fedprivacy.statistics.plan import people_of
from fedprivacy.statistics.plan import plan_of as statistics_plan_of
from fedprivacy.statistics.record import StatisticsRecord
from fedprivacy.statistics.streams import statistics_streams
from fedprivacy.training.features import encode_all, split
from fedprivacy.training.model_spec import ModelSpec, model_of
from server.aggregation import RoundTotal, nobody_took_part
from server.averaging import iterate_average
from server.deployment_grid import PollingGrid
from server.erm import serve as serve_estimates
from server.hosts import deal_hosts
from server.masked_grid import MaskedSum, Masks
from server.optimizers import server_optimizer
from server.record_upload import LogUpload, uploading
from server.reply_validation import longest
from server.robust_rules import RobustRule
from server.secure_sum import secured
from server.statistics import serve as serve_statistics
from server.strategy import Federation


@dataclass(frozen=True)
class NodeView:
    """The view that a simulation has of the nodes beyond messages; by default nothing.

    Args:
        states: The nodes' own state as arrays, for checkpoints.
        faults: The faults on the nodes in a round, which local and distributed trust keep from the server. It
            serves the record, and ends a run in which every client failed.
        retried: The number of messages that the engine has sent again because a process died.
        personal: Measures the clients' personal models, given the final one (`PersonalAccuracies`); None: the
            clients have none, or nobody may see them.
    """

    states: Callable[[], Mapping[str, NDArray[Any]]] = dict
    faults: Callable[[int], Faults] | None = None
    retried: Callable[[], int] = int
    personal: Callable[[NDArray[np.float32]], dict[str, Any] | None] | None = None


def make_app(
    record: RunRecord,
    people: Population,
    model: ModelSpec,
    *,
    checkpoint: Checkpoint | None = None,
    view: NodeView = NodeView(),
) -> ServerApp:
    """The ServerApp of a run.

    Args:
        record: Where the run is written; it holds the scenario, the plan and the ledger.
        people: The data; the server reads only its held-out part.
        model: The specification of the scenario's model.
        checkpoint: The round to resume from (the record has been restored to it), or None to start.
        view: The engine's view of the nodes, for a simulation.
    """
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        serve(grid, record, people, model, checkpoint, view)

    return server_app


def serve(
    grid: Grid,
    record: RunRecord,
    people: Population,
    model: ModelSpec,
    checkpoint: Checkpoint | None = None,
    view: NodeView = NodeView(),
    on_begin: Callable[[], object] = lambda: None,
    masks: Masks | None = None,
) -> None:
    """Runs a scenario's rounds; for every way to end, the record states the progress.

    Args:
        grid: Flower's way to the nodes.
        record: Where the run is written; it holds the scenario, the plan and the ledger.
        people: The data; the server reads only its held-out part.
        model: The specification of the scenario's model.
        checkpoint: The round to resume from, or None to start.
        view: The engine's view of the nodes, for a simulation.
        on_begin: Called once the record exists, before any message to a node.
        masks: The public values of sums under masks; None: noise in shares has an ideal sum.

    Raises:
        RunError: if a host has no node, all clients of a round fail, or all refuse in every round.
    """
    record.begin()
    try:
        on_begin()
        summed = secured(grid, record.plan) if masks is None else MaskedSum(grid, masks)
        _run_rounds(summed, record, people, model, checkpoint, view)
    except KeyboardInterrupt:
        record.finish("interrupted", "interrupted by the user")
        raise
    except Exception as error:
        record.finish("failed", f"{type(error).__name__}: {error}")
        raise
    record.finish("finished")


def _run_rounds(
    grid: Grid,
    record: RunRecord,
    people: Population,
    model: ModelSpec,
    checkpoint: Checkpoint | None,
    view: NodeView,
) -> None:
    scenario = record.scenario
    federation, whole = federation_of(grid, scenario, record.ledger, people, model)
    record.dealing = federation.dealing.to_json()
    held = len(people.held_out(scenario.evaluation.on)[1])
    encoder, module = split(whole, people.features, held)

    def held_out(on: str) -> tuple[NDArray[np.float32], NDArray[Any]]:
        x, y = people.held_out(on)
        if encoder is None:
            return x, y
        if on != "test":  # x is a copy, and other runs on these records share the features of the original
            return encode_all(encoder, people.dataset.x, people.references).numpy(), y
        return encode_all(encoder, x).numpy(), y

    x, y = held_out(scenario.evaluation.on)
    data, training = people.dataset, scenario.training
    loss = loss_of(data.task, training.loss, training.huber_threshold)
    # Early stopping reads the loss on public records only: other held-out records may belong to clients.
    apart = scenario.server.patience is not None and scenario.evaluation.on != "public"
    read_by_rule = held_out("public") if apart else None
    if checkpoint is not None:
        federation.restore(checkpoint.tensors)
    for number in range(len(record.rounds), record.plan.rounds):
        if record.stopped:
            break
        began, before = time.perf_counter(), view.retried()
        norm = federation.clipping_norm
        cohort, total = federation.round(number)
        seconds = time.perf_counter() - began
        total.faults += Faults({"retried": view.retried() - before})
        if record.plan.distrusts_server:
            total = _looked_up(total, number, view)
        due = (number + 1) % scenario.evaluation.every == 0 or number + 1 == record.plan.rounds
        stops = None
        if due and read_by_rule is not None:
            stops = evaluate(module, federation.released, *read_by_rule, loss=loss).loss
        due = due and len(y) > 0  # with records on nodes there may be no held-out ones
        quality = evaluate(module, federation.released, x, y, data.class_names, loss) if due else None
        event = round_event(
            number,
            cohort=len(cohort),
            zeroed=total.zeroed,
            failures=total.failed,
            refusals=total.refused,
            faults=total.faults.by_kind,
            contributed=total.contributed,
            first_failure=total.first_failure,
            quality=quality,
            seconds=seconds,
            public_loss=stops,
            clipping_norm=norm,
            void=total.void,
            void_reason=total.void_reason,
        )
        record.commit(event, {**federation.state(), **view.states()}, quality)
    part = record.plan.frozen
    if part is not None and frozen_part(whole, part.file, part.features, model.personal) != part:
        raise RunError(
            "model: its frozen parameters or buffers are no longer those of the plan, so they may hold "
            "records. Its code must not change them."
        )
    if part is not None and not part.is_empty:
        record.directory.save_model(save(whole_model(whole, torch.from_numpy(federation.released))))
    if len(y) > 0:
        chunks = predictions(module, federation.released, x, data.task)
        record.measured = final_evaluation(scenario, people, y, chunks)
    if view.personal is not None and (personal := view.personal(federation.released)) is not None:
        record.measured = {**record.measured, "personal": personal}
    if isinstance(scenario.data, TextFile) and scenario.data.secrets:
        from fedprivacy.attacks.secret_exposure import stated_exposure  # few runs have secrets

        exposure = stated_exposure(whole, federation.released, scenario.data, record.ledger.to_json())
        record.measured = {**record.measured, "exposure": exposure}
    if (why := nobody_took_part(record.rounds)) is not None:
        raise RunError(why)


def _looked_up(total: RoundTotal, number: int, view: NodeView) -> RoundTotal:
    """A round's counts with those that trust keeps on the nodes; unknown ones become None.

    Raises:
        RunError: if every client failed: the server's sum is noise alone.
    """
    if view.faults is None:
        return replace(total, known=False)
    faults = view.faults(number)
    if faults.failed and faults.failed >= total.answered:
        total.faults += faults
        raise RunError(total.nobody_answered(number))
    return replace(total, faults=total.faults + faults, noise_alone=faults.failed)


def federation_of(
    grid: Grid, scenario: Scenario, ledger: Ledger, people: Population, model: ModelSpec
) -> tuple[Federation, nn.Module]:
    """The server's side of a scenario before its first round, and the model to evaluate with.

    Args:
        grid: Flower's way to the nodes.
        scenario: The scenario to run.
        ledger: The planned releases; it has the plan, and the source of noise and cohorts.
        people: The data, or the server's public knowledge of them.
        model: The specification of the scenario's model.

    Raises:
        RunError: if a host has no node.
    """
    streams = streams_for(ledger.stated.noise, run_streams(scenario, people, model.code))
    module = model.build(streams.torch_seed("model"))
    weights = flat_weights(module).astype(np.float64)
    sizes = people.partition.sizes if ledger.sizes is None else ledger.sizes
    banded = ledger.plan.banded
    federation = Federation(
        grid=grid,
        dealing=deal_hosts(grid, scenario.federation.hosts),
        plan=ledger.plan,
        ledger=ledger,
        optimizer=server_optimizer(scenario.server, ledger.plan.rounds, len(weights)),
        streams=streams,
        weights=weights,
        chunk_size=scenario.federation.chunk_size,
        observe=scenario.federation.observe,
        denominator=_denominator(scenario, ledger.plan, sizes),
        timeout=scenario.federation.timeout,
        longest=longest(ledger.plan, len(weights), int(sizes.max(initial=1))),
        dropout=scenario.federation.dropout > 0,
        leaving=scenario.federation.dropout,
        denoise=scenario.server.denoise,
        clipping_norm=ledger.plan.clipping_norm if ledger.plan.adaptive else None,
        correlated=CorrelatedNoise(banded, len(weights)) if banded is not None else None,
        rule=_rule(scenario.server),
        clips_to=_clips_to(scenario.server, ledger.plan),
        average=iterate_average(scenario.server, ledger.plan.rounds, len(weights)),
    )
    return federation, module


def _rule(server: Server) -> RobustRule | None:
    return None if server.aggregation == "mean" else RobustRule(server.aggregation, server.byzantine or 0)


def _clips_to(server: Server, plan: Plan) -> NDArray[np.float64] | None:
    """The norms of the server's own clipping: below w C by the rounding of the sum, as nodes clip."""
    if not server.clips:
        return None
    everybody = np.arange(plan.population)
    weights = plan.weights_of(everybody)
    bounds = np.ones(plan.population)
    for weight in np.unique(bounds if weights is None else weights).tolist():
        bound, _ = bounds_of_a_sum(plan.clipping_norm, plan.most_in_a_sum, weight)
        assert bound is not None  # a rule of scenarios
        # A node has weighted what it sends, so the bound is the sensitivity of the client's group.
        bounds[everybody if weights is None else weights == weight] = bound * weight
    return bounds


def _denominator(scenario: Scenario, plan: Plan, agreed: NDArray[np.int64]) -> float:
    """The denominator that turns a round's sum into a mean update: the mean size (or weight) of a cohort.

    If clients answer with sums of gradients, it is the mean number of records in their batches, and the
    mean gradient moves the model by the clients' learning rate.
    """
    cohort = plan.expected_weight
    if plan.trust != "central" or plan.batches is None:
        return cohort
    sizes, counts = np.unique(agreed, return_counts=True)
    mean_sizes = np.array([plan.batches.mean_size(int(size)) for size in sizes])
    return float(counts @ mean_sizes) * cohort / plan.population / scenario.training.learning_rate


app = ServerApp()
# Data that every process with the scenario reads completely, the server's too.
_FILES = ("npz", "table", "text", "flwr-datasets")


@app.main()
def _main(grid: Grid, context: Context) -> None:
    """The entry point of `flwr run`: the run config names a scenario and an output folder."""
    # The directory is held until its record is home.
    with ExitStack() as held, uploading(context.run_config) as upload:
        scenario = scenario_of_app(str(context.run_config["scenario"]))
        out = Path(str(context.run_config["out"])).expanduser()
        noise = check_noise(context.run_config.get("noise", SEEDED), "run config")
        stated = statement_of(scenario, noise, context.run_config.get("pinned", False) is True)

        def begin(text: str) -> RunDirectory:
            directory = held.enter_context(begin_run(out, scenario.label, text))
            upload.begin(directory)
            return directory

        roster = str(context.run_config.get("roster", ""))
        submitted = Submitted(
            begin,
            stated,
            upload,
            code_allowed(context.run_config),
            roster_of(roster, "run config: roster") if roster else None,
        )
        directory = SERVED[scenario.kind](PollingGrid(grid), scenario, submitted)
    print(f"The record of this run: {directory.path.resolve() / 'run.json'}")


def statement_of(scenario: AnyScenario, noise: str, pinned: bool) -> Stated:
    """The statements of a submitted run about its deployment.

    Args:
        scenario: The scenario.
        noise: Where its noise comes from, "seeded" or "system".
        pinned: Whether each node holds the run's plan itself.
    """
    reads = scenario.data.name in _FILES and (pinned or noise != SEEDED)
    return Stated(pinned, noise, reads=reads)


@dataclass(frozen=True)
class Submitted:
    """A run that was submitted to this ServerApp.

    Args:
        begin: Makes the directory of a scenario's complete text.
        stated: The submitter's statements about the deployment.
        upload: Where its record is sent.
        allow_code: Whether the scenario may run code.
        roster: The node keys of all clients, for sums under masks; None without one.
    """

    begin: Callable[[str], RunDirectory]
    stated: Stated
    upload: LogUpload
    allow_code: bool
    roster: Roster | None = None


def _train(grid: Grid, scenario: Scenario, submitted: Submitted) -> RunDirectory:
    use_one_thread()  # more round otherwise, in the features of held-out records too
    people = for_server(scenario.data) if isinstance(scenario.data, OnNodes) else population(scenario.data)
    check_references(scenario, people)
    model = model_of(scenario, people, allow_code=submitted.allow_code)
    plan = plan_of(scenario, model)
    masks = _masks(scenario, plan, submitted)
    directory = submitted.begin(scenario.to_toml())
    # The nodes read their plan from the same run config, so they would follow any other submitter too.
    record = RunRecord(
        scenario,
        plan,
        directory,
        command="flwr run .",
        on_round=submitted.upload.event,
        held=False,
        tested=people.tests_clients(scenario.evaluation.on),
        candidates=candidates_of(scenario, model),
        noise_key=run_streams(scenario, people, model.code).run,
        sizes=people.partition.sizes,
        stated=submitted.stated,
    )
    serve(grid, record, people, model, on_begin=submitted.upload.on_begin, masks=masks)
    return directory


def _masks(scenario: Scenario, plan: Plan, submitted: Submitted) -> Masks | None:
    """The public values of sums under masks, which pinned nodes have wherever noise is in shares.

    Raises:
        InputError: There is no roster, or it or the plan does not fit, or nodes are not stated to be pinned.
    """
    pinned = submitted.stated.pinned
    if plan.shares is None or not (pinned or isinstance(scenario.data, OnNodes)):
        return None
    if not pinned:
        raise InputError(
            'privacy.trust = "distributed": nodes with records of their own sum under masks, by plans that '
            "they pin. State that they do: --pinned --roster FILE"
        )
    if submitted.roster is None:
        raise InputError(
            'privacy.trust = "distributed": pinned nodes sum under masks, for which the server needs their '
            "public keys. Give --roster FILE (fedprivacy federation roster KEY.pub...)."
        )
    return Masks.of(submitted.roster, plan.shares, plan.population, scenario.federation.hosts, scenario.seed)


def _fit(grid: Grid, scenario: ErmScenario, submitted: Submitted) -> RunDirectory:
    if submitted.stated.pinned:
        raise InputError("--pinned: no node holds a study of private estimates as its own; leave it out.")
    people = records(scenario)
    streams = streams_for(submitted.stated.noise, study_streams(scenario, people))
    directory = submitted.begin(scenario.to_toml())
    serve_estimates(
        grid,
        scenario,
        people,
        directory,
        streams,
        stated=submitted.stated,
        command="flwr run .",
        on_cell=submitted.upload.event,
        on_begin=submitted.upload.on_begin,
    )
    return directory


def _answer(grid: Grid, scenario: Statistics, submitted: Submitted) -> RunDirectory:
    plan = statistics_plan_of(scenario)
    who = people_of(scenario, plan)
    directory = submitted.begin(scenario.to_toml(compare=False))
    key = statistics_streams(scenario, who).run
    record = StatisticsRecord(
        scenario,
        plan,
        directory,
        command="flwr run .",
        on_query=submitted.upload.event,
        held=False,
        noise_key=key,
        stated=submitted.stated,
    )
    serve_statistics(grid, record, who, on_begin=submitted.upload.on_begin)
    return directory


# Kind of scenario -> the server's part of it, which gives the directory of the record.
SERVED: Mapping[str, Callable[[Grid, Any, Submitted], RunDirectory]] = {
    Scenario.kind: _train,
    Statistics.kind: _answer,
    ErmScenario.kind: _fit,
}
