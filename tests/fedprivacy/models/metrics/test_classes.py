"""Metrics of a classifier: each against its definition, and where one is not defined."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score
from torch import nn

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.evaluation import evaluate
from fedprivacy.models.metrics.classes import BINS
from fedprivacy.models.metrics.registry import METRICS, measure
from fedprivacy.models.prediction import Predictions, predictions

OF_CLASSES = [metric for metric in METRICS if CLASSIFICATION in metric.tasks]


def measures(y: np.ndarray, outputs: Predictions) -> SimpleNamespace:
    return SimpleNamespace(**measure(OF_CLASSES, [(outputs, y)]))


def stated(probabilities: list[list[float]]) -> Predictions:
    table = np.array(probabilities, dtype=np.float64)
    return Predictions(table.argmax(axis=1), table)


def drawn(classes: int, records: int = 400, seed: int = 0) -> tuple[np.ndarray, Predictions]:
    """Labels, and probabilities that are somewhat right, many of them tied."""
    stream = np.random.default_rng(seed)
    y = stream.integers(0, classes, records)
    table = stream.random((records, classes)).round(1) + 0.1
    table[np.arange(records), y] += 0.5
    table /= table.sum(axis=1, keepdims=True)
    return y, Predictions(table.argmax(axis=1), table)


def pairs_ranked_right(scores: np.ndarray, inside: np.ndarray) -> float:
    """The AUROC by its definition: the share of pairs that are ranked right, ties as half."""
    first, second = scores[inside][:, None], scores[~inside][None, :]
    return float(((first > second) + 0.5 * (first == second)).mean())


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_each_measure_is_what_its_definition_says(classes: int) -> None:
    y, made = drawn(classes)
    result = measures(y, made)
    recalls, scores, areas = [], [], []
    for label in range(classes):
        right = ((y == label) & (made.named == label)).sum()
        recall, precision = right / (y == label).sum(), right / max(1, (made.named == label).sum())
        recalls.append(recall)
        scores.append(2 * recall * precision / (recall + precision))
        areas.append(pairs_ranked_right(made.probabilities[:, label], y == label))
    assert result.balanced_accuracy == pytest.approx(np.mean(recalls))
    assert result.f1 == pytest.approx(np.mean(scores))
    assert result.auroc == pytest.approx(np.mean(areas))
    truth = np.eye(classes)[y]
    assert result.brier == pytest.approx(((made.probabilities - truth) ** 2).sum() / 2 / len(y))
    confidence, error = made.probabilities.max(axis=1), 0.0
    for number in range(BINS):
        inside = (confidence >= number / BINS) & (confidence < (number + 1) / BINS)
        if inside.any():
            gap = abs((made.named == y)[inside].mean() - confidence[inside].mean())
            error += inside.mean() * gap
    assert result.calibration_error == pytest.approx(error)


@pytest.mark.parametrize("classes", [2, 5])
def test_measures_are_those_of_scikit_learn(classes: int) -> None:
    y, made = drawn(classes, seed=1)
    result = measures(y, made)
    assert result.accuracy == accuracy_score(y, made.named)
    assert result.balanced_accuracy == pytest.approx(balanced_accuracy_score(y, made.named))
    assert result.f1 == pytest.approx(f1_score(y, made.named, average="macro"))
    areas = [roc_auc_score(y == label, made.probabilities[:, label]) for label in range(classes)]
    assert result.auroc == pytest.approx(np.mean(areas))


def test_accuracy_hides_a_model_that_names_the_large_class_alone() -> None:
    y = np.array([0] * 89 + [1] * 11)
    result = measures(y, stated([[0.89, 0.11]] * 100))
    assert result.balanced_accuracy == 0.5
    assert result.f1 == pytest.approx((2 * 0.89 / 1.89 + 0) / 2)
    assert result.auroc == 0.5  # all tied
    assert result.calibration_error == pytest.approx(0.0)
    assert result.brier == pytest.approx(0.89 * 0.11)


def test_a_class_without_test_records_counts_for_nothing() -> None:
    y = np.array([0, 0, 1, 1])
    made = stated([[0.8, 0.1, 0.1], [0.2, 0.1, 0.7], [0.1, 0.8, 0.1], [0.1, 0.6, 0.3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = measures(y, made)
    assert result.balanced_accuracy == 0.75
    assert result.f1 == pytest.approx((2 * 0.5 / 1.5 + 1) / 2)
    assert result.auroc == pytest.approx(1.0)


def test_of_one_class_there_is_no_area() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = measures(np.array([1, 1, 1]), stated([[0.2, 0.8], [0.6, 0.4], [0.1, 0.9]]))
    assert result.auroc is None
    assert result.balanced_accuracy == pytest.approx(2 / 3)


def test_a_diverged_model_has_the_measures_of_its_names_alone() -> None:
    y = np.array([0, 1])
    made = Predictions(np.array([0, 0]), np.array([[0.6, 0.4], [math.nan, math.nan]]))
    result = measures(y, made)
    assert (result.auroc, result.calibration_error, result.brier) == (None, None, None)
    assert result.balanced_accuracy == 0.5


def test_a_probability_of_one_is_in_the_last_bin() -> None:
    result = measures(np.array([0, 1]), stated([[1.0, 0.0], [0.0, 1.0]]))
    assert (result.calibration_error, result.brier, result.auroc) == (0.0, 0.0, 1.0)


def test_predictions_are_those_that_the_evaluation_counts() -> None:
    torch.manual_seed(0)
    module = nn.Linear(3, 4)
    x = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, 4, 9000)
    weights = flat_weights(module)
    chunks = list(predictions(nn.Linear(3, 4), weights, x))
    assert len(chunks) == 2
    made = Predictions(
        np.concatenate([chunk.named for chunk in chunks]),
        np.concatenate([chunk.probabilities for chunk in chunks]),
    )
    evaluated = evaluate(module, weights, x, y)
    assert (made.named == y).mean() == evaluated.accuracy
    assert evaluated.balanced_accuracy == measures(y, made).balanced_accuracy
    y[y == 3] = 2  # a class without records
    evaluated = evaluate(module, weights, x, y)
    assert evaluated.balanced_accuracy == measures(y, made).balanced_accuracy
    assert made.probabilities.sum(axis=1) == pytest.approx(1.0)
    with torch.no_grad():
        expected = module(torch.from_numpy(x)).double().softmax(dim=1).numpy()
    assert made.probabilities == pytest.approx(expected, abs=1e-6)
