"""The scenario: a strict TOML file with everything that determines a run.

>>> from fedprivacy.scenario import Scenario
>>> scenario = Scenario.read("scenarios/digits.toml", overrides=["server.rounds=10"])  # doctest: +SKIP
"""

from __future__ import annotations

from fedprivacy.scenario.data import Digits, FlwrDatasets, Npz, PurchaseLike, Synthetic, TextFile
from fedprivacy.scenario.model import Cnn, Code, Gru, Logistic, Mlp, Transformer
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.privacy import CentralPrivacy, DistributedPrivacy, LocalPrivacy, NoPrivacy
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.sections import (
    AdamServer,
    AllSampling,
    Compare,
    Evaluation,
    Federation,
    FixedSampling,
    MomentumServer,
    PoissonSampling,
    SgdServer,
)
from fedprivacy.scenario.training import PoissonTraining, ReplacementTraining, ShuffledTraining

__all__ = [
    "AdamServer",
    "AllSampling",
    "CentralPrivacy",
    "Cnn",
    "Code",
    "Compare",
    "Digits",
    "DistributedPrivacy",
    "Evaluation",
    "Federation",
    "FixedSampling",
    "FlwrDatasets",
    "Gru",
    "LocalPrivacy",
    "Logistic",
    "Mlp",
    "MomentumServer",
    "NoPrivacy",
    "Npz",
    "OnNodes",
    "PoissonSampling",
    "PoissonTraining",
    "PurchaseLike",
    "ReplacementTraining",
    "Scenario",
    "SgdServer",
    "ShuffledTraining",
    "Synthetic",
    "TextFile",
    "Transformer",
]
