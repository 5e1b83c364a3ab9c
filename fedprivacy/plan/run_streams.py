"""The random streams of a run."""

from __future__ import annotations

import hashlib
import json

from fedprivacy.population.clients import Population
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario import Code, OnNodes, Scenario

# Neither words about a run, nor when it is measured, nor what it is compared with, change it; nor what
# attacks it afterwards, whose answers have noise of their own. Who is a member in a game stands in the data.
# Where a defence looks at what no client has, some of it does: see below.
_WITHOUT_EFFECT = (
    *("name", "description", "duration", "tuning", "seed", "evaluation", "compare"),
    *("game", "attacks", "arms", "tune"),
)
_AS_EVER = (
    *(("batches", "shuffled"), ("averaging", False), ("weighting", "clients"), ("trainer", "fedprivacy")),
    *(("device", "cpu"), ("kernel_size", 3), ("adversarial_steps", 1), ("adversarial_first", 0)),
    ("denoise", "none"),
)


def run_streams(scenario: Scenario, people: Population, code: str = "") -> Streams:
    """The streams of a scenario on its data: any other scenario, data or code has other noise.

    The same noise under two budgets, or over two versions of the data, could be solved for.

    Args:
        scenario: What is run.
        people: Its data.
        code: What tells the code of its model from other code (`Blueprint.code`).
    """
    if isinstance(scenario.model, Code) and not code:
        raise ValueError("a model by code needs what tells it from other code of the same name")
    settings = {key: value for key, value in scenario.tables().items() if key not in _WITHOUT_EFFECT}
    # The digest says what the data are, wherever they lie.
    settings["data"].pop("test" if isinstance(scenario.data, OnNodes) else "path", None)
    if code:
        settings["code"] = code
    # What says the same as before there was a choice keeps the noise that was drawn then.
    for section in ("training", "model", "server"):
        chosen = settings[section]
        settings[section] = {key: value for key, value in chosen.items() if (key, value) not in _AS_EVER}
    # How a cohort is cut has no effect but where one draw stands for a chunk; who then looks at each
    # update instead of their sum looks at the same run.
    federation = settings.pop("federation")
    # Who has answered when time is up is in the sum.
    settings["timeout"] = federation["timeout"]
    settings |= {key: federation[key] for key in ("dropout", "client_timeout") if federation.get(key)}
    if settings["privacy"].get("noise_draw") == "sum":
        settings["chunks"] = [federation["hosts"], federation["chunk_size"]]
    # What a defence compares the clients with, and when it looks, is in what is trained, and for how long.
    stopping = scenario.server.patience is not None
    if stopping or scenario.training.adversarial is not None:
        settings["references"] = hashlib.blake2b(people.references.tobytes(), digest_size=16).hexdigest()
    if stopping:
        settings["every"] = scenario.evaluation.every
    text = json.dumps([settings, people.digest], sort_keys=True)
    return Streams(scenario.seed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
