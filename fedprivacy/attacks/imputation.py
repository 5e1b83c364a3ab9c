"""Imputation: an unknown answer from the others, and how much it counts beside other evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from fedprivacy.attacks.trials import Victim

Ids = NDArray[np.int64]
TINY = 1e-12


@dataclass(frozen=True)
class UnknownColumn:
    """The features of one column, and the records that have each of its values.

    Args:
        victim: Whose records they are.
        places: The features of the column, shape (places,).
        codes: The value of each record of the data, shape (records,).
        donors: A record with each value, shape (values,).
    """

    victim: Victim
    places: Ids
    codes: Ids
    donors: Ids

    @classmethod
    def of(cls, victim: Victim, column: str) -> UnknownColumn:
        """The column of a name."""
        codes, labels = victim.groups(column)
        places = [
            place for place, name in enumerate(victim.feature_names) if name.partition("=")[0] == column
        ]
        donors = np.array([np.flatnonzero(codes == value)[0] for value in range(len(labels))])
        return cls(victim, np.array(places), codes, donors)

    def candidates(self, numbers: Ids) -> NDArray[np.float32]:
        """Each record with each value in turn, shape (records, values, features)."""
        x, _ = self.victim.records(numbers)
        donated = self.victim.records(self.donors)[0][:, self.places]
        repeated = np.repeat(x[:, None], len(self.donors), axis=1)
        repeated[..., self.places] = donated
        return repeated

    def others(self, numbers: Ids) -> NDArray[np.float64]:
        """All that is known of records: their other features, and their labels one-hot."""
        x, y = self.victim.records(numbers)
        known = np.delete(x.astype(np.float64), self.places, axis=1)
        return np.concatenate([known, np.eye(self.victim.classes)[y]], axis=1)


@dataclass(frozen=True)
class Imputer:
    """Predicts the unknown answer from the others, by multinomial logistic regression.

    Args:
        column: The unknown column.
        model: The fitted regression.
    """

    column: UnknownColumn
    model: Any

    @classmethod
    def of(cls, column: UnknownColumn, numbers: Ids) -> Imputer:
        """Fits the regression to records that no client owns."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        answered = numbers[column.codes[numbers] >= 0]
        return cls(column, model.fit(column.others(answered), column.codes[answered]))

    def log_probabilities(self, numbers: Ids) -> NDArray[np.float64]:
        """Of each value of each record, shape (records, values); values that it never saw have the least."""
        logs = np.full((len(numbers), len(self.column.donors)), np.log(TINY))
        predicted = self.model.predict_proba(self.column.others(numbers))
        logs[:, self.model.classes_] = np.log(predicted + TINY)
        return logs


def fitted(evidence: NDArray[np.float64], truth: Ids) -> NDArray[np.float64]:
    """The weights of the kinds of evidence, by conditional logistic regression (McFadden 1974).

    Args:
        evidence: Of each candidate of each example, shape (examples, candidates, kinds).
        truth: The right candidates, shape (examples,).

    Returns:
        Shape (kinds,).
    """

    def loss(weights: NDArray[np.float64]) -> float:
        scores = evidence @ weights
        chosen = scores[np.arange(len(truth)), truth]
        return float((scipy.special.logsumexp(scores, axis=1) - chosen).mean() + 1e-4 * weights @ weights)

    start = np.zeros(evidence.shape[2])
    return np.asarray(scipy.optimize.minimize(loss, start, method="BFGS").x)
