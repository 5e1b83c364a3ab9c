"""Parts of the summary of a scenario by its settings, for where the words of its file no longer hold.

Each kind of scenario composes them (`BaseScenario.summary`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from fedprivacy.errors import InputError

SYNTHETIC = {
    "synthetic": "synthetic records",
    "purchase-like": "synthetic purchases",
    "text": "a simulated play",
    "logistic-model": "synthetic records",
    "bits": "simulated answers",
    "categories": "simulated answers",
    "numbers": "simulated answers",
    "on-nodes": "the records of the nodes",
}
NOISE = {
    "none": "nobody adds noise (trust none)",
    "local": "each client adds noise (trust local)",
    "shuffled": "each client adds noise behind a shuffler (trust shuffled)",
    "central": "the server adds noise (trust central)",
    "distributed": "each client adds a share of the noise to a secure sum (trust distributed)",
}
DEALT = {
    "one-per-example": "each with one record of",
    "iid": "who share at random",
    "dirichlet": "who share, each with labels of its own,",
    "by-label": "who share in the order of labels",
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


class Populated(Protocol):
    """A scenario of clients."""

    @property
    def population(self) -> int:
        """The number of clients."""


def sentence(what: str, privacy: Any, trusts: Sequence[str] | None) -> str:
    """Describes work and its protection.

    Args:
        what: Who computes what from which data.
        privacy: The section of its protection, of any trust model.
        trusts: The trust models under which it is compared; None where it is not.
    """
    protection = _protection(privacy) if trusts is None else f"compared under trust {', '.join(trusts)}"
    return f"{what}; {protection}."


def _protection(privacy: Any) -> str:
    noise = NOISE.get(privacy.trust, f"trust {privacy.trust}")
    epsilon = getattr(privacy, "epsilon", None)
    if privacy.trust == "none" or epsilon is None:
        return noise
    unit = f"unit {getattr(privacy, 'unit', 'client')}, adjacency {privacy.adjacency}"
    return f"{noise}; epsilon {epsilon:g}, delta {getattr(privacy, 'delta', 0.0):g}, {unit}"


def clients_label(scenario: Populated) -> str:
    """The number of clients; "Clients" of data that cannot be read yet, which running it explains."""
    try:
        count = scenario.population
    except (InputError, AssertionError):
        return "Clients"
    return "1 client" if count == 1 else f"{count:,} clients"


def records_label(data: Any) -> str:
    """The number of training records of a `data` section, in parentheses.

    Empty where the settings and headers do not state it.
    """
    try:
        facts = getattr(data, "facts", None)
        count = facts.records if facts is not None else _first(data, "train_records", "records")
    except InputError:
        return ""
    public = getattr(data, "public_fraction", 0.0)
    of_nobody = f", {100 * public:g} % of them public" if public else ""
    if not isinstance(count, int):
        return ""
    clients = data.clients if getattr(data, "partition", "") == "fixed-records" else None
    owned = f"{clients * data.records_per_client:,} of " if clients else ""
    return f" ({owned}{count:,} records{of_nobody})"


def _first(data: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(data, name, None)) is not None), None)
