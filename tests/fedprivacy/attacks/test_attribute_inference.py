"""Attribute inference: imputation as its baseline, the bound at imputation's accuracy, and both attackers."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.stats import norm

from fedprivacy.accounting.events import to_json
from fedprivacy.attacks.attribute_inference import BEST, Attribute
from fedprivacy.attacks.imputation import Imputer, UnknownColumn, fitted
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.trials import Without

ATTACK = Attribute(kind="attribute", column="colour")
RUN = SimpleNamespace()  # the bound reads the ledger alone


def ledger(adjacency: str, unit: str) -> dict:
    claim = {"observer": "server", "event": to_json(dp.GaussianDpEvent(2.0)), "assumptions": ["noise"]}
    return {"unit": unit, "adjacency": adjacency, "claims": [claim]}


@pytest.mark.parametrize(
    ("unit", "adjacency", "mu"),
    [("client", "replace-one", 1.0), ("client", "zero-out", 0.5), ("example", "add-remove", 0.5)],
)
def test_the_bound_is_the_curve_at_the_accuracy_of_imputation(unit: str, adjacency: str, mu: float) -> None:
    """Noise 2 C: from the data without the client, or the record, the sum moves by C, under replace-one by 2 C."""
    without = Without(Figure(0.6, 0.55, 0.65), {}, 400)
    ceiling = ATTACK.ceiling(ledger(adjacency, unit), RUN, without)  # type: ignore[arg-type]
    assert ceiling.success == pytest.approx(norm.cdf(norm.ppf(0.65) + mu), abs=1e-9)
    assert BEST in ceiling.assumptions


def test_weights_of_evidence_find_the_law_that_made_it() -> None:
    """A conditional logit with weights 2 and -1; 4,000 examples have standard errors of about .05."""
    stream = np.random.default_rng(1)
    evidence = stream.normal(size=(4000, 3, 2))
    scores = evidence @ np.array([2.0, -1.0]) + stream.gumbel(size=(4000, 3))
    assert fitted(evidence, scores.argmax(axis=1)) == pytest.approx([2.0, -1.0], abs=0.25)


@dataclass(frozen=True)
class Table:
    """Records with a colour in three columns, and a number that follows it in 80 % of them."""

    x: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    feature_names: tuple[str, ...] = ("size", "colour=red", "colour=green", "colour=blue")
    classes: int = 2

    def groups(self, column: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
        return self.codes, ("red", "green", "blue")

    def records(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.x[numbers], self.y[numbers]


@pytest.fixture
def table() -> Table:
    stream = np.random.default_rng(2)
    codes = stream.integers(3, size=3000)
    follows = np.where(stream.random(3000) < 0.8, codes, stream.integers(3, size=3000))
    x = np.column_stack([follows == 0, codes == 0, codes == 1, codes == 2]).astype(np.float32)
    return Table(x, (follows == 1).astype(np.int64), codes)


def test_candidates_differ_in_the_unknown_column_alone(table: Table) -> None:
    column = UnknownColumn.of(table, "colour")  # type: ignore[arg-type]
    candidates = column.candidates(np.array([7, 8]))
    assert candidates.shape == (2, 3, 4)
    assert np.array_equal(candidates[:, :, 1:], np.broadcast_to(np.eye(3, dtype=np.float32), (2, 3, 3)))
    assert (candidates[:, :, 0] == table.x[[7, 8], :1]).all()
    assert np.array_equal(candidates[0, table.codes[7]], table.x[7])


def test_imputation_reads_other_answers_and_the_label_alone(table: Table) -> None:
    """The number and the label name the colour in 80 % + 20 % / 3 of the records; 2,000 have an error of .8 points."""
    column = UnknownColumn.of(table, "colour")  # type: ignore[arg-type]
    assert column.others(np.arange(5)).shape == (5, 3)  # one feature, and two labels
    imputer = Imputer.of(column, np.arange(1000))
    logs = imputer.log_probabilities(np.arange(1000, 3000))
    assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
    right = (logs.argmax(axis=1) == table.codes[1000:]).mean()
    assert right == pytest.approx(0.8 + 0.2 / 3, abs=0.04)
