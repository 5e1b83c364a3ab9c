"""Follows a run for a tracker: public values only, and others under `operator/` on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedprivacy.documents.headline import headline
from fedprivacy.documents.redaction import TESTED_NOTE, operator_only, public, redact, select
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.secret_values import secret_paths
from fedprivacy.errors import InputError
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.flat_tables import flat
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import AnyScenario
from scenarios.tracking.tracker import Tracker, tracker_class

if TYPE_CHECKING:  # the command starts without accountants
    from fedprivacy.guarantees.so_far import EpsilonSoFar

_WORDS = ("description", "duration", "tuning")
OPERATOR = "operator/"


class Tracking:
    """A tracker, and what it may see.

    Args:
        tracker: An open tracker; None ignores all values.
        operator: Whether operator-only values go there too (`--operator`).
        tested: Whether held-out records belong to clients. Accuracy and loss are operator-only then, since
            every guarantee assumes that its observer does not see them.
    """

    def __init__(self, tracker: Tracker | None, operator: bool = False, tested: bool = False) -> None:
        self._tracker, self._operator, self._tested = tracker, operator, tested

    def beside(self, show: Callable[[Any], None]) -> Callable[[Any], None]:
        """Returns a function that shows an event and, if it is a round of training, logs it."""

        def on_event(event: Any) -> None:
            show(event)
            if self._tracker is not None and "accuracy" in event and "round" in event:
                self._round(self._tracker, event)

        return on_event

    def _round(self, tracker: Tracker, event: Mapping[str, Any]) -> None:
        from fedprivacy.guarantees.so_far import SO_FAR

        step, event = event["round"] + 1, dict(event)
        so_far: EpsilonSoFar | None = event.pop(SO_FAR, None)
        if so_far is not None and (epsilons := so_far.after(step)) is not None:
            known = {observer: value for observer, value in epsilons.items() if value is not None}
            terms = so_far.terms.replace(", ", "-").replace(" ", "-")
            tracker.log({f"{SO_FAR}/{name}/{terms}": value for name, value in known.items()}, step)
        marks = {"operator_only": [*RunDocument.OPERATOR_ONLY], "notes": [TESTED_NOTE] * self._tested}
        shown = public({"rounds": [event], **marks})["rounds"][0]
        shown.pop("round", None)
        tracker.log(_numbers(shown), step)
        if self._operator:
            private = {key: value for key, value in event.items() if key not in shown and key != "round"}
            tracker.log({OPERATOR + key: value for key, value in _numbers(private).items()}, step)

    def result(self, document: Mapping[str, Any]) -> None:
        """Logs the guarantees of a run that has ended, or the cells of a comparison."""
        if self._tracker is None:
            return
        # Sizes that are private under add-remove are marked as known to the simulation alone.
        hidden = document.get("simulation_only") or ()
        shown = redact(public(document), hidden)
        if document["kind"] != RunDocument.KIND:
            # Only the record knows whether the number of clients is public: not so under add-remove.
            self._tracker.settings(_settings(shown["scenario"]))
        for guarantee in shown.get("privacy", {}).get("guarantees", ()):
            _state(self._tracker, guarantee["observer"], guarantee, len(shown.get("rounds", ())))
        for cell in shown.get("cells", ()):
            parts = [cell["trust"], cell.get("asked"), cell["epsilon"]]
            label = "/".join(str(part) for part in parts if part is not None)
            figure = headline(cell)
            if isinstance(figure, dict) and figure.get("mean") is not None:
                named = "score" if "score" in cell else "accuracy"
                self._tracker.log({f"{named}/{label}": figure["mean"]}, 0)
            for guarantee in cell["guarantees"]:
                _state(self._tracker, f"{label}/{guarantee['observer']}", guarantee, 0)
        if self._operator:
            for path in dict.fromkeys([*operator_only(document), *secret_paths(document)]):
                if values := select(document, path):
                    value = values if "[]" in path else values[0]
                    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    self._tracker.note(OPERATOR + path.replace("[]", ""), text)


def _state(tracker: Tracker, key: str, guarantee: Mapping[str, Any], step: int) -> None:
    """Logs a guarantee: its sentence, and its epsilon under a name that has its terms."""
    tracker.note(f"guarantee/{key}", guarantee["words"])
    if guarantee["epsilon"] is not None:
        terms = f"{guarantee['unit']}-{guarantee['adjacency']}-delta-{guarantee['delta']:g}"
        tracker.log({f"epsilon/{key}/{terms}": guarantee["epsilon"]}, step)


def check_tracking(name: str | None, operator: bool, resumed: bool) -> None:
    """Refuses options of tracking that do not go together, before anything is written.

    Raises:
        InputError: if a tracker is unknown, not installed, or asked to follow a run from its middle.
    """
    if name is None and operator:
        raise InputError("operator: without a tracker nothing is sent. Name one with track.")
    if name is not None and resumed:
        raise InputError("--track with --resume: a tracker follows runs from their start. Leave it out.")
    if name is not None:
        tracker_class(name)


@contextmanager
def tracking(
    name: str | None,
    scenario: AnyScenario,
    out: Path,
    operator: bool = False,
    tested: bool | None = None,
) -> Iterator[Tracking]:
    """Opens a tracker for a scenario, and closes it however the run ends.

    Without a name nothing is logged.

    Args:
        name: The tracker.
        scenario: The scenario that is run.
        out: The folder of run directories.
        operator: As of `Tracking`.
        tested: As of `Tracking`; None: as the scenario's data say.

    Raises:
        InputError: if there is no such tracker, or it cannot be opened.
    """
    if name is None:
        yield Tracking(None)
        return
    tracker = _Forgiving(tracker_class(name)(scenario.label, out), name)
    try:
        if isinstance(scenario, Scenario):
            tracker.settings(public_settings(scenario))
            tested = _tests_clients(scenario) if tested is None else tested
        yield Tracking(tracker, operator, bool(tested))
    except BaseException:
        tracker.close(finished=False)
        raise
    tracker.close(finished=True)


def _tests_clients(scenario: Scenario) -> bool:
    """Whether held-out records belong to clients, or may."""
    from fedprivacy.population.clients import population

    try:
        return population(scenario.data).tests_clients(scenario.evaluation.on)
    except InputError:  # the records are on nodes
        return True


class _Forgiving(Tracker):
    """A tracker whose errors end the tracking, and not the run."""

    def __init__(self, tracker: Tracker, name: str) -> None:
        self._tracker: Tracker | None = tracker
        self._name = name

    def _call(self, method: str, *arguments: Any) -> None:
        if self._tracker is None:
            return
        try:
            getattr(self._tracker, method)(*arguments)
        except Exception as error:  # of the tracker's own library, or of its network
            self._tracker = None
            reason = on_one_line(f"{type(error).__name__}: {error}"[:300])
            print(f"--track {self._name}: stopped, and the run continues: {reason}", file=sys.stderr)

    def settings(self, settings: Mapping[str, str]) -> None:
        self._call("settings", settings)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._call("log", values, step)

    def note(self, key: str, text: str) -> None:
        self._call("note", key, text)

    def close(self, finished: bool) -> None:
        self._call("close", finished)


def public_settings(scenario: Scenario) -> dict[str, str]:
    """Returns the settings of a training without those of the operator alone, key -> value as text."""
    marks = {"operator_only": [*RunDocument.OPERATOR_ONLY]}
    return _settings(public({"scenario": scenario.tables(), **marks})["scenario"])


def _settings(tables: Mapping[str, Any]) -> dict[str, str]:
    settings = {key: value for key, value in tables.items() if key not in _WORDS}
    return {path: str(value) for path, value in flat(settings)}


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Returns the numbers of a table."""
    return {
        key: float(value)
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
