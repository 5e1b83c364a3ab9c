"""fedprivacy: simulates federated learning with differential privacy, with a guarantee per observer.

import fedprivacy as fp
result = fp.run("digits", epsilon=2)
result.guarantees["participant"]
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from fedprivacy.io.deferred import defer

if TYPE_CHECKING:
    from fedprivacy.errors import FedPrivacyError as FedPrivacyError
    from fedprivacy.errors import InputError as InputError
    from scenarios.api.actions import ask as ask
    from scenarios.api.actions import audit as audit
    from scenarios.api.actions import compare as compare
    from scenarios.api.actions import noise as noise
    from scenarios.api.actions import read as read
    from scenarios.api.actions import replay as replay
    from scenarios.api.actions import run as run
    from scenarios.api.actions import scenario_for as scenario_for
    from scenarios.api.actions import track as track
    from scenarios.api.actions import tune as tune
    from scenarios.api.data_argument import people as people
    from scenarios.api.stored import runs as runs

__version__ = "0.1.0"

# Name -> its module. Each is imported at its first use: the rooms below import this package, and torch takes
# seconds.
_HOMES = {
    "FedPrivacyError": "fedprivacy.errors",
    "InputError": "fedprivacy.errors",
    "ask": "scenarios.api.actions",
    "audit": "scenarios.api.actions",
    "compare": "scenarios.api.actions",
    "noise": "scenarios.api.actions",
    "people": "scenarios.api.data_argument",
    "read": "scenarios.api.actions",
    "replay": "scenarios.api.actions",
    "run": "scenarios.api.actions",
    "runs": "scenarios.api.stored",
    "scenario_for": "scenarios.api.actions",
    "track": "scenarios.api.actions",
    "tune": "scenarios.api.actions",
}
__all__ = [
    "FedPrivacyError",
    "InputError",
    "__version__",
    "ask",
    "audit",
    "compare",
    "noise",
    "people",
    "read",
    "replay",
    "run",
    "runs",
    "scenario_for",
    "track",
    "tune",
]

# Without it, on some processors, MKL adds up a product in an order that depends on where in memory it stands,
# and a client's bits would tell how many others there are. It is read at the first product.
os.environ.setdefault("MKL_CBWR", "AUTO")

# Its events are in every plan, but its accountants, which import half of scipy, are not always needed.
defer("dp_accounting")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fedprivacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
