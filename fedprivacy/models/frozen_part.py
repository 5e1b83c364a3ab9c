"""The part of a model that no client trains, as plans, ledgers and records state it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrozenPart:
    """Parameters and buffers that are the same in every round, and at every seed of a scenario.

    They are part of the model, and in no message: server and nodes make them from the scenario, and compare
    the digest. No update has coordinates for them, so they are neither clipped nor noised nor charged.

    Args:
        digest: Of their names, types, shapes and values.
        frozen: The number of frozen parameters.
        trained: The number of trained parameters, which is the length of an update.
        file: The digest of the file with weights that the model starts with; None without one. Then there may
            be no frozen parameters.
    """

    digest: str
    frozen: int
    trained: int
    file: str | None = None

    @property
    def words(self) -> str:
        """The shares of the two parts, in words."""
        read = "" if self.file is None else f" The model starts with weights of a file (digest {self.file})."
        return (
            f"{self.trained:,} of {self.trained + self.frozen:,} parameters are trained. The rest of the "
            f"model (digest {self.digest}) is in no update: it is neither clipped nor noised.{read}"
        )
