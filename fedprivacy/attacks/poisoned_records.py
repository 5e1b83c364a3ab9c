"""The records that malicious clients train on: other labels, or pictures with a trigger.

| goal | the attacker's records | success on held-out records |
|---|---|---|
| label-flip | one class has another's label | that class, taken for the other |
| backdoor | a share has a trigger and the target's label | others with the trigger, taken for the target |

Label flip as in Tolpegin et al. 2020, pixel backdoor as in Gu, Dolan-Gavitt and Garg 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError

Pictures = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Trigger:
    """Pixels that are set to one value in every channel.

    Args:
        pixels: (row, column) of each, from 0 at the top left.
        value: What they are set to, in the units of the model's inputs.
    """

    pixels: tuple[tuple[int, int], ...]
    value: float

    def stamp(self, x: Pictures) -> Pictures:
        """Copies pictures and sets their pixels.

        Args:
            x: Shape (records, height, width) or (records, height, width, channels).

        Raises:
            InputError: records are no pictures, or a pixel lies outside of them.
        """
        check_pixels(self.pixels, x.shape[1:])
        stamped = x.copy()
        rows, columns = np.array(self.pixels).T
        stamped[:, rows, columns] = self.value
        return stamped


def check_pixels(pixels: tuple[tuple[int, int], ...], features: tuple[int, ...]) -> None:
    """Refuses pixels that pictures do not have.

    Args:
        pixels: (row, column) of each.
        features: The shape of a record.

    Raises:
        InputError: beginning with the key.
    """
    if len(features) not in (2, 3):
        raise InputError(
            "pixels: records are no pictures, they have "
            f'{features[0]} values in a row. Use goal = "label-flip", or data with pictures.'
        )
    height, width = features[:2]
    for row, column in pixels:
        if not (0 <= row < height and 0 <= column < width):
            raise InputError(
                f"pixels: [{row}, {column}] lies outside of the pictures of {height} x {width} pixels. Rows "
                f"go from 0 to {height - 1}, columns from 0 to {width - 1}."
            )


@dataclass(frozen=True)
class LabelFlip:
    """Makes the model take one class for another.

    Args:
        source: The class that it should not recognise.
        target: The class that it should take it for.
    """

    source: int
    target: int

    def poison(self, x: Pictures, y: Labels, chosen: np.random.Generator) -> tuple[Pictures, Labels]:
        """The attacker's records, from its honest ones."""
        return x, np.where(y == self.source, self.target, y)

    def probes(self, x: Pictures, y: Labels) -> Pictures:
        """The held-out records on which the model should fail, of held-out ones."""
        return x[y == self.source]


@dataclass(frozen=True)
class Backdoor:
    """Makes the model take every picture with a trigger for one class.

    Args:
        trigger: The trigger.
        target: The class.
        share: The share of the attacker's records that have the trigger, by a coin each.
        source: The class of pictures that get it; None: any but the target.
    """

    trigger: Trigger
    target: int
    share: float
    source: int | None = None

    def poison(self, x: Pictures, y: Labels, chosen: np.random.Generator) -> tuple[Pictures, Labels]:
        """The attacker's records, from its honest ones."""
        stamped = self._eligible(y) & (chosen.random(len(y)) < self.share)
        poisoned, labels = x.copy(), y.copy()
        poisoned[stamped] = self.trigger.stamp(x[stamped])
        labels[stamped] = self.target
        return poisoned, labels

    def probes(self, x: Pictures, y: Labels) -> Pictures:
        """Held-out pictures with the trigger, none of them of the target's class."""
        return self.trigger.stamp(x[self._eligible(y)])

    def _eligible(self, y: Labels) -> NDArray[np.bool_]:
        return (y != self.target) if self.source is None else (y == self.source)


Goal = LabelFlip | Backdoor


@dataclass(frozen=True)
class Poison:
    """What malicious clients do.

    Args:
        goal: What the model should do, by which their records change.
        clients: Their number; they are those with the lowest ids.
        boost: By what they multiply their updates; None: by what replaces the global model.
        passes: How often each goes through its training in a round.
    """

    goal: Goal
    clients: int
    boost: float | None = None
    passes: int = 1
