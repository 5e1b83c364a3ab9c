"""Poisoning in trials on a model of one number, where rates and certificates are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.poisoned_records import Backdoor, LabelFlip
from fedprivacy.attacks.poisoning.attack import ACCURACY, NOTE, RATE, Poisoning, goal_of
from fedprivacy.attacks.trials import Without, success_rate
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling

ATTACK = Poisoning(kind="poisoning", goal="label-flip", source=1, target=0, trials=400)
DOOR = Poisoning(kind="poisoning", target=0, pixels=((1, 1),))
PLAN = Plan("central", "client", "replace-one", 50, 1, AllSampling(), Gaussian(1.0, 2.0), 1e-3)
LEDGER = Ledger(PLAN).in_advance().to_json()
CLIPS = SimpleNamespace(server=SimpleNamespace(clips=True))
NO_CLIPS = SimpleNamespace(server=SimpleNamespace(clips=False))


class OneNumber:
    """A model that flips a label if its weight, noise of the server's plan and one clipped part, is above 1."""

    x = np.zeros((10, 2, 2), np.float32)
    y = np.arange(10, dtype=np.int64) % 2
    held_out = (x, y)
    brightest = 7.0

    def __init__(self, push: float = 1.0) -> None:
        self.push, self.requested = push, []

    def after_rounds(self, poison, trial: int) -> np.ndarray:
        self.requested.append((poison, trial))
        noise = np.random.default_rng([trial, poison is None]).normal(scale=2.0)
        return np.array([noise + (-self.push if poison is None else self.push)], np.float32)

    def labels(self, weights, x) -> np.ndarray:
        if weights[0] > 1:
            return np.zeros(len(x), np.int64)
        return self.y[: len(x)] if len(x) == 10 else np.ones(len(x), np.int64)


def without(outcome) -> Without:
    honest = outcome.without
    return Without(success_rate([(honest.successes, honest.trials)]), honest.figures, honest.trials)


def test_rates_are_those_of_the_model_with_and_without_malicious_clients() -> None:
    victim = OneNumber()
    outcome = ATTACK.run(victim)
    expected = [stats.norm.sf(1 - push, scale=2.0) for push in (1.0, -1.0)]
    for result, rate in zip((outcome, outcome.without), expected, strict=True):
        assert result.successes / 400 == pytest.approx(rate, abs=4 * 0.5 / 20)
        assert result.figures[RATE].value == pytest.approx(result.successes / 400)
        # A model that flips gives every record the target: half of the records are right.
        assert result.figures[ACCURACY].value == pytest.approx(1 - result.successes / 800)
        assert result.figures[RATE].low < result.figures[RATE].value < result.figures[RATE].high
    assert [trial for _, trial in victim.requested] == [*range(400), *range(400)]
    assert {poison is None for poison, _ in victim.requested[:400]} == {True}


def test_the_worst_client_stays_within_the_certificate_and_comes_near_it() -> None:
    outcome = ATTACK.run(OneNumber())
    honest = without(outcome)
    ceiling = ATTACK.ceiling(LEDGER, CLIPS, honest)
    assert ceiling.success == pytest.approx(stats.norm.cdf(stats.norm.ppf(honest.success.high) + 1.0))
    assert success_rate([(outcome.successes, 400)]).low <= ceiling.success
    assert outcome.successes / 400 > 0.75 * ceiling.success
    assert outcome.figures[RATE].low <= ceiling.figures[RATE]
    assert outcome.figures[ACCURACY].high >= ceiling.floors[ACCURACY]
    assert "mu = 1" in ceiling.basis
    assert ATTACK.chance(honest) == honest.success.value


def test_a_client_that_is_not_clipped_refutes_a_certificate_that_would_be_stated_for_it() -> None:
    outcome = ATTACK.run(OneNumber(push=6.0))
    ceiling = ATTACK.ceiling(LEDGER, CLIPS, without(outcome))
    assert success_rate([(outcome.successes, 400)]).low > ceiling.success


def test_where_nodes_clip_there_is_no_certificate_but_a_reason() -> None:
    honest = Without(Figure(0.1, 0.0, 0.2), {}, 20)
    ceiling = ATTACK.ceiling(LEDGER, NO_CLIPS, honest)
    assert (ceiling.success, ceiling.figures, ceiling.floors) == (None, {}, {})
    assert "nodes clip" in ceiling.assumptions[0]
    assert ATTACK.ceiling(LEDGER, CLIPS, None).success is None


def test_the_goal_is_that_of_the_settings() -> None:
    assert goal_of(ATTACK, 7.0) == LabelFlip(1, 0)
    door = goal_of(DOOR, 7.0)
    assert isinstance(door, Backdoor)
    assert (door.trigger.value, door.share, door.source) == (7.0, 0.5, None)
    assert goal_of(DOOR.model_copy(update={"value": 0.25}), 7.0).trigger.value == 0.25
    assert "certificate" in NOTE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": 5}, "target = 5: no held-out record has this label"),
        ({"source": 5}, "source = 5: no held-out record has this label"),
        ({"pixels": ((2, 0),)}, r"pixels: \[2, 0\] lies outside of the pictures of 2 x 2 pixels"),
    ],
)
def test_what_records_do_not_have_is_refused(changes, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        DOOR.model_copy(update=changes).check(OneNumber())
    DOOR.check(OneNumber())


def test_equal_rates_of_few_honest_runs_are_not_certain() -> None:
    """All of twenty are zero: the true mean may be 17 %, and the certificate starts there."""
    zero = Without(
        success_rate([(0, 20)]), {RATE: Figure(0.0, 0.0, 0.0), ACCURACY: Figure(1.0, 1.0, 1.0)}, 20
    )
    ceiling = ATTACK.ceiling(LEDGER, CLIPS, zero)
    start = 1 - 0.025 ** (1 / 20)
    assert ceiling.figures[RATE] == pytest.approx(stats.norm.cdf(stats.norm.ppf(start) + 1.0))
    assert ceiling.floors[ACCURACY] == pytest.approx(stats.norm.cdf(stats.norm.ppf(1 - start) - 1.0))
