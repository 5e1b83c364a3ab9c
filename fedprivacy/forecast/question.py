"""The question of a plan: two of clients, epsilon and accuracy are given, and the third is unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedprivacy.errors import InputError

Unknown = Literal["clients", "epsilon", "accuracy"]
TRUSTS = ("central", "distributed", "local")
OPTIONS = {"accuracy": "--target-accuracy", "epsilon": "--epsilon", "clients": "--clients"}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
MOST_REPEATS = 100
POINTS = 8


@dataclass(frozen=True)
class Question:
    """What a plan is to find, under each trust model.

    Args:
        trusts: The trust models.
        target_accuracy: The accuracy that is wanted, a share; None where it is unknown.
        epsilon: The privacy budget; None where it is unknown.
        clients: The number of clients; None where it is unknown.
        repeats: Runs at each number, each with other clients and other noise.
    """

    trusts: tuple[str, ...]
    target_accuracy: float | None = None
    epsilon: float | None = None
    clients: int | None = None
    repeats: int = 3

    def __post_init__(self) -> None:
        given = {
            OPTIONS["accuracy"]: self.target_accuracy,
            OPTIONS["epsilon"]: self.epsilon,
            OPTIONS["clients"]: self.clients,
        }
        missing = [name for name, value in given.items() if value is None]
        if len(missing) != 1:
            problem = f"{_listed(missing)} are unknown" if missing else "nothing is unknown"
            raise InputError(f"fedprivacy plan: {problem}. Give two of {_listed(list(given))}.")
        accuracy, epsilon = self.target_accuracy, self.epsilon
        if accuracy is not None and not 0 < accuracy < 1:
            raise InputError(
                f"--target-accuracy {accuracy:g}: must be a share between 0 and 1. For 80 % write 0.8."
            )
        if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
            raise InputError(f"--epsilon {epsilon:g}: must be a number above 0. Usual are 1 to 8.")
        if self.clients is not None and self.clients < 2:
            raise InputError(f"--clients {self.clients}: must be 2 or more.")
        if not 2 <= self.repeats <= MOST_REPEATS:
            raise InputError(
                f"--repeats {self.repeats}: must be 2 to {MOST_REPEATS}, since the interval comes from them."
            )
        for name in self.trusts:
            if name not in TRUSTS:
                raise InputError(
                    f"--trust {name[:40]}: no trust model with an epsilon. Known are {', '.join(TRUSTS)}."
                )
        if not self.trusts or len(set(self.trusts)) < len(self.trusts):
            raise InputError("--trust: name each trust model once, such as --trust local,central.")

    @property
    def unknown(self) -> Unknown:
        """The quantity that the plan finds."""
        if self.clients is None:
            return "clients"
        return "epsilon" if self.epsilon is None else "accuracy"

    @property
    def axis(self) -> Literal["clients", "epsilon"]:
        """The quantity that the runs vary."""
        return "epsilon" if self.unknown == "epsilon" else "clients"

    def grid(self, available: int) -> list[float]:
        """The numbers to measure at, rising.

        Args:
            available: The clients whose records can train.
        """
        if self.axis == "epsilon":
            return list(EPSILONS)
        return list(map(float, counts(available, self.clients)))

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON."""
        return {**vars(self), "trusts": list(self.trusts), "unknown": self.unknown}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Question:
        """Returns the question of `to_json`.

        Raises:
            InputError: it is none.
        """
        given = {key: value for key, value in fields.items() if key != "unknown"}
        try:
            return cls(**{**given, "trusts": tuple(given["trusts"])})
        except (TypeError, KeyError) as error:
            raise InputError(f"question: damaged ({error}). Start a new plan.") from None


def counts(available: int, wanted: int | None = None) -> list[int]:
    """Numbers of clients, evenly spaced in their logarithm, down to 1/128; the wanted one too.

    >>> counts(1149), counts(4)
    ([9, 18, 36, 71, 143, 286, 573, 1149], [1, 2, 3, 4])
    """
    each = 128 ** (1 / (POINTS - 1)) if available >= 128 else available ** (1 / (POINTS - 1))
    numbers = {max(1, round(available / each**place)) for place in range(POINTS)}
    inside = [] if wanted is None or wanted > available else [wanted]
    return sorted({*numbers, *inside})


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
