"""All metrics: the cut into chunks changes no bit, memory is bounded, and each is registered in full."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, NEXT_TOKEN, REGRESSION, TASKS
from fedprivacy.models.metrics import areas
from fedprivacy.models.metrics.metric import BlockMean, Metric
from fedprivacy.models.metrics.registry import METRICS, PRIMARY, measure, metrics_of
from fedprivacy.models.prediction import Predictions


def drawn(task: str, records: int = 500) -> tuple[Predictions, np.ndarray]:
    stream = np.random.default_rng(3)
    if task == CLASSIFICATION:
        table = stream.dirichlet(np.ones(4), records)
        return Predictions(table.argmax(axis=1), table), stream.integers(0, 4, records)
    if task == REGRESSION:
        targets = 1e6 + stream.normal(size=(records, 2))
        return Predictions(targets + stream.normal(size=(records, 2))), targets.astype(np.float32)
    if task == NEXT_TOKEN:
        table = stream.dirichlet(np.ones(4), (records, 3))
        return Predictions(table.argmax(axis=2), table), stream.integers(0, 4, (records, 3))
    table = stream.random((records, 3))
    return Predictions(table > 0.5, table), (stream.random((records, 3)) < table).astype(np.float32)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("size", [1, 7, 499])
def test_chunks_of_any_size_have_the_same_value(
    metric: type[Metric], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BlockMean, "BLOCK", 64)
    [task] = metric.tasks
    outputs, y = drawn(task)
    if not metric.is_share and task == REGRESSION:  # in the unit of a single target
        outputs, y = Predictions(outputs.named[:, :1]), y[:, :1]
    whole = measure([metric], [(outputs, y)])
    parts = [slice(at, at + size) for at in range(0, len(y), size)]
    table = outputs.probabilities if len(outputs.probabilities) else outputs.named
    chunks = [(Predictions(outputs.named[part], table[part]), y[part]) for part in parts]
    assert measure([metric], chunks) == whole
    assert whole[metric.name] is not None


def test_each_task_has_a_primary_metric_of_which_more_is_better() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert set(PRIMARY) == set(TASKS)
    for task, primary in PRIMARY.items():
        assert task in primary.tasks
        assert primary.higher_is_better
        assert primary.is_share
        assert primary not in metrics_of(task)
    for metric in METRICS:
        assert metric.tasks <= set(TASKS)
        assert metric.title
        assert metric.meaning


def test_a_mean_holds_one_block_and_is_numpys_up_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=5000)
    mean = BlockMean()
    for part in np.array_split(values, 13):
        mean.update(part)
    assert mean.value() == values.mean()
    monkeypatch.setattr(BlockMean, "BLOCK", 100)
    mean = BlockMean()
    for part in np.array_split(values, 13):
        mean.update(part)
        assert sum(map(len, mean._waiting)) < 100
    assert mean.value() == pytest.approx(values.mean(), rel=1e-12)


@pytest.mark.parametrize(("task", "name"), [(CLASSIFICATION, "auroc"), (MULTI_LABEL, "label_auroc")])
def test_an_area_of_too_many_scores_is_left_out_and_keeps_none(
    task: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(areas, "MOST_SCORES", 100)
    outputs, y = drawn(task)
    [metric] = [metric for metric in METRICS if metric.name == name]
    area = metric()
    area.update(outputs, y)
    assert area.value() is None
    assert vars(area)["_scores"] == []
