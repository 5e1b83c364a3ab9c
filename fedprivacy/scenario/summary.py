"""Describes a scenario by its settings, for where the words of its file no longer hold.

1,437 clients, each with one record of digits (1,437 records), train a logistic model together; the server
adds noise (trust central); epsilon 2, delta 1e-05, unit client, adjacency replace-one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario

SYNTHETIC = {
    "synthetic": "synthetic records",
    "purchase-like": "synthetic purchases",
    "logistic-model": "synthetic records",
    "bits": "simulated answers",
    "categories": "simulated answers",
    "numbers": "simulated answers",
    "on-nodes": "the records of the nodes",
}
NOISE = {
    "none": "nobody adds noise (trust none)",
    "local": "each client adds noise (trust local)",
    "central": "the server adds noise (trust central)",
}
DEALT = {
    "one-per-example": "each with one record of",
    "iid": "who share at random",
    "dirichlet": "who share, each with labels of its own,",
    "by-user": "the users of",
    "fixed-records": "each with equally many records of",
}


def data_label(data: Mapping[str, Any]) -> str:
    """The data of a scenario's `data` section in a few words; of a file its name without folders.

    >>> data_label({"name": "npz", "path": "data/heart.npz"}), data_label({"name": "bits"})
    ('heart.npz', 'simulated answers')
    """
    name, path = str(data.get("name") or ""), data.get("path")
    if not isinstance(path, str) or not path:
        return SYNTHETIC.get(name, name)
    # A data set of the Hub is known by owner and name; where a file lies is nobody's business.
    return path if name == "flwr-datasets" and not path.startswith((".", "/")) else PurePath(path).name


def summary(scenario: AnyScenario, *, compared: bool = False) -> str:
    """Describes who has which data, what is made of it, and who adds noise, from the settings alone.

    Args:
        scenario: Of any kind.
        compared: Whether it is run under every trust model of its comparison.
    """
    data = data_label(scenario.data.model_dump())
    if isinstance(scenario, ErmScenario):
        return f"Private estimates from {data}{_count_of(scenario)}, by {', '.join(scenario.approaches)}."
    if isinstance(scenario, Statistics):
        who = f"{_clients(scenario)} answer {', '.join(scenario.queries)} from {data}"
    else:
        who = f"{_clients(scenario)}, {DEALT.get(getattr(scenario.data, 'partition', ''), 'who have')} {data}"
        who += f"{_count_of(scenario)}, train a {scenario.model.name} model together"
        if isinstance(scenario, AttackScenario):
            who += f", which is attacked by {', '.join(scenario.attacks)}"
        if isinstance(scenario, TuneScenario):
            who += ", whose settings are chosen from a grid"
    return f"{who}; {_protection(scenario, compared)}."


def _protection(scenario: Scenario | Statistics, compared: bool) -> str:
    if compared:
        return f"compared under trust {', '.join(scenario.compare.trusts)}"
    privacy = scenario.privacy
    noise = NOISE.get(privacy.trust, f"trust {privacy.trust}")
    epsilon = getattr(privacy, "epsilon", None)
    if privacy.trust == "none" or epsilon is None:
        return noise
    unit = f"unit {getattr(privacy, 'unit', 'client')}, adjacency {privacy.adjacency}"
    return f"{noise}; epsilon {epsilon:g}, delta {getattr(privacy, 'delta', 0.0):g}, {unit}"


def _clients(scenario: Scenario | Statistics) -> str:
    """How many clients there are; without a number where it is unknown, or itself protected."""
    if isinstance(scenario, Statistics) and scenario.privacy.adjacency != "replace-one":
        return "Clients"
    try:
        count = scenario.population
    except (InputError, AssertionError):  # of data that cannot be read yet, which running it explains
        return "Clients"
    return "1 client" if count == 1 else f"{count:,} clients"


def _count_of(scenario: Scenario | ErmScenario) -> str:
    """How many training records there are; nothing where the settings and headers do not say so."""
    try:
        data: Any = scenario.data
        facts = getattr(data, "facts", None)
        count = facts.records if facts is not None else _first(data, "train_records", "records")
    except InputError:
        return ""
    public = getattr(data, "public_fraction", 0.0)
    of_nobody = f", {100 * public:g} % of them public" if public else ""
    return f" ({count:,} records{of_nobody})" if isinstance(count, int) else ""


def _first(data: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(data, name, None)) is not None), None)
