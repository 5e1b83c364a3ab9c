"""The strongest attack of each fold is chosen on the others, and measured there alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from fedprivacy.attacks.metrics import measure, performance
from fedprivacy.attacks.strongest import Contender, strongest
from fedprivacy.attacks.targets import FOLDS, Targets, draw_folds

WEAK, STRONG = (Contender(name, "server", supervised=False) for name in ("weak", "strong"))


def game(stream: np.random.Generator, gap: float, count: int = 400) -> Targets:
    members = stream.random(count) < 0.5
    return Targets(stream.normal(size=count) + gap * members, members, draw_folds(count, stream))


def test_the_stronger_one_is_taken_in_every_fold_with_its_figures() -> None:
    stream = np.random.default_rng(1)
    runs = {
        contender: [game(stream, gap) for _ in range(2)] for contender, gap in ((WEAK, 0.5), (STRONG, 2.0))
    }
    found = strongest(runs)
    assert found.folds == {STRONG: FOLDS}
    for run, figures in zip(runs[STRONG], found.runs, strict=True):
        assert figures == performance(run.directions)
        assert figures.tpr_at_fpr == measure(run).tpr_at_fpr


def test_a_fold_decides_nothing_for_itself() -> None:
    """An attack that is strong in one fold alone is taken in the others, where it is worth nothing."""
    stream = np.random.default_rng(2)
    steady = game(stream, 0.2, 2000)
    lucky = replace(
        steady, scores=np.where(steady.folds == 3, 9.0 * steady.members, stream.normal(size=2000))
    )
    found = strongest({WEAK: [steady], STRONG: [lucky]})
    assert found.folds == {STRONG: 4, WEAK: 1}
    [figures] = found.runs
    taken = [(steady if fold == 3 else lucky).directions[fold] for fold in range(FOLDS)]
    assert figures == performance(taken)
    assert figures.auc.value < 0.6


def test_of_two_as_good_the_first_is_taken() -> None:
    targets = game(np.random.default_rng(3), 1.0)
    assert strongest({WEAK: [targets], STRONG: [targets]}).folds == {WEAK: FOLDS}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("gap", "rounds"), [(2.0, 60), (0.0, 60), (0.0, 1000)])
def test_the_largest_of_several_is_not_flattered(gap: float, rounds: int) -> None:
    """Of six attacks, one of which may be strong; intervals cover 93 % at least, false-alarm rate 1e-3."""
    stream, found = np.random.default_rng(4), []
    for _ in range(rounds):
        first = game(stream, gap, 90)
        every = [first, *(replace(first, scores=stream.normal(size=90)) for _ in range(5))]
        [figures] = strongest(
            {Contender(str(number), "server", supervised=False): [each] for number, each in enumerate(every)}
        ).runs
        found.append(figures.auc)
    true = norm.cdf(gap / math.sqrt(2))
    missed = sum(not figure.low <= true <= figure.high for figure in found)
    assert missed <= binom.isf(1e-3, rounds, 0.07)
    if gap == 0:
        assert sum(figure.low > 0.5 for figure in found) <= binom.isf(1e-3, rounds, 0.04)
    assert np.mean([figure.value for figure in found]) == pytest.approx(true, abs=5 * 0.08 / np.sqrt(rounds))
