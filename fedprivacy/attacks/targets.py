"""The targets of a membership game, with the score that an attack gave each; and their folds.

*Cross-fitting*: each fold is measured by scores, thresholds, models and choices that were fitted on the other
folds, so that every target is measured, and none helps to judge itself. What is measured in one fold helps to
fit for the others, so that counts of folds are not independent. A claim that needs independent counts, such
as a refuted bound, therefore has a *single direction*: it fits on some folds and counts on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from fedprivacy.errors import InputError


def _array_of(dtype: type[np.generic], *kinds: type) -> PlainValidator:
    """Reads an array from the JSON list, or list of rows, that it was stored as."""

    def read(values: Any) -> NDArray[Any]:
        if isinstance(values, np.ndarray):
            return values
        rows = values if isinstance(values, list) and values and isinstance(values[0], list) else [values]
        if not all(isinstance(row, list) and all(type(value) in kinds for value in row) for row in rows):
            raise ValueError(f"must be a list of {dtype.__name__}")
        if len({len(row) for row in rows}) > 1:
            raise ValueError("must have rows of the same length")
        try:
            return np.array(values, dtype)
        except OverflowError as error:
            raise ValueError(str(error)) from error

    return PlainValidator(read)


_AS_LIST = PlainSerializer(lambda values: values.tolist(), return_type=list)

# Their numbers keep every bit in JSON, NaN and infinities too: attacks are stored and resumed.
Scores = Annotated[NDArray[np.float64], _array_of(np.float64, float, int), _AS_LIST]
Numbers = Annotated[NDArray[np.int64], _array_of(np.int64, int), _AS_LIST]
Flags = Annotated[NDArray[np.bool_], _array_of(np.bool_, bool), _AS_LIST]

FOLDS = 5
KNOWN_FOLDS = 2  # those on which the single direction fits; it counts on the others


def draw_folds(count: int, stream: np.random.Generator) -> Numbers:
    """The fold of each of `count` targets, from 0, shape (count,); folds differ by one target at most.

    Drawn blind to membership. If each fold had the same number of members, known folds would reveal that
    of the others, whose coins would no longer be fair; the empirical epsilon requires fair coins. So do known
    targets that were added to reach a number of members: it fits and counts on fair targets alone.
    """
    return stream.permutation(count) % FOLDS


def measured_count(count: int) -> int:
    """How many of `count` targets the single direction measures.

    >>> measured_count(50), measured_count(8)
    (30, 4)
    """
    return sum(len(range(fold, count, FOLDS)) for fold in range(KNOWN_FOLDS, FOLDS))


def measured_by_direction(folds: Numbers) -> list[Flags]:
    """The targets that each direction measures: each fold, and last those of the single direction.

    Args:
        folds: The fold of each target, shape (targets,).
    """
    return [*(folds == fold for fold in range(FOLDS)), folds >= KNOWN_FOLDS]


@dataclass(frozen=True, eq=False)
class Direction:
    """The scores of measured targets, and of the known ones on which the score and thresholds were fitted.

    Args:
        members: The measured members, shape (members,).
        nonmembers: The measured non-members, shape (nonmembers,).
        known_members: The known members, by the same score; if it was learned, by models that were not
            fitted to their fold, shape (known members,); see `cross_fitted` for models of fitted features.
        known_nonmembers: Likewise the known non-members, shape (known non-members,).
    """

    members: Scores
    nonmembers: Scores
    known_members: Scores
    known_nonmembers: Scores


@dataclass(frozen=True)
class Targets:
    """The outcome of one attack on one run: a score for each target, and the truth.

    Args:
        scores: Larger means rather a member. Shape (targets,) of a score that was fixed before any membership
            was known; shape (directions, targets) of one that was chosen or learned without the targets that
            a direction measures (`measured_by_direction`).
        members: Whether the target is in the victim's data, shape (targets,).
        folds: The fold of each target, shape (targets,); see `draw_folds`.
        classes: The class of each target, shape (targets,), or None.

    Raises:
        InputError: the shapes differ, a score is NaN or infinite, or a direction lacks members or
            non-members.
    """

    scores: Scores
    members: Flags
    folds: Numbers
    classes: Numbers | None = None

    def __post_init__(self) -> None:
        scores = check_scores(self.scores)
        check_folds(self.members, self.folds, scores.shape[-1])
        count = scores.shape[-1]
        if self.classes is not None and np.shape(self.classes) != (count,):
            raise InputError(
                f"classes: shape {np.shape(self.classes)}, must be one for each of {count} targets."
            )
        object.__setattr__(self, "scores", scores)

    @property
    def fitted(self) -> bool:
        """Whether the score was chosen or learned from memberships."""
        return self.scores.ndim == 2

    @property
    def directions(self) -> list[Direction]:
        """Each fold, measured by what was fitted on the others."""
        return [self._direction(number) for number in range(FOLDS)]

    @property
    def single(self) -> Direction:
        """The single direction, whose counts are independent given what was fitted."""
        return self._direction(FOLDS)

    @property
    def held_out(self) -> Scores:
        """The score of each target by what was fitted without its fold, shape (targets,)."""
        return self.scores[self.folds, np.arange(len(self.folds))] if self.fitted else self.scores

    def __getitem__(self, places: Flags) -> Targets:
        """Some of the targets."""
        classes = None if self.classes is None else self.classes[places]
        return Targets(self.scores[..., places], self.members[places], self.folds[places], classes)

    def _direction(self, number: int) -> Direction:
        measured = measured_by_direction(self.folds)[number]
        scores = self.scores[number] if self.fitted else self.scores
        return Direction(
            *(scores[part & kind] for part in (measured, ~measured) for kind in (self.members, ~self.members))
        )


def check_scores(scores: Scores, name: str = "scores") -> Scores:
    """The scores as float64, shape (targets,) or (directions, targets).

    Raises:
        InputError: another shape, or a score is NaN or infinite: no rank can be given to it honestly.
    """
    checked = np.asarray(scores, dtype=np.float64)
    if not checked.size or checked.shape[:-1] not in ((), (FOLDS + 1,)):
        raise InputError(f"{name}: shape {checked.shape}, must be one number for each target.")
    if bad := int((~np.isfinite(checked)).sum()):
        raise InputError(
            f"{name}: {bad} of {checked.size} are NaN or infinite: an attack must give each target a finite "
            "score; cut logarithms of 0 off at a finite value."
        )
    return checked


def check_folds(members: Flags, folds: Numbers, count: int) -> None:
    """Refuses folds on which nothing can be fitted or measured.

    Raises:
        InputError: flags that are not bool, folds that are no numbers of folds, another shape than (count,),
            or no members or no non-members to fit on or to measure in the single direction, or to fit on for
            a fold.
    """
    if np.shape(members) != (count,) or np.asarray(members).dtype != bool:
        raise InputError(f"members: must be true or false for each of {count} targets.")
    if np.shape(folds) != (count,) or not np.isin(folds, range(FOLDS)).all():
        raise InputError(f"folds: must be a number from 0 to {FOLDS - 1} for each of {count} targets.")
    parts = [~measured for measured in measured_by_direction(folds)]
    for part in (*parts, ~parts[-1]):
        for kind, who in (("members", members), ("non-members", ~members)):
            if not (part & who).any():
                raise InputError(
                    f"members: there are no {kind} among targets to fit on or to measure: a membership game "
                    "needs both in several folds; take more targets."
                )
