"""The sections of a scenario, and the key that selects the variant of each.

A new sampler or optimizer is a class in `sections`, a new data set one in `data`, a new model one in
`model`, and its name here (and in the union of its section): the reader, its suggestions and the
overlays of a comparison know it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedprivacy.scenario import sections as s
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.data import Digits, FlwrDatasets, Npz, PurchaseLike, Synthetic, TableFile, TextFile
from fedprivacy.scenario.model import Cnn, Code, Gru, Logistic, Mlp, Transformer
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.privacy import CentralPrivacy, DistributedPrivacy, LocalPrivacy, NoPrivacy
from fedprivacy.scenario.training import PoissonTraining, ReplacementTraining, ShuffledTraining


@dataclass(frozen=True)
class Kind:
    """A section of the file.

    Args:
        variants: Name of the variant -> its class; one variant named "" where the section has no kinds.
        tag: The key that names the variant.
        noun: The thing that the tag names, for messages.
        required: Whether a file must have the section.
        default: The variant where the tag is absent, or None where it must be given.
    """

    variants: Mapping[str, type[Section]]
    tag: str = ""
    noun: str = ""
    required: bool = True
    default: str | None = None

    def variant(self, table: dict[str, Any]) -> str | None:
        """The name of a table's variant, None if it is unknown."""
        name = table.get(self.tag, self.default) if self.tag else ""
        return name if isinstance(name, str) and name in self.variants else None

    def keys(self, variant: str | None = None) -> list[str]:
        """The keys of one variant, or of all together, with the tag first."""
        classes = self.variants.values() if variant is None else [self.variants[variant]]
        known = dict.fromkeys([self.tag] if self.tag else [])
        for cls in classes:
            known |= dict.fromkeys(cls.model_fields)
        return list(known)

    def tag_first(self, table: dict[str, Any]) -> dict[str, Any]:
        """Returns a table with the tag of the section first, then its settings."""
        return {self.tag: table[self.tag], **table} if self.tag else table

    def owners(self, key: str) -> list[str]:
        """The variants that have a key."""
        return [name for name, cls in self.variants.items() if key in cls.model_fields]


KINDS: dict[str, Kind] = {
    "data": Kind(
        {
            "digits": Digits,
            "synthetic": Synthetic,
            "purchase-like": PurchaseLike,
            "npz": Npz,
            "table": TableFile,
            "text": TextFile,
            "flwr-datasets": FlwrDatasets,
            "on-nodes": OnNodes,
        },
        "name",
        "data set",
    ),
    "model": Kind(
        {
            "logistic": Logistic,
            "mlp": Mlp,
            "cnn": Cnn,
            "gru": Gru,
            "transformer": Transformer,
            "code": Code,
        },
        "name",
        "model",
    ),
    "training": Kind(
        {"shuffled": ShuffledTraining, "poisson": PoissonTraining, "with-replacement": ReplacementTraining},
        "batches",
        "way to draw batches",
        required=False,
        default="shuffled",
    ),
    "server": Kind(
        {"sgd": s.SgdServer, "momentum": s.MomentumServer, "adam": s.AdamServer},
        "optimizer",
        "optimizer",
        default="sgd",
    ),
    "sampling": Kind(
        {
            "poisson": s.PoissonSampling,
            "fixed": s.FixedSampling,
            "all": s.AllSampling,
            "separated": s.SeparatedSampling,
            "cyclic-poisson": s.CyclicPoissonSampling,
        },
        "name",
        "sampler",
    ),
    "privacy": Kind(
        {
            "none": NoPrivacy,
            "central": CentralPrivacy,
            "distributed": DistributedPrivacy,
            "local": LocalPrivacy,
        },
        "trust",
        "trust model",
    ),
    "federation": Kind({"": s.Federation}, required=False),
    "evaluation": Kind({"": s.Evaluation}, required=False),
    "compare": Kind({"": s.Compare}, required=False),
}
HEAD = Kind({"": s.Head})

# The sections that a trust model may have otherwise than the scenario.
OVERLAID = ("data", "training", "server", "sampling", "privacy")
_COMPARED = ("trust", "epsilon", "noise_multiplier", "delta", "unit", "adjacency")
_SCALING = ("scaling", "low", "high", "cut")


def shared(section: str, key: str) -> bool:
    """Whether a comparison sets a key itself, or keeps it the same in all its cells."""
    if section == "data":  # the same records of the same clients, which each may scale as suits it
        return key not in _SCALING
    return section == "privacy" and key in _COMPARED
