"""The targets of a membership game, with the score that an attack gave each; and their two halves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from fedprivacy.errors import InputError


def _array_of(dtype: type[np.generic], *kinds: type) -> PlainValidator:
    """Reads an array of one dimension from the JSON list that it was stored as."""

    def read(values: Any) -> NDArray[Any]:
        if isinstance(values, np.ndarray):
            return values
        if not isinstance(values, list) or any(type(value) not in kinds for value in values):
            raise ValueError(f"must be a list of {dtype.__name__}")
        try:
            return np.array(values, dtype)
        except OverflowError as error:
            raise ValueError(str(error)) from error

    return PlainValidator(read)


_AS_LIST = PlainSerializer(lambda values: values.tolist(), return_type=list)

# Their numbers keep every bit in JSON, NaN and infinities too: attacks are stored and resumed.
Scores = Annotated[NDArray[np.float64], _array_of(np.float64, float, int), _AS_LIST]
Numbers = Annotated[NDArray[np.int64], _array_of(np.int64, int), _AS_LIST]
Flags = NDArray[np.bool_]


def draw_calibration(count: int, stream: np.random.Generator) -> Flags:
    """A random half of `count` targets, as flags, shape (count,): the calibration half.

    Drawn blind to membership. If each half had the same number of members, the known half would reveal that
    of the other, whose coins would no longer be fair; the empirical epsilon requires fair coins.
    """
    flags = np.zeros(count, dtype=bool)
    flags[stream.permutation(count)[: count // 2]] = True
    return flags


@dataclass(frozen=True)
class Targets:
    """The outcome of one attack on one run: a score for each target, and the truth.

    Thresholds, attack models and choices are fitted on the calibration half and measured on the other one,
    the evaluation half.

    Args:
        scores: Larger means rather a member, shape (targets,).
        members: Whether the target is in the victim's data, shape (targets,).
        calibration: Whether the target is in the calibration half, shape (targets,); see `draw_calibration`.
        classes: The class of each target, shape (targets,), or None.

    Raises:
        InputError: the shapes differ, a score is NaN or infinite, or a half lacks members or non-members.
    """

    scores: Scores
    members: Flags
    calibration: Flags
    classes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        scores = check_scores(self.scores)
        check_halves(self.members, self.calibration, len(scores))
        if self.classes is not None and np.shape(self.classes) != scores.shape:
            raise InputError(
                f"classes: shape {np.shape(self.classes)}, must be one for each of {len(scores)} targets."
            )
        object.__setattr__(self, "scores", scores)

    def of(self, *, member: bool, calibration: bool) -> Scores:
        """The scores of the members or the non-members in one half."""
        return self.scores[(self.members == member) & (self.calibration == calibration)]


def check_scores(scores: Scores, name: str = "scores") -> Scores:
    """The scores as float64, shape (targets,).

    Raises:
        InputError: another shape, or a score is NaN or infinite: no rank can be given to it honestly.
    """
    checked = np.asarray(scores, dtype=np.float64)
    if checked.ndim != 1 or not len(checked):
        raise InputError(f"{name}: shape {checked.shape}, must be one number for each target.")
    if bad := int((~np.isfinite(checked)).sum()):
        raise InputError(
            f"{name}: {bad} of {len(checked)} are NaN or infinite: an attack must give each target a finite "
            "score; cut logarithms of 0 off at a finite value."
        )
    return checked


def check_halves(members: Flags, calibration: Flags, count: int) -> None:
    """Refuses halves on which nothing can be fitted or measured.

    Raises:
        InputError: flags that are not bool or not of shape (count,), or a half without members or
            without non-members.
    """
    for name, flags in (("members", members), ("calibration", calibration)):
        if np.shape(flags) != (count,) or np.asarray(flags).dtype != bool:
            raise InputError(f"{name}: must be true or false for each of {count} targets.")
    for half, flags in (("calibration", calibration), ("evaluation", ~calibration)):
        for kind, who in (("members", members), ("non-members", ~members)):
            if not (flags & who).any():
                raise InputError(
                    f"members: the {half} half holds no {kind}: a membership game needs members and "
                    "non-members in both halves; take more targets."
                )
