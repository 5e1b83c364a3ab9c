"""Combined scores: selected or learned from known memberships, anew for the targets of each direction.

What is fitted on known targets flatters itself there. `cross_fitted` therefore scores each known target by a
model that was not fitted to its fold, so that thresholds fitted on those scores hold for the measured targets
too; of features that were fitted themselves nearly so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from fedprivacy.attacks.cross_fitting import cross_fitted
from fedprivacy.attacks.intervals import CONFIDENCE, Figure
from fedprivacy.attacks.metrics import known_areas
from fedprivacy.attacks.targets import FOLDS, Flags, Numbers, Scores, Targets, check_folds, check_scores
from fedprivacy.errors import InputError


@dataclass(frozen=True, eq=False)
class Chosen:
    """The choice of a score.

    Args:
        names: The chosen score of each fold.
        single: That of the single direction.
        scores: By what each direction chose, shape (directions, targets).
    """

    names: tuple[str, ...]
    single: str
    scores: Scores


def choose_score(candidates: Mapping[str, Scores], members: Flags, folds: Numbers) -> Chosen:
    """For each direction the first score whose AUC on the known targets is as good as the best.

    As good means within one standard error of the best (the rule of Breiman et al. 1984, section 3.4.3):
    among many scores one looks best by chance, so scores that are known to work come first.

    Args:
        candidates: Scores by name, those known to work first, as `Targets` takes them; larger means rather a
            member.
        members: Whether a target is a member, shape (targets,).
        folds: The fold of each target, shape (targets,).

    Raises:
        InputError: no candidates, or one is not a finite score for each target.
    """
    if not candidates:
        raise InputError("scores: there is none to choose from.")
    areas = {}
    for name, scores in candidates.items():
        check_scores(scores, name)
        areas[name] = known_areas(Targets(scores, members, folds))
    names, rows = [], []
    for direction in range(FOLDS + 1):
        name = _first_as_good({name: figures[direction] for name, figures in areas.items()})
        scores = candidates[name]
        names.append(name)
        rows.append(scores if scores.ndim == 1 else scores[direction])
    return Chosen(tuple(names[:FOLDS]), names[FOLDS], np.stack(rows))


def _first_as_good(areas: Mapping[str, Figure]) -> str:
    """The name of the first area within one standard error of the best."""
    best = max(areas.values(), key=lambda figure: figure.value)
    # Half a 95 % interval is 1.96 standard errors; below the best, since near 1 the interval is lopsided.
    enough = best.value - (best.value - best.low) / float(scipy.stats.norm.isf((1 - CONFIDENCE) / 2))
    return next(name for name, figure in areas.items() if figure.value >= enough)


def supervised(features: Mapping[str, Scores], members: Flags, folds: Numbers) -> Scores:
    """Scores by logistic regression on standardised features, shape (directions, targets).

    A score is the place on the direction that the regression finds, in the order of its log-odds. Log-odds by
    fewer records are further apart by overfitting alone, and thresholds fitted on them would be too high.

    Args:
        features: By name, as `Targets` takes them.
        members: Whether a target is a member, shape (targets,).
        folds: The fold of each target, shape (targets,).

    Raises:
        InputError: no features, or a value is NaN or infinite, or a direction lacks members or non-members.
    """
    tables = [_table(features, direction) for direction in range(FOLDS + 1)]
    by_direction = any(np.ndim(values) > 1 for values in features.values())
    check_folds(members, folds, len(tables[0]))

    def fit(known: Flags, direction: int) -> Scores:
        table = _standardised(tables[direction], known)
        slope = LogisticRegression(max_iter=1000).fit(table[known], members[known]).coef_[0]
        scores: Scores = table @ slope / max(float(np.linalg.norm(slope)), np.finfo(np.float64).tiny)
        return scores

    return cross_fitted(fit, members, folds, by_direction=by_direction)


def clustered(features: Mapping[str, Scores], named: str) -> Scores:
    """The score that grows as a target nears the members' cluster, shape (targets,).

    No membership is read. Two clusters of the standardised features (k-means, the same for the same
    features); the one with the larger mean of the feature `named` is called members. All targets are
    clustered together, as the attacker has them, which treats all folds alike.

    Args:
        features: By name, each of shape (targets,), and fixed before any membership was known.
        named: The feature whose larger mean means members.

    Raises:
        InputError: no such feature, or a value is NaN or infinite.
    """
    table = _table(features, 0)
    if named not in features:
        raise InputError(f"feature = {named!r}: must be one of {', '.join(features)}.")
    scaled = _standardised(table, np.ones(len(table), dtype=np.bool_))
    if len(np.unique(scaled, axis=0)) < 2:
        return np.zeros(len(table))  # all targets have the same features
    distances: NDArray[Any] = KMeans(n_clusters=2, n_init=10, random_state=0).fit(scaled).transform(scaled)
    first = distances[:, 0] < distances[:, 1]
    values = table[:, list(features).index(named)]
    nearer_first = distances[:, 1] - distances[:, 0]
    return nearer_first if values[first].mean() >= values[~first].mean() else -nearer_first


def _table(features: Mapping[str, Scores], direction: int) -> NDArray[np.float64]:
    if not features:
        raise InputError("features: there is none to learn from.")
    columns = [check_scores(values, name) for name, values in features.items()]
    if len({column.shape[-1] for column in columns}) > 1:
        raise InputError("features: each must have one number for each target.")
    return np.column_stack([column if column.ndim == 1 else column[direction] for column in columns])


def _standardised(table: NDArray[np.float64], known: Flags) -> NDArray[np.float64]:
    """The columns less the means of known rows, over their deviations; a constant column is only centred.

    To the last bit what scikit-learn's `StandardScaler` gives, which for so few rows takes 20 times as long.
    """
    rows, count = table[known], int(known.sum())
    mean = rows.sum(axis=0) / count
    centred = rows - mean
    variance = ((centred**2).sum(axis=0) - centred.sum(axis=0) ** 2 / count) / count
    # The bound on the rounding error of a variance in two passes (Chan, Golub and LeVeque 1983).
    error = np.finfo(np.float64).eps
    constant = variance <= count * error * variance + (count * mean * error) ** 2
    return (table - mean) / np.where(constant, 1.0, np.sqrt(variance))
