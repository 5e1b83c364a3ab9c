"""MLflow: a run of the experiment "fedprivacy", at the tracking URI that the environment gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import mlflow

from fedprivacy.errors import InputError
from scenarios.tracking.tracker import PROJECT, Tracker


class Mlflow(Tracker):
    """An MLflow run."""

    def __init__(self, label: str, out: Path) -> None:
        """Opens a run, without making it the active run of the process."""
        try:
            self._client = mlflow.MlflowClient()
            existing = self._client.get_experiment_by_name(PROJECT)
            experiment = existing.experiment_id if existing else self._client.create_experiment(PROJECT)
            self._run = self._client.create_run(experiment, run_name=label).info.run_id
        except Exception as error:  # of the store that the environment names
            reason = str(error).strip().split("\n")[0]
            raise InputError(f"--track mlflow: {reason} Set MLFLOW_TRACKING_URI to a store.") from error

    def settings(self, settings: Mapping[str, str]) -> None:
        """Logs parameters."""
        for key, value in settings.items():
            self._client.log_param(self._run, key, value[:500])

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Logs metrics."""
        for key, value in values.items():
            self._client.log_metric(self._run, key, value, step=step)

    def note(self, key: str, text: str) -> None:
        """Logs a tag, which holds up to 5,000 characters."""
        self._client.set_tag(self._run, key.replace("/", "."), text[:5000])

    def close(self, finished: bool) -> None:
        """Ends the run."""
        self._client.set_terminated(self._run, "FINISHED" if finished else "FAILED")
