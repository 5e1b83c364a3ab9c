"""The kinds of attacks in trials, by the name that a scenario gives them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from fedprivacy.attacks.trials import TrialKind

# The class of each kind, in its module: a stored run is shown without what its attacks import.
REGISTRY: Mapping[str, str] = {
    "property": "property_inference:PropertyInference",
    "attribute": "attribute_inference:AttributeInference",
    "reconstruction": "reconstruction.attack:RecordReconstruction",
    "poisoning": "poisoning.attack:ModelPoisoning",
}


@cache
def trial_kind(name: str) -> TrialKind[Any]:
    """The kind of a name in `REGISTRY`, imported when it is first used."""
    module, _, kind = REGISTRY[name].partition(":")
    loaded: TrialKind[Any] = getattr(import_module(f"fedprivacy.attacks.{module}"), kind)()
    return loaded
