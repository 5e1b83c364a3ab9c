"""Metrics of labels: against scikit-learn, and where one is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, hamming_loss, roc_auc_score

from fedprivacy.data.tasks import MULTI_LABEL
from fedprivacy.models.metrics.registry import METRICS, measure
from fedprivacy.models.prediction import Predictions

ALL = [metric for metric in METRICS if MULTI_LABEL in metric.tasks]


def test_metrics_are_those_of_scikit_learn() -> None:
    stream = np.random.default_rng(2)
    table = stream.random((400, 3)).round(1)
    y = (stream.random((400, 3)) < table).astype(np.float32)
    found = measure(ALL, [(Predictions(table > 0.5, table), y)])
    assert found["label_accuracy"] == pytest.approx(1 - hamming_loss(y, table > 0.5))
    assert found["label_f1"] == pytest.approx(f1_score(y, table > 0.5, average="macro"))
    assert found["label_auroc"] == pytest.approx(roc_auc_score(y, table, average="macro"))
    assert found["label_brier"] == pytest.approx(((table - y) ** 2).mean())


def test_a_label_that_no_record_has() -> None:
    y, table = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.8, 0.1], [0.3, 0.2]])
    found = measure(ALL, [(Predictions(table > 0.5, table), y)])
    assert (found["label_accuracy"], found["label_f1"], found["label_auroc"]) == (1.0, 1.0, 1.0)
    named = np.array([[True, True], [False, False]])  # a label that no record has is predicted: its F1 is 0
    assert measure(ALL, [(Predictions(named, table), y)])["label_f1"] == 0.5
    nothing = np.zeros((2, 2), bool)
    assert measure(ALL, [(Predictions(nothing, table), 0 * y)])["label_f1"] is None
    none = measure(ALL, [(Predictions(table > 0.5, np.full((2, 2), np.nan)), y)])
    assert (none["label_accuracy"], none["label_auroc"], none["label_brier"]) == (1.0, None, None)
