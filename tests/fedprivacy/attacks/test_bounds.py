"""What a ledger leaves an attacker at each seat, and that attacks on randomised answers keep to it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import to_json
from fedprivacy.attacks.bounds import bound_of_ledger, bound_of_pair
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.tradeoff import GaussianCurve
from fedprivacy.errors import InputError


def ledger(adjacency: str = "replace-one", unit: str = "client"):
    gaussian = to_json(dp.SelfComposedDpEvent(dp.GaussianDpEvent(8.0), 4))
    less = to_json(dp.GaussianDpEvent(8.0))
    return {
        "unit": unit,
        "adjacency": adjacency,
        "delta": 1e-5,
        "claims": [
            {"observer": "server", "event": None, "assumptions": ["the server is trusted"]},
            {"observer": "participant", "event": gaussian, "assumptions": ["the cohort stays secret"]},
            {"observer": "outsider", "event": gaussian, "assumptions": ["nobody colludes"]},
            {"observer": "outsider", "event": less, "assumptions": ["noise adds up"]},
        ],
    }


def test_no_guarantee_is_said_in_words() -> None:
    bound = bound_of_ledger(ledger(), "server")
    assert (
        bound.words
        == "No guarantee against the server, which sees each message that it receives: the server is trusted."
    )
    data = bound.to_json()
    assert [data[key] for key in ("advantage", "balanced_accuracy", "auc", "tpr_at_fpr", "curve")] == [
        None
    ] * 5
    none = {
        **ledger(),
        "claims": [{"observer": "server", "event": to_json(dp.LaplaceDpEvent(0.0)), "assumptions": []}],
    }
    assert "the noise is zero" in bound_of_ledger(none, "server").words


@pytest.mark.parametrize(
    ("unit", "adjacency", "mu"),
    [
        ("client", "replace-one", 0.5),  # sensitivity 2C, four releases at 8C: 2 * 2 / 8
        ("client", "add-remove", 0.5),  # half of that, in two steps
        ("client", "zero-out", 0.5),
        ("example", "add-remove", 0.25),
        ("example", "zero-out", 0.25),
        ("example", "replace-one", 0.5),
    ],
)
def test_the_membership_of_a_record_is_one_step_or_two(unit: str, adjacency: str, mu: float) -> None:
    bound = bound_of_ledger(ledger(adjacency, unit), "participant")
    assert bound.curve == GaussianCurve(mu)
    assert ("two steps" in bound.words) == (unit == "client" and adjacency != "replace-one")
    assert "the cohort stays secret" in bound.words


def test_a_record_in_or_out_of_sampled_batches_costs_no_more_than_one_that_is_replaced() -> None:
    """One that is out has zero gradients: what zero-out has exactly, and replace-one among much else."""
    batch = dp.PoissonSampledDpEvent(0.2, dp.GaussianDpEvent(2.0))
    event = to_json(dp.SelfComposedDpEvent(batch, 50))
    claims = [{"observer": "server", "event": event, "assumptions": ["noise is drawn"]}]
    areas = [
        bound_of_ledger({**ledger(adjacency, "example"), "claims": claims}, "server").curve.auc
        for adjacency in ("add-remove", "zero-out", "replace-one")
    ]
    assert areas[0] == pytest.approx(areas[1], abs=1e-3)
    assert 0.6 < areas[0] < areas[2] - 0.05


def test_the_tightest_claim_counts() -> None:
    bound = bound_of_ledger(ledger(), "outsider")
    assert bound.curve == GaussianCurve(0.25)
    assert "noise adds up" in bound.words


def test_the_json_has_numbers_and_points_to_draw() -> None:
    data = json.loads(json.dumps(bound_of_ledger(ledger(), "participant").to_json(), allow_nan=False))
    exact = GaussianCurve(0.5)
    assert data["auc"] == pytest.approx(exact.auc)
    assert data["balanced_accuracy"] == pytest.approx((1 + exact.advantage) / 2)
    assert data["tpr_at_fpr"] == pytest.approx(
        {r: float(exact.tpr(float(r))) for r in ("0.1", "0.01", "0.001")}
    )
    assert (data["curve"]["fpr"][0], data["curve"]["fpr"][-1], data["curve"]["tpr"][-1]) == (0.0, 1.0, 1.0)
    assert np.allclose(data["curve"]["tpr"], exact.tpr(data["curve"]["fpr"]))


def test_a_pair_alone() -> None:
    bound = bound_of_pair(2.0, 1e-5, "client", "replace-one", "server")
    assert bound.to_json()["advantage"] == pytest.approx(0.762, abs=5e-4)
    assert bound.to_json()["tpr_at_fpr"]["0.01"] == pytest.approx(math.exp(2) * 0.01 + 1e-5)
    twice = bound_of_pair(1.0, 1e-5, "client", "add-remove", "server")
    assert twice.to_json()["tpr_at_fpr"]["0.01"] == pytest.approx(math.exp(2) * 0.01 + 1e-5 * (1 + math.e))


def test_wrong_seats_and_damaged_ledgers() -> None:
    with pytest.raises(InputError, match="seat = 'nobody': must be one of server"):
        bound_of_ledger(ledger(), "nobody")
    with pytest.raises(InputError, match="damaged: KeyError"):
        bound_of_ledger({"unit": "client"}, "server")
    with pytest.raises(InputError, match="says nothing of the server"):
        bound_of_ledger({**ledger(), "claims": []}, "server")
    with pytest.raises(InputError, match="adjacency = 'other'"):
        bound_of_ledger(ledger("other"), "participant")
    with pytest.raises(InputError, match="unit, adjacency"):
        bound_of_ledger(ledger(unit="phone"), "participant")


def test_the_best_attack_on_noisy_answers_lies_on_the_curve() -> None:
    """Two steps under add-remove: a clipped update of +C or -C, with noise. 200,000 draws each, fixed seed."""
    curve = bound_of_ledger(ledger("add-remove"), "participant").curve
    stream, runs = np.random.default_rng(3), 200_000
    # four releases of +-C with noise 8C each, averaged: standard deviation 4C
    member, other = (sign + 4.0 * stream.normal(size=runs) for sign in (1.0, -1.0))
    roc = Roc.of(member, other)
    # Dvoretzky, Kiefer and Wolfowitz: both curves within .006 but with probability 1e-6.
    assert np.abs(roc.tpr - curve.tpr(roc.fpr)).max() < 0.012
