"""`--stop-at-epsilon`: fewer rounds with the same noise, fixed before the first round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedprivacy.errors import InputError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.scenario import Scenario
from scenarios.budgets.stop_at_epsilon import shortened
from scenarios.cli.main import app

READY = Path(__file__).parents[3] / "scenarios"
EXAMPLE = "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, epsilon=16.0, delta=1e-4}"
BATCHES = "training={batches='poisson', rate=0.5, steps=3, learning_rate=0.5}"
DISTRIBUTED = "privacy={trust='distributed', clipping_norm=1.0, epsilon=16.0, delta=1e-4}"
CENTRAL = "privacy={trust='central', clipping_norm=1.0, epsilon=4.0, delta=1e-4}"
LOCAL = "privacy={trust='local', clipping_norm=1.0, epsilon=16.0, delta=1e-4, max_participations=6}"


@pytest.mark.parametrize(
    ("settings", "limit"),
    [((CENTRAL,), 2.0), ((LOCAL,), 8.0), ((EXAMPLE, BATCHES), 8.0), ((DISTRIBUTED,), 8.0)],
)
def test_the_noise_stays_and_the_rounds_become_fewer(make_scenario, settings, limit: float) -> None:
    whole = make_scenario(*settings, "server.rounds=12")
    fewer = shortened(whole, limit)
    before, after = plan_of(whole), plan_of(fewer)
    assert after.noise_multiplier == pytest.approx(before.noise_multiplier, rel=1e-4)
    assert 0 < after.rounds < before.rounds
    assert after.spent().epsilon <= limit < plan_of(shortened(whole, 1.5 * limit)).spent().epsilon


def test_a_plan_that_costs_no_more_stays(make_scenario) -> None:
    whole = make_scenario(CENTRAL)
    assert shortened(whole, 4.0001) is whole


@pytest.mark.parametrize(
    ("settings", "limit", "words"),
    [
        ((CENTRAL,), 0.01, "--stop-at-epsilon 0.01: one round costs epsilon .*Raise the limit"),
        ((CENTRAL,), -1.0, "positive"),
        ((CENTRAL,), float("nan"), "positive"),
        (("privacy={trust='none'}",), 1.0, "no noise"),
        (("privacy={trust='none', clipping_norm=1.0}",), 1.0, "no noise"),
        (
            ("privacy={trust='local', mechanism='privunit', clipping_norm=1.0, epsilon=16.0, delta=1e-4}",),
            8.0,
            "the mechanism would be another one .*Set server.rounds and privacy.epsilon",
        ),
    ],
)
def test_what_cannot_be_shortened_is_refused(make_scenario, settings, limit: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        shortened(make_scenario(*settings, "server.rounds=4"), limit)


def test_a_scenario_with_a_comparison_and_one_of_nodes_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Scenario.read(READY / "dp-sgd-digits.toml")
    assert 0 < shortened(ready, 1.5).server.rounds < ready.server.rounds


def test_stated_noise_stays_stated(make_scenario) -> None:
    noisy = CENTRAL.replace("epsilon=4.0", "noise_multiplier=2.0")
    fewer = shortened(make_scenario(noisy, "server.rounds=12"), 8.0)
    assert 0 < fewer.server.rounds < 12
    assert (fewer.privacy.noise_multiplier, fewer.privacy.epsilon) == (2.0, None)


def test_statistics_have_no_rounds(make_statistics) -> None:
    with pytest.raises(InputError, match="only a training has rounds to end"):
        shortened(make_statistics(), 1.0)


def test_the_command_states_the_shorter_plan(tmp_path: Path) -> None:
    words = ["run", "digits", "--set", "server.rounds=6", "--stop-at-epsilon", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    document = json.loads(next(tmp_path.glob("*/run.json")).read_text(encoding="utf-8"))
    spent = [each["epsilon"] for each in document["privacy"]["guarantees"] if each["epsilon"] is not None]
    assert document["plan"]["rounds"] == len(document["rounds"]) < 6
    assert max(spent) <= 1.0


def test_a_run_is_resumed_with_its_own_rounds(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", "--resume", str(tmp_path), "--stop-at-epsilon", "1"])
    assert isinstance(result.exception, InputError)
    assert "Leave out --set, --seed, --out and --stop-at-epsilon" in str(result.exception)
