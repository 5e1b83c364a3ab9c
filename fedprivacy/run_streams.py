"""The random streams of a run."""

from __future__ import annotations

import hashlib
import json

from fedprivacy.data.population import Population
from fedprivacy.scenario import Scenario
from fedprivacy.seeds import Streams

# Neither words about a run, nor when it is measured, nor what it is compared with, change it.
_WITHOUT_EFFECT = ("name", "description", "duration", "tuning", "seed", "evaluation", "compare")


def run_streams(scenario: Scenario, people: Population) -> Streams:
    """The streams of a scenario on its data: any other scenario, or other data, has other noise.

    The same noise under two budgets, or over two versions of the data, could be solved for.
    """
    settings = {key: value for key, value in scenario.tables().items() if key not in _WITHOUT_EFFECT}
    # How a cohort is cut has no effect but where one draw stands for a chunk; who then looks at each
    # update instead of their sum looks at the same run.
    federation = settings.pop("federation")
    if settings["privacy"].get("noise_draw") == "sum":
        settings["chunks"] = [federation["hosts"], federation["chunk_size"]]
    text = json.dumps([settings, people.digest], sort_keys=True)
    return Streams(scenario.seed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
