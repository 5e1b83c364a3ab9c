"""The interval of a TPR covers the draw of thresholds, of members, and of what was chosen or learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta, binom, norm
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fedprivacy.attacks.combined_scores import choose_score, supervised
from fedprivacy.attacks.metrics import measure, tpr_at
from fedprivacy.attacks.targets import FOLDS, Direction, Targets, draw_folds
from fedprivacy.attacks.tpr_interval import tpr_interval

FALSE_ALARM = 1e-6  # of each test of a coverage, with fixed seeds
LEAST = 0.93  # of the coverage


def game(stream: np.random.Generator, members: int, others: int) -> tuple[np.ndarray, np.ndarray]:
    """The members and the folds of a game in random order."""
    truth = stream.permutation(members + others) < members
    return truth, draw_folds(members + others, stream)


def covers(draw: Callable[[], tuple[tuple[float, float], float]], runs: int) -> None:
    missed = 0
    for _ in range(runs):
        (low, high), true = draw()
        missed += not low <= true <= high
    assert missed <= binom.isf(FALSE_ALARM, runs, 1 - LEAST)


@pytest.mark.exhaustive(every=11)
@pytest.mark.parametrize("step", [None, 0.1, 1.0])
@pytest.mark.parametrize(
    ("gap", "rate", "members", "others"),
    [(0.0, 0.01, 100, 500), (1.5, 0.01, 100, 500), (2.0, 0.1, 50, 120), (4.0, 0.01, 100, 700),
     (6.0, 0.01, 100, 500), (1.5, 0.01, 500, 1000)],
)  # fmt: skip
def test_the_interval_of_a_fixed_score_covers(
    gap: float, rate: float, members: int, others: int, step: float | None
) -> None:
    """Normal scores, distinct or rounded to steps; the truth is at the best threshold of at most this FPR."""
    stream, true = np.random.default_rng(1), norm.sf(norm.isf(rate) - gap)
    if step is not None:
        true = norm.sf((np.ceil(norm.isf(rate) / step - 0.5 - 1e-9) + 0.5) * step - gap)

    def draw() -> tuple[tuple[float, float], float]:
        truth, folds = game(stream, members, others)
        scores = stream.normal(size=members + others) + gap * truth
        scores = scores if step is None else np.round(scores / step) * step
        return tpr_interval(Targets(scores, truth, folds).directions, rate), true

    covers(draw, 400)


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("gap", "runs"), [(1.5, 20), (0.0, 150), (1.5, 150), (4.0, 150)])
def test_the_interval_of_a_score_chosen_by_folds_covers(gap: float, runs: int) -> None:
    """Of 20 scores, of which the last one knows most; the truth is the mean over members of the chosen ones."""
    stream, rate, gaps = np.random.default_rng(2), 0.01, np.append(np.zeros(19), gap)
    true = norm.sf(norm.isf(rate) - gaps)

    def draw() -> tuple[tuple[float, float], float]:
        truth, folds = game(stream, 100, 500)
        scores = stream.normal(size=(20, 600)) + gaps[:, None] * truth
        chosen = choose_score({str(name): row for name, row in enumerate(scores)}, truth, folds)
        targets = Targets(chosen.scores, truth, folds)
        weights = np.bincount(folds[truth], minlength=FOLDS) / 100
        figure = tpr_at(rate, targets.directions)
        assert figure is not None
        return (figure.tpr.low, figure.tpr.high), float(weights @ true[[int(name) for name in chosen.names]])

    covers(draw, runs)


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("gap", "features", "runs"), [(0.6, 6, 10), (0.0, 10, 60), (0.6, 6, 60)])
def test_the_interval_of_a_score_learned_by_folds_covers(gap: float, features: int, runs: int) -> None:
    """Logistic regression on normal features, of which each tells as much; its score is normal too."""
    stream, rate = np.random.default_rng(3), 0.01

    def draw() -> tuple[tuple[float, float], float]:
        truth, folds = game(stream, 100, 500)
        table = stream.normal(size=(600, features)) + gap * truth[:, None]
        scores = supervised({str(column): values for column, values in enumerate(table.T)}, truth, folds)
        true = 0.0
        for fold in range(FOLDS):
            known = folds != fold
            scaled = StandardScaler().fit(table[known])
            model = LogisticRegression(max_iter=1000).fit(scaled.transform(table[known]), truth[known])
            slope = model.coef_[0] / scaled.scale_
            apart = gap * slope.sum() / np.linalg.norm(slope)
            true += (truth & ~known).sum() / 100 * norm.sf(norm.isf(rate) - apart)
        return tpr_interval(Targets(scores, truth, folds).directions, rate), float(true)

    covers(draw, runs)


def test_a_thousand_nonmembers_show_a_tpr_to_within_about_eleven_points() -> None:
    """With 500 members, for AUCs of .5 to .92, on average; and 10,000 show one at an FPR of .1 %."""
    stream = np.random.default_rng(4)
    for gap in (0.0, 1.0, 1.5, 2.0):
        widths = []
        for _ in range(5):
            truth, folds = game(stream, 500, 1000)
            targets = Targets(stream.normal(size=1500) + gap * truth, truth, folds)
            low, high = tpr_interval(targets.directions, 0.01)
            widths.append(high - low)
        assert np.mean(widths) <= 0.24
    truth, folds = game(stream, 1000, 10_000)
    found = measure(Targets(stream.normal(size=11_000) + 2.0 * truth, truth, folds)).tpr_at_fpr["0.001"]
    assert found is not None
    assert 0 < found.tpr.low < found.tpr.value < found.tpr.high < found.tpr.low + 0.2


def test_members_above_all_others_are_found_as_surely_as_their_number_tells() -> None:
    """No threshold is uncertain then: the interval is that of Clopper and Pearson."""
    found = tpr_interval([Direction(np.full(50, 9.0), np.zeros(100), np.full(9, 9.0), np.zeros(400))], 0.01)
    none, high = tpr_interval([Direction(np.zeros(50), np.ones(100), np.zeros(9), np.ones(400))], 0.01)
    mass = 0.99**500 / 2  # that the threshold is above all, and no member is above it
    assert found[1] == 1.0
    assert found[0] == pytest.approx(beta.ppf((0.025 - mass) / (1 - mass), 50, 1), abs=2e-3)
    assert (none, high) == (0.0, pytest.approx(beta.ppf(0.975, 1, 50)))


def test_what_five_nonmembers_above_the_rate_show_is_above_zero() -> None:
    """With 5/FPR of them the interval of a good attack tells something."""
    direction = Direction(np.full(100, 9.0), np.arange(100.0) / 100, np.full(9, 9.0), np.arange(400.0) / 400)
    assert tpr_interval([direction], 0.01)[0] > 0.9


def test_directions_with_one_score_are_as_one() -> None:
    stream = np.random.default_rng(5)
    truth, folds = game(stream, 100, 500)
    scores = stream.normal(size=600) + 1.5 * truth
    none = np.zeros(0)
    whole = Direction(scores[truth], scores[~truth], none, none)
    assert tpr_interval(Targets(scores, truth, folds).directions, 0.1) == tpr_interval([whole], 0.1)
