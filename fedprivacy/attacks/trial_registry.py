"""The kinds of attacks in trials, by the name that a scenario gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.attacks.attribute_inference import AttributeInference
from fedprivacy.attacks.poisoning.attack import ModelPoisoning
from fedprivacy.attacks.property_inference import PropertyInference
from fedprivacy.attacks.reconstruction.attack import RecordReconstruction
from fedprivacy.attacks.trials import TrialKind

REGISTRY: Mapping[str, TrialKind[Any]] = {
    "property": PropertyInference(),
    "attribute": AttributeInference(),
    "reconstruction": RecordReconstruction(),
    "poisoning": ModelPoisoning(),
}
