"""The record of one run: the document run.json, kept true round by round."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import CLASSIFICATION, REGRESSION
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.guarantee import BudgetGroup, Privacy, Terms
from fedprivacy.documents.headline import scored, stated_metric
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.documents.run import Final, Round, RunDocument
from fedprivacy.errors import InputError
from fedprivacy.guarantees.charge import COMPLETED, charged
from fedprivacy.guarantees.ledger import Ledger, broke_off, has_broken_off
from fedprivacy.guarantees.per_client import per_client
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.guarantees.statement import completed, group_guarantees, guarantees
from fedprivacy.io import bounded_json
from fedprivacy.io.document_part import strict
from fedprivacy.io.environment import peak_memory_mb, versions
from fedprivacy.io.validation import check
from fedprivacy.plan.mechanism_search import Candidate
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.bias import dropout_note, estimate, unanswered_note, void_note
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.data import DEALT_BY_LABEL
from fedprivacy.scenario.sections import least_answers
from fedprivacy.training import early_stopping

if TYPE_CHECKING:  # a stored run is checked without torch
    from fedprivacy.models.evaluation import Evaluation

TUNING_UNSTATED = (
    "The scenario does not say how its hyperparameters were chosen. If private data was used to "
    "choose them, that choice is not charged for in any epsilon here."
)
BOUNDS_PUBLIC = (
    "No epsilon here covers the choice of target_low and target_high: each guarantee assumes that they were "
    "not read off clients' targets."
)
ADAPTIVE_NOTE = (
    "The clipping norm above is that of the first round: it follows a quantile of the norms of updates, by "
    "counts whose noise is within the same epsilon, and each round's norm is in its event."
)
UNTESTED_NOTE = (
    "The scenario names no held-out records, and those of the clients stay on their nodes: nothing is known "
    "here of how good the model is."
)
OnRound = Callable[[dict[str, Any]], None]


class RunRecord:
    """Collects what a run did, writes it after every round, and closes it with a status.

    Args:
        scenario: What was asked for.
        plan: The privacy plan that runs.
        directory: Where it is written.
        earlier: The document of the run that is resumed.
        command: The command that reproduces the run, for the report.
        on_round: Called with each round's event, for progress displays.
        held: Whether the clients hold a plan of their own (`Ledger`).
        tested: Whether held-out records belong to clients (`Population.tests_clients`).
        candidates: The local mechanisms that the plan's was chosen from.
        noise_key: What tells the noise of this run from that of others (`run_streams`).
        sizes: The records of each client (`Ledger`).
        way: How clients are trained, in words.
        stated: The submitter's statements about nodes that are not our own (`Ledger`).
        engine: Where the apps run, and on how many workers: no result depends on it.
    """

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        directory: RunDirectory,
        *,
        earlier: Mapping[str, Any] | None = None,
        command: str = "",
        on_round: OnRound | None = None,
        held: bool = True,
        tested: bool = False,
        candidates: Sequence[Candidate] | None = None,
        noise_key: str = "",
        sizes: NDArray[np.int64] | None = None,
        way: str | None = None,
        stated: Stated = SIMULATION,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        self.scenario, self.plan, self.directory = scenario, plan, directory
        self.noise_key = noise_key
        broken_off = earlier is not None and has_broken_off(earlier["ledger"])
        self.ledger = Ledger(
            plan, held=held, tested=tested, sizes=sizes, stated=stated, broken_off=broken_off
        )
        self._earlier: Mapping[str, Any] | None = earlier
        self.on_round = on_round
        self.rounds: list[dict[str, Any]] = []
        self._way, self._engine = way, engine or {}
        self._candidates = None if candidates is None else [candidate.to_json() for candidate in candidates]
        self.per_class: list[dict[str, Any]] | None = None
        self.measured: Mapping[str, Any] = {}  # of the final model (`final_evaluation`), once it is known
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self.command, self.started, self._seconds = command, now, 0.0
        if earlier is not None:
            self.command, self.started = earlier["command"], earlier["started"]
            self._seconds = earlier["performance"]["seconds"]
            self._candidates = earlier["privacy"].get("candidates")
        self.dealing: Mapping[str, Any] | None = None  # of hosts to nodes (`server.hosts`), once it is known
        self._clock = time.perf_counter()
        self._digest = scenario_digest(directory)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Goes on after a checkpoint: its rounds, its ledger.

        Raises:
            InputError: if it is one of another run, or its rounds are not in events.jsonl, or damaged.
        """
        if checkpoint.facts.get("noise_key", self.noise_key) != self.noise_key:
            raise InputError(
                f"{self.directory.path}/checkpoint: of another run. Remove that folder, and the rounds are "
                "repeated, with the same noise."
            )
        self.ledger.restore(checkpoint.tensors, checkpoint.facts)
        self.rounds = self.directory.keep_events(checkpoint.rounds, checkpoint.facts.get("events"))
        for event in self.rounds:
            check(event, strict(Round), str(self.directory.path / "events.jsonl"), "Start a new run.")
        self.per_class = checkpoint.facts.get("per_class")

    @property
    def stopped(self) -> bool:
        """Whether early stopping has ended the run."""
        return has_stopped_early(self.scenario, self.plan, self.rounds)

    def begin(self) -> None:
        """Writes the document of a run under way, which may be killed: the whole plan is charged in it."""
        self.directory.drop_checkpoints(after=len(self.rounds))
        if not self.rounds:
            self.directory.keep_events(0)
        self._write("running", None)

    def commit(
        self, event: dict[str, Any], tensors: Mapping[str, NDArray[Any]], quality: Evaluation | None
    ) -> None:
        """Writes a finished round: its event, then the checkpoint that covers it.

        Args:
            event: The round's line: round, cohort, accuracy, loss, seconds and operator-only counts.
            tensors: What the next round starts from: weights, optimizer and node state.
            quality: The evaluation that the round ended with, if it did.
        """
        self.rounds.append(event)
        if quality is not None:
            self.per_class = quality.per_class()
        self.directory.append_event(event)
        tensors_of_ledger, facts = self.ledger.state()
        facts["per_class"] = self.per_class  # the last evaluation may lie rounds back
        facts["noise_key"], facts["events"] = self.noise_key, self.directory.events_digest
        self.directory.save_checkpoint(
            Checkpoint(event["round"] + 1, {**tensors, **tensors_of_ledger}, facts)
        )
        if self.on_round:
            self.on_round(event)

    def finish(self, status: str, error: str | None = None) -> dict[str, Any]:
        """Writes the final document: finished, interrupted or failed, with its guarantees."""
        return self._write(status, error)

    def _write(self, status: str, error: str | None) -> dict[str, Any]:
        document = self._document(status, error)
        self.directory.write_document(document)
        return document

    def _charged(self, status: str) -> dict[str, Any]:
        """The ledger that the document states (`accounting.charge`)."""
        return charged(
            self.ledger,
            status,
            rounds=len(self.rounds),
            planned=self.plan.rounds,
            early_stopping=self.scenario.server.patience is not None,
            known=self._knows_earlier(),
        )

    def _knows_earlier(self) -> bool:
        """Whether the ledger holds all that earlier processes of the run have released.

        One that was killed, or resumed from an older checkpoint, may have released more than is known here.
        """
        if self._earlier is None:
            return True
        before = self._earlier["ledger"].get(COMPLETED)
        return self._earlier["status"] != "running" and before is not None and self.ledger.covers(before)

    def _document(self, status: str, error: str | None) -> dict[str, Any]:
        scenario, plan = self.scenario, self.plan
        seconds = self._seconds + time.perf_counter() - self._clock
        ledger = self._charged(status)
        trained = sum(event["cohort"] for event in self.rounds)
        training = sum(event["seconds"] for event in self.rounds)
        return RunDocument.new(
            name=scenario.name,
            seed=scenario.seed,
            path=str(self.directory.path),
            status=status,
            error=error,
            command=self.command,
            started=self.started,
            versions=versions(scenario.training.trainer),
            scenario=scenario.tables(),
            scenario_digest=self._digest,
            noise_key=self.noise_key,
            randomness=self.ledger.stated.to_json(held=self.ledger.held),
            plan=plan.to_json(),
            dealing=self.dealing,
            rounds=self.rounds,
            **stated_metric(getattr(scenario.data, "task", CLASSIFICATION)),
            final=_final(self.rounds, self.per_class, self.measured),
            privacy=stated_privacy(plan, ledger, self._candidates),
            ledger=ledger,
            operator_only=list(RunDocument.OPERATOR_ONLY),
            **simulation_only([scenario], ["final"]),
            estimate=estimate(self.rounds, self.scenario.server.aggregation),
            notes=notes_of(scenario, plan, self.rounds, tested=self.ledger.tested),
            performance=Performance.new(
                seconds=round(seconds, 3),
                clients_per_second=round(trained / training, 1) if training else None,
                peak_memory_mb=peak_memory_mb(),
                way=self._way,
                **self._engine,
            ),
        ).to_json()


def stated_privacy(
    plan: Plan, ledger: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any]:
    """The privacy section of a run, derived from its plan and its ledger.

    Args:
        plan: The privacy plan that ran.
        ledger: What has been charged (`Ledger.to_json`).
        candidates: The local mechanisms that the plan's was chosen from.
    """
    written = plan.to_json()
    return Privacy.new(
        **{key: ledger[key] for key in Terms.model_fields},
        mechanism=None if plan.mechanism is None else plan.mechanism.name,
        clipping_norm=plan.clipping_norm,
        noise_multiplier=plan.noise_multiplier,
        noise=plan.noise_words,
        candidates=candidates,
        sampling=written["sampler"],
        max_participations=plan.max_participations,
        batches=written["batches"],
        records_per_client=ledger.get("records_per_client"),
        guarantees=[guarantee.to_json() for guarantee in guarantees(ledger)],
        **_stated_groups(plan, ledger),
        **completed(ledger),
        per_client=per_client(ledger),
    ).to_json()


def _stated_groups(plan: Plan, ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The groups of clients with budgets of their own, each with its guarantees; empty without any."""
    if plan.groups is None:
        return {}
    sizes, stated = plan.groups.sizes(plan.population), []
    for name, listed in group_guarantees(ledger).items():
        group = plan.groups[name]
        stated.append(
            BudgetGroup.new(
                name=name,
                clients=sizes[name],
                noise_multiplier=group.noise_multiplier,
                rate=group.rate,
                weight=group.weight,
                guarantees=[guarantee.to_json() for guarantee in listed],
            ).to_json()
        )
    return {"groups": stated}


def simulation_only(scenarios: Iterable[Scenario], parts: Sequence[str]) -> dict[str, list[str]]:
    """The field with the accuracies by group, where test records are dealt to groups by clients' labels.

    Args:
        scenarios: Those of the runs in a document.
        parts: Where the document has figures, such as "cells[]".
    """
    dealt = any(
        each.privacy.groups is not None and getattr(each.data, "partition", None) in DEALT_BY_LABEL
        for each in scenarios
    )
    return {"simulation_only": [f"{part}.groups" for part in parts]} if dealt else {}


def choice_notes(scenario: Scenario) -> list[str]:
    """The notes about choices that guarantees do not charge for: hyperparameters, and bounds of targets."""
    bounded = getattr(scenario.data, "task", CLASSIFICATION) == REGRESSION
    return [scenario.tuning or TUNING_UNSTATED, *[BOUNDS_PUBLIC] * bounded]


def notes_of(
    scenario: Scenario, plan: Plan, rounds: Sequence[Mapping[str, Any]], *, tested: bool
) -> list[str]:
    """The notes that belong to the figures of a run.

    Args:
        scenario: What was asked for.
        plan: The privacy plan that ran.
        rounds: The rounds that have completed.
        tested: Whether held-out records belong to clients.
    """
    dropout, data = scenario.federation.dropout, scenario.data
    return [
        *choice_notes(scenario),
        *[TESTED_NOTE] * tested,
        *[UNTESTED_NOTE] * (isinstance(data, OnNodes) and data.test is None),
        *_stopping(scenario, plan, rounds),
        *[ADAPTIVE_NOTE] * (plan.adaptive is not None),
        *([plan.frozen.words] if plan.frozen is not None and plan.frozen.words else []),
        *([dropout_note(dropout, scenario.server.aggregation)] if dropout else []),
        *_void(scenario, plan, rounds),
    ]


def _void(scenario: Scenario, plan: Plan, rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """The note about rounds with too few survivors or answers, if there are any."""
    void, server = sum(bool(event.get("void")) for event in rounds), scenario.server
    if not void:
        return []
    if plan.shares is not None:
        return [void_note(void, len(rounds), plan.shares.min_survivors)]
    least = least_answers(server.aggregation, server.byzantine or 0)
    return [unanswered_note(void, len(rounds), server.aggregation, least)]


def has_stopped_early(scenario: Scenario, plan: Plan, rounds: Sequence[Mapping[str, Any]]) -> bool:
    """Whether early stopping has ended a run before its planned rounds."""
    patience = scenario.server.patience
    return len(rounds) < plan.rounds and early_stopping.has_ended(rounds, plan.rounds, patience)


def _stopping(scenario: Scenario, plan: Plan, rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """The notes about early stopping, if the run has it."""
    patience = scenario.server.patience
    if patience is None:
        return []
    stopped, noise = has_stopped_early(scenario, plan, rounds), plan.noise_words is not None
    return [early_stopping.words(len(rounds), plan.rounds, patience, stopped=stopped, noise=noise)]


def heard_of(
    document: Mapping[str, Any], scenario: Scenario, rounds: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The document of a run that wrote it when it began, with the rounds that were heard of since.

    Args:
        document: As the run wrote it.
        scenario: What was asked for.
        rounds: As `round_event` made them.
    """
    plan, tested = Plan.from_json(document["plan"]), TESTED_NOTE in document["notes"]
    return {
        **document,
        "rounds": rounds,
        "final": _final(rounds, None),
        "estimate": estimate(rounds, scenario.server.aggregation),
        "notes": notes_of(scenario, plan, rounds, tested=tested),
    }


def _final(
    rounds: Sequence[Mapping[str, Any]],
    per_class: Sequence[Mapping[str, Any]] | None,
    measured: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The model's accuracy and loss, by the last evaluation, and what else was measured of the final one."""
    evaluated = [event for event in rounds if "score" in event or event["accuracy"] is not None]
    last = evaluated[-1] if evaluated else {"accuracy": None, "loss": None}
    known = {key: last[key] for key in ("accuracy", "score", "loss") if key in last}
    return Final.new(**known, per_class=per_class, **measured).to_json()


def broken_off(document: Mapping[str, Any], status: str, error: str) -> dict[str, Any]:
    """The document of a run that can no longer close it itself: its process was ended.

    Args:
        document: As the run last wrote it.
        status: "interrupted" by the user, or "failed": then a fault that may depend on the data ended it.
        error: What ended it.
    """
    ledger = document["ledger"]
    if status == "failed":
        ledger = {**ledger, "claims": _broke_off(ledger["claims"])}
        if ledger.get("groups"):
            ledger["groups"] = [
                {**group, "claims": _broke_off(group["claims"])} for group in ledger["groups"]
            ]
    stated = [guarantee.to_json() for guarantee in guarantees(ledger)]
    privacy = {**document["privacy"], "guarantees": stated}
    if ledger.get("groups"):
        of_groups = group_guarantees(ledger)
        privacy["groups"] = [
            {**group, "guarantees": [guarantee.to_json() for guarantee in of_groups[group["name"]]]}
            for group in privacy["groups"]
        ]
    return {**document, "status": status, "error": error, "ledger": ledger, "privacy": privacy}


def _broke_off(claims: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Claims with the assumption of a run that a fault has ended."""
    return [
        claim if claim["event"] is None else {**claim, "assumptions": broke_off(claim["assumptions"])}
        for claim in claims
    ]


def scenario_digest(directory: RunDirectory) -> str:
    """Tells whether a run directory still holds the scenario that its run began with."""
    text = bounded_json.read_bytes(directory.path / "scenario.toml", follow=False)
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def round_event(
    number: int,
    *,
    cohort: int,
    zeroed: int | None,
    failures: int,
    refusals: int,
    faults: Mapping[str, int],
    contributed: int | None,
    first_failure: str | None,
    quality: Evaluation | None,
    seconds: float,
    public_loss: float | None = None,
    clipping_norm: float | None = None,
    void: bool = False,
    void_reason: str | None = None,
) -> dict[str, Any]:
    """A round as one line of events.jsonl; numbers that are not finite become null.

    `public_loss` is what early stopping reads where `quality` is of other records; None: it was not measured.
    `faults` are counts by kind (`fedprivacy.messages.faults.KINDS`), `contributed` how many are in the
    sum with an update of their own; `clipping_norm` is there where it changes from round to round, `void`
    where too few clients survived for a secure sum, and `void_reason` where that is known.
    """
    loss = quality.loss if quality else None
    reached = scored(quality.task, quality.score) if quality else {"accuracy": None}
    measured = {} if public_loss is None else {early_stopping.PUBLIC_LOSS: _finite(public_loss)}
    if quality is not None and quality.balanced_accuracy is not None:
        measured["balanced_accuracy"] = quality.balanced_accuracy
    sometimes = {
        "clipping_norm": clipping_norm,
        "first_failure": first_failure,
        "void": void or None,
        "void_reason": void_reason,
    }
    return Round.new(
        round=number,
        cohort=cohort,
        **reached,
        loss=_finite(loss),
        seconds=round(seconds, 6),
        zeroed=zeroed,
        failures=failures,
        refusals=refusals,
        faults=dict(faults),
        contributed=contributed,
        **measured,
        **{name: value for name, value in sometimes.items() if value is not None},
    ).to_json()


def _finite(loss: float | None) -> float | None:
    """A loss that JSON can hold."""
    return loss if loss is not None and np.isfinite(loss) else None
