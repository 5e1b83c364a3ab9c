"""The random streams of a statistics run."""

from __future__ import annotations

import hashlib
import json

from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.population import People

# Neither words about a run nor what it is compared with change it.
_WITHOUT_EFFECT = ("name", "description", "duration", "tuning", "seed", "compare")


def statistics_streams(scenario: Statistics, people: People) -> Streams:
    """The streams of a scenario on its data: any other scenario or data has other noise.

    The same noise under two budgets, or over two versions of the data, could be solved for.
    """
    settings = {key: value for key, value in scenario.tables().items() if key not in _WITHOUT_EFFECT}
    settings["data"].pop("path", None)  # the digest identifies the data, independently of their path
    settings["data"].pop("public", None)  # which decides about the page alone
    text = json.dumps([settings, people.digest], sort_keys=True)
    return Streams(scenario.seed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
