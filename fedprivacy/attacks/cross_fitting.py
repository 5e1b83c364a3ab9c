"""Scores learned from known memberships: no target is scored by a model that was fitted to its fold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedprivacy.attacks.targets import Flags, Numbers, Scores, measured_by_direction

# Of the known targets (flags) and the number of the direction: a score of all targets, shape (targets,).
Fit = Callable[[Flags, int], Scores]


def cross_fitted(fit: Fit, members: Flags, folds: Numbers, *, by_direction: bool = True) -> Scores:
    """The scores of all targets in every direction, shape (directions, targets).

        for each direction, which measures some folds and knows the others:
            its measured targets are scored by a model of all known folds;
            those of a known fold by a model of the other known folds.

    A measured target has thus helped with nothing that scores it. A known target may have, if features were
    themselves fitted by folds (stacking): the other known folds, to which its model is fitted, have features
    by models that saw its fold. What is fitted to scores of known targets may then be slightly too confident,
    which flatters no measured figure.

    Where these have no members, or no non-members, nothing can be learned, and the score is 0.

    Args:
        fit: Reads memberships of known targets alone.
        members: Whether a target is a member, shape (targets,).
        folds: The fold of each target, shape (targets,).
        by_direction: Whether `fit` depends on the direction. Else it is called once for each set of known
            targets: what is fitted without two folds serves both of them.
    """
    rows = []
    fitted: dict[bytes, Scores] = {}

    def scores_by(known: Flags, direction: int) -> Scores:
        if by_direction:
            return fit(known, direction)
        if (key := known.tobytes()) not in fitted:
            fitted[key] = fit(known, direction)
        return fitted[key]

    for direction, measured in enumerate(measured_by_direction(folds)):
        row = np.empty(len(folds))
        for held_out in (measured, *(folds == fold for fold in np.unique(folds[~measured]))):
            known = ~measured & ~held_out
            learns = (known & members).any() and (known & ~members).any()
            row[held_out] = scores_by(known, direction)[held_out] if learns else 0.0
        rows.append(row)
    return np.stack(rows)
