"""The record of a statistics run: the document run.json, kept true query by query."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.guarantee import Terms
from fedprivacy.documents.statistics import StatisticsDocument, StatisticsPrivacy
from fedprivacy.guarantees.charge import charged
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.guarantees.statement import completed, guarantees
from fedprivacy.io.environment import versions
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.ledger import StatisticsLedger
from fedprivacy.statistics.plan import StatisticsPlan
from fedprivacy.statistics.shuffled import shuffled

TRUTH_NOTE = (
    "True values and errors are known to this simulation alone: no real federation has them, and no "
    "guarantee here holds against those who see them."
)
SIZES_NOTE = (
    "Under this adjacency the number of clients is itself private. A comparison plays with it and shows it: "
    "no guarantee here holds against those who are told it."
)
OnQuery = Callable[[dict[str, Any]], None]


def charged_ledger(
    plan: StatisticsPlan, done: int, status: str, *, held: bool, stated: Stated
) -> dict[str, Any]:
    """The ledger that a document states; an interrupted query counts as sent.

    Args:
        plan: The run's plan.
        done: The queries with a result.
        status: As the document has it.
        held: As `ledger` has it.
        stated: As `ledger` has it.
    """
    planned = len(plan.asks)
    started = StatisticsLedger(plan, min(done + 1, planned), held, stated)
    return charged(started, status, rounds=done, planned=planned, early_stopping=False)


def claims_of(
    scenario: Statistics, plan: StatisticsPlan, charge: dict[str, Any], *, held: bool, stated: Stated
) -> dict[str, Any]:
    """The parts of the document that scenario and plan decide: guarantees and secrets.

    Args:
        scenario: The scenario.
        plan: Its plan.
        charge: As `charged_ledger` gives it.
        held: As `ledger` has it.
        stated: As `ledger` has it.
    """
    private_size = StatisticsDocument.SIZES if plan.adjacency != "replace-one" else ()
    return {
        "randomness": stated.to_json(held=held),
        "plan": plan.to_json(),
        "privacy": StatisticsPrivacy.new(
            **{key: charge[key] for key in Terms.model_fields},
            epsilon=scenario.privacy.epsilon,
            shuffled=shuffled(plan) if scenario.privacy.shuffled else None,
            guarantees=[guarantee.to_json() for guarantee in guarantees(charge)],
            **completed(charge),
        ).to_json(),
        "ledger": charge,
        "operator_only": [*StatisticsDocument.OPERATOR_ONLY, *private_size],
        "simulation_only": list(StatisticsDocument.SIMULATION_ONLY),
        "notes": [TRUTH_NOTE],
    }


class StatisticsRecord:
    """Collects the answers of a statistics run, writes them after each query, and closes with a status.

    Args:
        scenario: The scenario.
        plan: The privacy plan that runs.
        directory: Where it is written; None: nowhere, as for one of many cells of a comparison.
        command: The command that reproduces the run, for the report.
        on_query: Called with each query's result, for progress displays.
        held: Whether the clients hold a plan of their own (`ledger`).
        noise_key: Keeps the noise of this run apart from that of others (`statistics_streams`).
        stated: The submitter's statements about remote nodes.
    """

    def __init__(
        self,
        scenario: Statistics,
        plan: StatisticsPlan,
        directory: RunDirectory | None,
        *,
        command: str = "",
        on_query: OnQuery | None = None,
        held: bool = True,
        noise_key: str = "",
        stated: Stated = SIMULATION,
    ) -> None:
        self.scenario, self.plan, self.directory = scenario, plan, directory
        self.command, self.on_query, self.held, self.noise_key = command, on_query, held, noise_key
        self.stated = stated
        self.queries: list[dict[str, Any]] = []
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.dealing: Mapping[str, Any] | None = None  # of hosts to nodes (`server.hosts`), once it is known
        self._clock = time.perf_counter()

    def begin(self) -> None:
        """Writes the document of a run under way, which may be killed: the whole plan is charged in it."""
        self._write("running", None)

    def commit(self, result: dict[str, Any]) -> None:
        """Adds the result of a query."""
        self.queries.append(result)
        if self.directory is not None:
            self.directory.append_event(result)
        if self.on_query:
            self.on_query(result)

    def finish(self, status: str, error: str | None = None) -> None:
        """Writes the final document."""
        self._write(status, error)

    def _write(self, status: str, error: str | None) -> None:
        if self.directory is not None:
            self.directory.write_document(self._document(status, error))

    def _document(self, status: str, error: str | None) -> dict[str, Any]:
        charge = charged_ledger(self.plan, len(self.queries), status, held=self.held, stated=self.stated)
        claims = claims_of(self.scenario, self.plan, charge, held=self.held, stated=self.stated)
        return StatisticsDocument.new(
            name=self.scenario.name,
            seed=self.scenario.seed,
            path=str(self.directory.path) if self.directory else None,
            status=status,
            error=error,
            command=self.command,
            started=self.started,
            versions=versions(),
            scenario=self.scenario.tables(),
            noise_key=self.noise_key,
            dealing=self.dealing,
            queries=self.queries,
            **claims,
            performance=Performance.of_process(time.perf_counter() - self._clock),
        ).to_json()
