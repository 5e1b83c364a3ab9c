"""Flower's settings against Flower's own code, closed forms, and means of updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from flwr.supercore import differential_privacy as flower
from scipy.stats import norm

from fedprivacy.errors import InputError
from scenarios.budgets.libraries.flower import LIBRARY, LocalDp, local_multiplier

LOCAL = ["epsilon=8", "delta=1e-5", "clipping_norm=1", "sensitivity=1"]
FIXED = ["noise_multiplier=1.5", "clipping_norm=2", "num_sampled_clients=20", "rounds=10"]


def figures(*words: str, adjacency: str = "replace-one") -> dict[str, Any]:
    document = LIBRARY.document(words, adjacency)
    return {f"{row['figure']}, {row['adjacency']}": row["epsilon"] for row in document["table"]}


def against(*words: str, adjacency: str = "replace-one") -> list[float | None]:
    return [each["epsilon"] for each in LIBRARY.document(words, adjacency)["guarantees"]]


def log_delta(epsilon: float, mu: float) -> float:
    """Balle and Wang 2018, Theorem 8, in logarithms: e^685 is no float of use."""
    above, below = norm.logcdf(mu / 2 - epsilon / mu), epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
    return float(above + np.log1p(-np.exp(below - above)))


def test_epsilon_8_is_18_9_a_message_and_685_in_a_hundred_rounds() -> None:
    stated = figures(*LOCAL, "rounds=100")
    z = math.sqrt(2 * math.log(1.25e5)) / 8
    for name, count, moved in (
        ("one message, replace-one", 1, 2),
        ("100 messages, replace-one", 100, 2),
        ("one message, zero-out", 1, 1),
        ("100 messages, zero-out", 100, 1),
    ):
        mu = moved * math.sqrt(count) / z
        assert log_delta(stated[name], mu) == pytest.approx(math.log(1e-5), abs=1e-6)
    assert stated["one message, replace-one"] == pytest.approx(18.9, abs=0.05)
    assert stated["100 messages, replace-one"] == pytest.approx(685, abs=0.5)
    assert against(*LOCAL, "rounds=100") == [stated["100 messages, replace-one"]] * 3


@pytest.mark.parametrize(("sensitivity", "norm_"), [(1.0, 1.0), (0.5, 2.0), (3.0, 1.5)])
def test_the_noise_is_the_one_that_flower_draws(monkeypatch, sensitivity: float, norm_: float) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(flower, "add_gaussian_noise_inplace", lambda arrays, std: drawn.append(std))
    monkeypatch.setattr(flower, "parameters_to_ndarrays", lambda parameters: parameters)
    monkeypatch.setattr(flower, "ndarrays_to_parameters", lambda arrays: arrays)
    flower.add_localdp_gaussian_noise_to_params([], sensitivity, 3.0, 1e-6)
    part = LocalDp(epsilon=3.0, delta=1e-6, sensitivity=sensitivity, clipping_norm=norm_)
    assert drawn == [pytest.approx(local_multiplier(part) * norm_, rel=1e-12)]


def test_a_sensitivity_of_zero_adds_no_noise_and_has_no_guarantee() -> None:
    document = LIBRARY.document([*LOCAL[:3], "sensitivity=0"])
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
    assert all("the noise is zero" in each["words"] for each in document["guarantees"])


def test_fixed_clipping_protects_a_share_of_the_mean_and_no_weight() -> None:
    stated = figures(*FIXED)
    for name, noise in (("with equal weights", 1.5), ("if one client may have nearly all weight", 1.5 / 20)):
        mu = 2 * math.sqrt(10) / noise
        assert log_delta(stated[f"{name}, replace-one"], mu) == pytest.approx(math.log(1e-5), abs=1e-6)
    assert against(*FIXED) == [None, *[stated["if one client may have nearly all weight, replace-one"]] * 2]
    assert against(*FIXED, "equal_weights=true") == [None, *[stated["with equal weights, replace-one"]] * 2]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("adjacency", "moved"), [("replace-one", 2.0), ("add-remove", 2.0), ("zero-out", 1.0)]
)
def test_the_noise_covers_the_largest_move_of_a_mean(adjacency: str, moved: float) -> None:
    """Opposite updates are the worst case; a mean whose divisor changes moves by 2C/n too."""
    n, clip = 20, 2.0
    updates = np.full(n, clip)
    near = {
        "replace-one": np.append(updates[1:], -clip),
        "add-remove": np.append(updates, -clip),
        "zero-out": np.append(updates[1:], 0.0),
    }[adjacency]
    move = abs(near.mean() - updates.mean())
    assert move == pytest.approx(moved * clip / n, rel=0.06)
    assert move <= moved * clip / n * (1 + 1e-12)
    stated = figures(*FIXED, adjacency=adjacency)[f"with equal weights, {adjacency}"]
    oracle = from_gaussian_mechanism(1.5 * clip / n, sensitivity=moved * clip / n).self_compose(10)
    assert stated == pytest.approx(oracle.get_epsilon_for_delta(1e-5), rel=1e-3)


def test_secret_cohorts_amplify_and_the_assumption_says_so() -> None:
    document = LIBRARY.document([*FIXED, "population=100", "equal_weights=true"])
    plain = against(*FIXED, "equal_weights=true")[1]
    participant = document["guarantees"][1]
    assert participant["epsilon"] < plain
    assert "the cohort of each round stays secret" in participant["assumptions"]
    assert participant["sampling"] == "20 clients of 100 in each round, drawn without replacement"
    assert against(*FIXED, "population=100")[1] > plain  # without equal weights nothing is amplified


def test_a_population_is_at_least_a_cohort() -> None:
    with pytest.raises(InputError, match="population=10: must be at least num_sampled_clients = 20"):
        LIBRARY.document([*FIXED, "population=10"])


def test_adaptive_clipping_has_no_guarantee_and_flowers_own_refusals() -> None:
    words = ["mechanism=adaptive-clipping", "noise_multiplier=1", "num_sampled_clients=100"]
    document = LIBRARY.document(words)
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
    assert "scaled with the clipping norm after its update" in document["guarantees"][1]["words"]
    for noise, clients in ((1.0, 100), (3.0, 20), (1.9, 20), (2.0, 20)):
        given = [words[0], f"noise_multiplier={noise}", f"num_sampled_clients={clients}"]
        try:
            flower.compute_adaptive_noise_params(noise, clients, None)
        except ValueError:
            with pytest.raises(InputError, match="must be below 2 clipped_count_stddev"):
                LIBRARY.document(given)
        else:
            LIBRARY.document(given)


@pytest.mark.parametrize(("clients", "stddev"), [(20, None), (100, 0.8)])
def test_adaptive_clipping_counts_bits_of_zero_and_one(clients: int, stddev: float | None) -> None:
    """Both releases by Flower's own noise: an update moves by C or 2C, the count by 1."""
    sigma, updates = flower.compute_adaptive_noise_params(1.0, clients, stddev)
    words = ["mechanism=adaptive-clipping", "noise_multiplier=1", f"num_sampled_clients={clients}"]
    given = [*words, *([] if stddev is None else [f"clipped_count_stddev={stddev}"])]
    for adjacency, moved in (("zero-out", 1), ("replace-one", 2), ("add-remove", 2)):
        (stated,) = figures(*given, adjacency=adjacency).values()
        mu = math.hypot(moved / updates, 1 / sigma)
        assert log_delta(stated, mu) == pytest.approx(math.log(1e-5), abs=1e-6)


def test_adaptive_clipping_of_twenty_costs_6_07_under_zero_out() -> None:
    words = ["mechanism=adaptive-clipping", "noise_multiplier=1", "num_sampled_clients=20"]
    (stated,) = figures(*words, adjacency="zero-out").values()
    assert stated == pytest.approx(6.07, abs=0.005)


def test_zero_out_names_the_update_that_flower_cannot_clip() -> None:
    with pytest.raises(ZeroDivisionError):
        flower.clip_inputs_inplace([np.zeros(3)], 1.0)
    assert "Zero-out is a comparison alone" in LIBRARY.document(LOCAL)["words"]
    for words in (LOCAL, FIXED):
        document = LIBRARY.document(words, "zero-out")
        assert "cannot process" in document["guarantees"][1]["assumptions"][0]
    adaptive = ["mechanism=adaptive-clipping", "noise_multiplier=1", "num_sampled_clients=20"]
    assert "cannot process" in LIBRARY.document(adaptive, "zero-out")["words"]
