"""NVFlare's filters: each figure from the scales of their noise, the bound by simulation, and no false epsilon."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError
from scenarios.budgets.libraries.nvflare import LIBRARY, Svt, shares

STOCK = ["weights=7033282"]  # DenseNet-121 with one channel, two classes and its running statistics
EARLIER = ["weights=6970900", "version=before-2.8"]


def late(weights: int, fraction: float, epsilon: float, noise_var: float, gamma: float) -> float:
    """Up to 2.7: the largest move of a clipped number over the scale of its Laplace noise, for each part."""
    n = min(weights, math.ceil(weights * fraction))
    threshold = 2 * gamma / epsilon
    compared = 4 * gamma * n / (epsilon * (2 * n) ** (2 / 3))
    sent = 2 * gamma / noise_var
    return gamma / threshold + n * 2 * gamma / compared + n * 2 * gamma / sent


@pytest.mark.parametrize(
    ("weights", "fraction", "epsilon", "noise_var", "gamma"),
    [(6_970_900, 0.1, 0.1, 0.1, 1e-5), (4_700_000, 0.9, 0.001, 1.0, 1e-4), (10, 1.0, 0.1, 0.1, 1e-5)],
)
def test_the_figure_of_an_earlier_message_follows_from_the_scales(
    weights, fraction, epsilon, noise_var, gamma
) -> None:
    words = [f"weights={weights}", f"fraction={fraction}", f"epsilon={epsilon}", f"noise_var={noise_var}",
             f"gamma={gamma}", "version=before-2.8"]  # fmt: skip
    document = LIBRARY.document(words)
    (row,) = document["table"]
    assert row["epsilon"] == pytest.approx(late(weights, fraction, epsilon, noise_var, gamma), rel=1e-9)
    assert row["delta"] == 0
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3


def test_stock_settings_are_70_333_a_round() -> None:
    """By the ledger of 2.8 and 2.9 for this model; up to 2.7 for another, where it is no guarantee."""
    document = LIBRARY.document([*STOCK, "rounds=10"])
    once, ten, bound, bounds = (row["epsilon"] for row in document["table"])
    n = math.ceil(703_328.2)
    assert once == pytest.approx(0.1 + 0.1 * n, rel=1e-12) == pytest.approx(70_333, abs=0.05)
    assert bound == pytest.approx(once + 0.1 * (7_033_282 / n - 1), abs=1e-4)
    assert (ten, bounds) == pytest.approx((10 * once, 10 * bound))
    assert [each["epsilon"] for each in document["guarantees"]] == [bounds] * 3
    assert LIBRARY.document(EARLIER)["table"][0]["epsilon"] == pytest.approx(70_333, abs=0.5)


def test_epsilon_is_divided_as_nvflare_divides_it() -> None:
    """`_compute_epsilon_split(1.0, 4)` of NVFlare 2.9 is (0.2, 0.8); the release defaults to noise_var each."""
    part = Svt(weights=4, fraction=1.0, epsilon=1.0, noise_var=0.5)
    assert shares(part) == pytest.approx((0.2, 0.8, 0.5))
    assert shares(part.model_copy(update={"epsilon_query": 0.75})) == pytest.approx((0.25, 0.75, 0.5))
    assert shares(part.model_copy(update={"epsilon_threshold": 0.3})) == pytest.approx((0.3, 0.7, 0.5))
    assert shares(part.model_copy(update={"epsilon_release": 3.0})) == pytest.approx((0.2, 0.8, 0.75))


def test_more_weights_pass_the_threshold_than_the_ledger_counts() -> None:
    """The filter's loop on stock settings: a pass takes some half of all weights, five times n."""
    generator, weights = np.random.default_rng(3), 100_000
    part = Svt(weights=weights)
    threshold, compared, _ = shares(part)
    n = weights // 10
    limit = part.tau + generator.laplace(scale=part.gamma / threshold)
    above = int((generator.laplace(scale=part.gamma * 2 * n / compared, size=weights) >= limit).sum())
    assert above > 2 * n


def test_a_weight_that_is_clipped_after_its_noise_is_given_away() -> None:
    """The reason for no guarantee: two clients far apart are told apart by one weight nearly always."""
    gamma, scale = 1e-5, 2 * 1e-5 / 0.1
    noise = np.random.default_rng(1).laplace(scale=scale, size=10_000)
    high, low = (np.clip(weight + noise, -gamma, gamma) for weight in (0.01, -0.01))
    assert (high == gamma).mean() > 0.999
    assert (low == -gamma).mean() > 0.999
    assert "has not clipped" in LIBRARY.document(EARLIER)["guarantees"][0]["words"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["epsilon_threshold=0.2"], r"epsilon_threshold=0\.2: must be below epsilon = 0\.1"),
        (["epsilon_threshold=0.1"], r"epsilon_threshold=0\.1: must be below epsilon = 0\.1"),
        (["epsilon_query=0.1"], r"epsilon_query=0\.1: must be below epsilon = 0\.1"),
        (["epsilon_threshold=0.05", "epsilon_query=0.06"], "must add up to epsilon = 0.1"),
        (["version=before-2.8", "epsilon_release=3"], r"epsilon_release=3: only since version 2\.8"),
    ],
)
def test_what_nvflare_refuses_is_refused(words: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        LIBRARY.document([*STOCK, *words])


def test_percentile_has_no_noise() -> None:
    document = LIBRARY.document(["filter=PercentilePrivacy"])
    assert document["table"] == []
    assert all("adds no noise" in each["words"] for each in document["guarantees"])


def config(folder: Path, *chains: dict) -> str:
    file = folder / "config_fed_client.json"
    file.write_text(json.dumps({"task_result_filters": list(chains)}))
    return str(file)


def chain(epsilon: float, **keys) -> dict:
    return {**keys, "filters": [{"path": "x.SVTPrivacy", "args": {"epsilon": epsilon}}]}


@pytest.mark.parametrize(
    "tasks", [{}, {"tasks": ["train"]}, {"tasks": ["*"]}, {"tasks": ["submit", "train"]}]
)
def test_the_chain_of_training_is_read_and_others_are_passed_over(tmp_path: Path, tasks: dict) -> None:
    file = config(tmp_path, chain(0.5, tasks=["validate"]), chain(0.2, **tasks))
    assert LIBRARY.document([file, *STOCK])["settings"]["epsilon"] == 0.2


@pytest.mark.parametrize("tasks", [["validate"], [], "validate", 3, None])
def test_a_chain_of_another_task_protects_nothing_that_training_sends(tmp_path: Path, tasks) -> None:
    with pytest.raises(InputError, match="has no SVTPrivacy or PercentilePrivacy for the task train"):
        LIBRARY.document([config(tmp_path, chain(0.1, tasks=tasks)), *STOCK])


@pytest.mark.parametrize(
    ("kinds", "holds"),
    [('["WEIGHTS"]', False), ('["WEIGHT_DIFF"]', True), ('["WEIGHTS", "WEIGHT_DIFF"]', True), ("[]", True)],
)
def test_kinds_that_leave_out_weight_differences_have_no_guarantee(kinds: str, holds: bool) -> None:
    document = LIBRARY.document([*STOCK, f"data_kinds={kinds}"])
    assert [each["epsilon"] is not None for each in document["guarantees"]] == [holds] * 3
    assert ("data_kinds leaves out WEIGHT_DIFF" in document["guarantees"][0]["words"]) is not holds
