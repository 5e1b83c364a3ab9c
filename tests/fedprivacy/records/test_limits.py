"""The sentence on what limits a run, on numbers whose limit is known."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.records.limits import gaps, limiting

WOBBLE = (-0.004, -0.002, 0.0, 0.002, 0.004)


def cell(accuracy: float, ablation: str = "", wobble: float = 1.0, **more: Any) -> dict[str, Any]:
    """A cell over five seeds around an accuracy; with wobble 1.0 its differences are exact."""
    accuracies = [accuracy + wobble * step for step in WOBBLE]
    settings = {"rounds": 10, "clipping_norm": 1.0, **more}
    return {"ablation": ablation, "seeds": [1, 2, 3, 4, 5], "accuracies": accuracies, **settings}


def every(**accuracies: float) -> list[dict[str, Any]]:
    """All ablations, as accurate as the planned run (80 %) unless given; each varies by itself."""
    names = (
        "no-noise",
        "no-clipping",
        "norm-half",
        "norm-double",
        "rounds-double",
        "cohort-double",
        "data-half",
    )
    changed = {
        "norm-half": {"clipping_norm": 0.5},
        "norm-double": {"clipping_norm": 2.0},
        "rounds-double": {"rounds": 20},
    }
    return [
        cell(accuracies.get(name.replace("-", "_"), 0.8), name, 0.5, **changed.get(name, {}))
        for name in names
    ]


@pytest.mark.parametrize(
    ("accuracies", "start", "advice"),
    [
        ({"no_noise": 0.9, "no_clipping": 0.9}, "Noise limits this run: without it 90.0 % instead of 80.0 %", "epsilon"),
        ({"no_noise": 0.9, "no_clipping": 0.9, "cohort_double": 0.85}, "Noise limits", "twice the sampling.rate reaches 85.0 % (best of 4)"),
        ({"no_clipping": 0.9}, "Clipping limits this run: unclipped it reaches 90.0 % instead of 80.0 %", "larger privacy.clip"),
        ({"no_clipping": 0.9, "norm_double": 0.85}, "Clipping limits", "clipping_norm = 2: 85.0 %"),
        ({"norm_half": 0.85}, "The clipping norm limits this run: with 0.5 in place of 1", "clipping_norm = 0.5"),
        ({"rounds_double": 0.9}, "Too few rounds limit this run: with 20", "server.rounds = 20"),
        ({"cohort_double": 0.9}, "Small cohorts limit this run", "sampling.rate"),
        ({"data_half": 0.7}, "The number of records limits this run", "more clients"),
        ({}, "The model or the data limit this run", "another model"),
    ],
)  # fmt: skip
def test_the_largest_certain_gain_is_the_limit(accuracies: dict[str, float], start: str, advice: str) -> None:
    sentence = limiting(cell(0.8), every(**accuracies))
    assert sentence.startswith(start)
    assert advice in sentence
    assert len(sentence.split()) <= 30
    assert ("(best of 6, 5 seeds)" in sentence) == any(accuracy > 0.8 for accuracy in accuracies.values())


def test_a_gain_of_the_only_ablation_is_the_best_of_none() -> None:
    sentence = limiting(cell(0.8), [cell(0.85, "norm-half", 0.5, clipping_norm=0.5)])
    assert "85.0 % instead of 80.0 % (5 seeds)" in sentence


def test_no_limit_is_named_within_the_noise_of_the_seeds() -> None:
    ablations = [cell(0.82, name, -20.0) for name in ("no-noise", "no-clipping")]
    assert limiting(cell(0.8), ablations).startswith("No single limit was measurable with 5 seeds")


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({}, "Neither alone was measurable; try a larger epsilon."),
        ({"cohort_double": 0.82}, "At this epsilon twice the sampling.rate reaches 82.0 % (best of 4)."),
    ],
)
def test_noise_and_clipping_cost_together_where_neither_is_measurable_alone(
    more: dict[str, float], advice: str
) -> None:
    ablations = every(no_clipping=0.84, **more)
    ablations[0] = cell(0.82, "no-noise", -20.0)  # unclear against the plan, and against unclipped training
    sentence = limiting(cell(0.8), ablations)
    assert sentence == (
        f"Noise and clipping together cost 4.0 points (84.0 % instead of 80.0 %; best of 7, 5 seeds). {advice}"
    )
    assert len(sentence.split()) <= 30


def test_the_more_ablations_the_wider_their_intervals() -> None:
    one = gaps(cell(0.8), [cell(0.82, "no-noise", 5.0)])["no-noise"]
    many = gaps(cell(0.8), [cell(0.82, "no-noise", 5.0), *every()[1:]])["no-noise"]
    assert (one.points, many.points) == (2.0, 2.0)
    assert many.high > one.high
    assert many.low < one.low
