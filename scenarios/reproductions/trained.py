"""Rows on models with an epsilon: a ready scenario is run as by `fedprivacy run`, and stored like it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from fedprivacy.errors import RunError
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.scenario import Scenario
from scenarios.authoring.catalogue import find
from scenarios.reproductions.row import Measured, Place, Row
from scenarios.reproductions.settings import guarantee_of

_SCENARIO = "mnist-records"


def data(place: Place) -> Path:
    """Returns the file that the scenario would read."""
    if place.data is not None:
        return place.data
    return Path(tomllib.loads(find(_SCENARIO).read_text(encoding="utf-8"))["data"]["path"])


def accuracy(place: Place) -> Measured:
    """Runs the scenario; its test accuracy in per cent, and the guarantee that the run states.

    Raises:
        RunError: It did not finish.
    """
    from scenarios.runner import run

    path = [] if place.data is None else [f"data.path={json.dumps(str(place.data))}"]
    scenario = load(find(_SCENARIO), path)
    assert isinstance(scenario, Scenario)
    document = run(scenario, place.out, command=f"fedprivacy run {_SCENARIO}")
    reached = (document.get("final") or {}).get("accuracy")
    if document["status"] != "finished" or reached is None:
        raise RunError(f"{_SCENARIO}: did not finish; {document['path']} has the reason.")
    return Measured(100 * reached, guarantee_of(document["privacy"]), str(document["path"]))


ROWS = (
    Row(
        "handcrafted-mnist",
        "MNIST by DP-SGD on scattering features, epsilon 3 and delta 1e-5: 98.4 to 98.7 % accuracy",
        "Tramer and Boneh 2021",
        "accuracy, per cent",
        98.7,
        98.64,
        0.1,
        900,
        accuracy,
        data,
    ),
)
