"""The random streams of a run."""

from __future__ import annotations

import hashlib
import json

from fedprivacy.population.clients import Population
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario import Code, OnNodes, Scenario

# Descriptions, evaluation times, comparisons and later attacks (whose answers have their own noise) do not
# change a run. Memberships of a game are part of the data. Some of these keys matter to a defence that reads
# public records: see below.
_WITHOUT_EFFECT = (
    *("name", "description", "duration", "tuning", "seed", "evaluation", "compare"),
    *("game", "attacks", "arms", "tune"),
)
_AS_EVER = (
    *(("batches", "shuffled"), ("averaging", False), ("weighting", "clients"), ("trainer", "fedprivacy")),
    *(("device", "cpu"), ("kernel_size", 3), ("adversarial_steps", 1), ("adversarial_first", 0)),
    *(("denoise", "none"), ("aggregation", "mean"), ("clips", False), ("task", "classification")),
    *(("averaging", "none"), ("schedule", "constant")),
)


def run_streams(scenario: Scenario, people: Population, code: str = "") -> Streams:
    """The streams of a scenario on its data: any other scenario, data or code has other noise.

    An observer could solve for noise that two budgets, or two versions of the data, share.

    Args:
        scenario: The scenario of the run.
        people: Its data.
        code: The digest of its model's code or weights (`ModelSpec.code`).
    """
    if (isinstance(scenario.model, Code) or scenario.model.weights is not None) and not code:
        raise ValueError("a model by code or with weights of a file needs their digest")
    settings = {key: value for key, value in scenario.tables().items() if key not in _WITHOUT_EFFECT}
    # The digest identifies the data, independently of their path.
    settings["data"].pop("test" if isinstance(scenario.data, OnNodes) else "path", None)
    settings["data"].pop("public", None)  # which decides about the page alone
    settings["model"].pop("weights", None)  # a path too
    if code:
        settings["code"] = code
    # Keys that were added later do not change the noise at their defaults, so older runs can be repeated.
    for section in ("data", "training", "model", "server"):
        chosen = settings[section]
        settings[section] = {key: value for key, value in chosen.items() if (key, value) not in _AS_EVER}
    # The cut of a cohort into chunks matters only if one draw of noise serves a chunk. An observer of each
    # update instead of their sum observes the same run.
    federation = settings.pop("federation")
    # The timeout decides which clients are in the sum.
    settings["timeout"] = federation["timeout"]
    settings |= {key: federation[key] for key in ("dropout", "client_timeout") if federation.get(key)}
    if settings["privacy"].get("noise_draw") == "sum":
        settings["chunks"] = [federation["hosts"], federation["chunk_size"]]
    # The public records of a defence, and its evaluation times, change the training and its length.
    stopping = scenario.server.patience is not None
    if stopping or scenario.training.adversarial is not None:
        settings["references"] = hashlib.blake2b(people.references.tobytes(), digest_size=16).hexdigest()
    if stopping:
        settings["every"] = scenario.evaluation.every
    text = json.dumps([settings, people.digest], sort_keys=True)
    return Streams(scenario.seed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
