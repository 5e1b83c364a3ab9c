"""Combined scores: selected or learned from known memberships, on the calibration half alone.

What is fitted on the calibration half flatters itself there. `supervised` therefore scores each calibration
target by a model that did not see it, so that thresholds fitted on those scores hold for the others too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fedprivacy.attacks.intervals import CONFIDENCE, Figure
from fedprivacy.attacks.roc import auc
from fedprivacy.attacks.targets import Flags, Scores, Targets, check_halves, check_scores
from fedprivacy.errors import InputError

FOLDS = 5


def choose_score(candidates: Mapping[str, Scores], members: Flags, calibration: Flags) -> str:
    """The name of the first score whose AUC on the calibration half is as good as the best.

    As good means within one standard error of the best (the rule of Breiman et al. 1984, section 3.4.3):
    among many scores one looks best by chance, so scores that are known to work come first.

    Args:
        candidates: Scores by name, those known to work first; each of shape (targets,), larger means rather
            a member.
        members: Whether a target is a member, shape (targets,).
        calibration: Whether it is in the calibration half, shape (targets,).

    Raises:
        InputError: no candidates, or one is not a finite score for each target.
    """
    if not candidates:
        raise InputError("scores: there is none to choose from.")

    def area(name: str) -> Figure:
        check_scores(candidates[name], name)
        targets = Targets(candidates[name], members, calibration)
        known = (targets.of(member=member, calibration=True) for member in (True, False))
        return auc(*known)

    areas = {name: area(name) for name in candidates}
    best = max(areas.values(), key=lambda figure: figure.value)
    # Half a 95 % interval is 1.96 standard errors; below the best, since near 1 the interval is lopsided.
    enough = best.value - (best.value - best.low) / float(scipy.stats.norm.isf((1 - CONFIDENCE) / 2))
    return next(name for name, figure in areas.items() if figure.value >= enough)


def supervised(features: Mapping[str, Scores], members: Flags, calibration: Flags) -> Scores:
    """Log-odds of membership by logistic regression on the standardised features, shape (targets,).

    The evaluation half is scored by the model of the whole calibration half; that half itself by
    cross-fitting, each fifth by the model of the others.

    Args:
        features: By name, each of shape (targets,).
        members: Whether a target is a member, shape (targets,); read on the calibration half only.
        calibration: Whether it is in the calibration half, shape (targets,).

    Raises:
        InputError: no features, a value is NaN or infinite, or the calibration half has fewer than two
        members
            or non-members.
    """
    table = _table(features)
    check_halves(members, calibration, len(table))
    known, truth = table[calibration], members[calibration]
    folds = min(FOLDS, int(truth.sum()), int((~truth).sum()))
    if folds < 2:
        raise InputError(
            "members: the calibration half needs two members and two non-members to learn from: "
            "take more targets."
        )
    scores = np.empty(len(table))
    scores[calibration] = cross_val_predict(
        _model(), known, truth, cv=StratifiedKFold(folds), method="decision_function"
    )
    scores[~calibration] = _model().fit(known, truth).decision_function(table[~calibration])
    return scores


def clustered(features: Mapping[str, Scores], named: str) -> Scores:
    """The score that grows as a target nears the members' cluster, shape (targets,).

    No membership is read. Two clusters of the standardised features (k-means, the same for the same
    features); the one with the larger mean of the feature `named` is called members. All targets are
    clustered together, as the attacker has them, which treats both halves alike.

    Args:
        features: By name, each of shape (targets,).
        named: The feature whose larger mean means members.

    Raises:
        InputError: no such feature, or a value is NaN or infinite.
    """
    table = _table(features)
    if named not in features:
        raise InputError(f"feature = {named!r}: must be one of {', '.join(features)}.")
    scaled = StandardScaler().fit_transform(table)
    if len(np.unique(scaled, axis=0)) < 2:
        return np.zeros(len(table))  # all targets have the same features
    distances: NDArray[Any] = KMeans(n_clusters=2, n_init=10, random_state=0).fit(scaled).transform(scaled)
    first = distances[:, 0] < distances[:, 1]
    values = table[:, list(features).index(named)]
    nearer_first = distances[:, 1] - distances[:, 0]
    return nearer_first if values[first].mean() >= values[~first].mean() else -nearer_first


def _model() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _table(features: Mapping[str, Scores]) -> NDArray[np.float64]:
    if not features:
        raise InputError("features: there is none to learn from.")
    columns = [check_scores(values, name) for name, values in features.items()]
    if len({len(column) for column in columns}) > 1:
        raise InputError("features: each must have one number for each target.")
    return np.column_stack(columns)
