"""The part of a model that clients do not train together, as plans, ledgers and records state it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FrozenPart:
    """Parameters and buffers that are the same in every round, and at every seed of a scenario.

    They are part of the model, and in no message: server and nodes make them from the scenario, and compare
    the digest. No update has coordinates for them, so they are neither clipped nor noised nor charged. The
    part of a model from code or from a file may be empty; it is stated all the same, since such weights may
    have been trained before.

    Args:
        digest: Of their names, types, shapes and values; with features of the layers that make them, too.
        frozen: The number of frozen parameters.
        trained: The number of trained parameters, which is the length of an update.
        file: The digest of the file with weights that the model starts with; None without one.
        buffers: The number of values in buffers, such as the frozen factors of adapters.
        features: What a model by name reads in place of records, with version and parameters; None: records.
        personal: How many of the frozen ones each client trains for itself, from these values, and keeps.
    """

    digest: str
    frozen: int
    trained: int
    file: str | None = None
    buffers: int = 0
    features: str | None = None
    personal: int = 0

    @property
    def is_by_formula(self) -> bool:
        """Whether all of it follows from a formula, so that no record can have made it."""
        return self.features is not None and not self.frozen and self.file is None

    @property
    def identity(self) -> str:
        """What distinguishes it from other frozen parts, in words."""
        return f"digest {self.digest}" + (f", {self.features}" if self.features else "")

    def to_json(self) -> dict[str, Any]:
        """The part as a JSON object; parts that are no features stay as they were."""
        data = dataclasses.asdict(self)
        if self.features is None:
            data.pop("features")
        if not self.personal:
            data.pop("personal")
        return data

    @property
    def is_empty(self) -> bool:
        """Whether no tensor of the model is frozen."""
        return not (self.frozen or self.buffers)

    @property
    def words(self) -> str | None:
        """The shares of the two parts, and the file, in words; None where there is neither."""
        texts = []
        if not self.is_empty:
            buffers = f", beside {self.buffers:,} values of buffers" if self.buffers else ""
            together = " together" if self.personal else ""
            texts.append(
                f"{self.trained:,} of {self.trained + self.frozen:,} parameters are trained{together}"
                f"{buffers}. The rest of the model (digest {self.digest}) is in no update: it is neither "
                "clipped nor noised."
            )
        if self.personal:
            texts.append(
                f"{self.personal:,} parameters are personal: each client trains its own from the same start "
                "and sends them to nobody."
            )
        if self.features is not None:
            texts.append(f"The model reads features of each record ({self.features}).")
        if self.file is not None:
            texts.append(f"The model starts with weights of a file (digest {self.file}).")
        return " ".join(texts) or None
