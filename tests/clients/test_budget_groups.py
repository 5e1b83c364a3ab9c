"""A client's own group on its node: weight after clipping, own noise, and nothing of any other group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from clients.fleet import Fleet
from clients.privacy import privatise, sum_noise
from clients.training_handler import answer
from fedprivacy.errors import Refusal
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.models.by_name import flat_weights
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling
from fedprivacy.sampling.groups import Group, Groups, members
from fedprivacy.training.updates import Joined, Stack

LIGHT, RARE = Group("light", share=0.25, weight=0.25), Group("rare", clients=(1, 2), rate=0.1)
CENTRAL = Plan(
    *("central", "client", "replace-one", 12, 10, PoissonSampling(0.5), Gaussian(1.0, 4.0), 1e-3),
    groups=Groups((LIGHT, RARE)),
)
CAREFUL, FEW = (
    Group("careful", share=0.25, noise_multiplier=8.0),
    Group("few", clients=(1, 2), noise_multiplier=6.0),
)
LOCAL = Plan(
    *("local", "client", "replace-one", 12, 10, AllSampling(), Gaussian(1.0, 4.0), 1e-3, 10, "client"),
    groups=Groups((CAREFUL, FEW)),
)
CLIENTS = np.arange(12)


def raw(norm: float = 7.0, dimension: int = 50) -> torch.Tensor:
    rows = np.random.default_rng(3).standard_normal((12, dimension)).astype(np.float32)
    return torch.from_numpy(norm * rows / np.linalg.norm(rows, axis=1, keepdims=True))


def private(plan: Plan, updates: torch.Tensor, observe: str = "each", round: int = 0) -> np.ndarray:
    return privatise(Stack(updates), CLIENTS, plan, Streams(5), round=round, observe=observe)[0]


def with_group(plan: Plan, place: int, **changes: object) -> Plan:
    groups = [*plan.groups.groups]
    groups[place] = replace(groups[place], **changes)
    return replace(plan, groups=Groups(tuple(groups)))


def test_a_weight_multiplies_what_was_clipped() -> None:
    """An update of 7 C has norm w C; weighted before clipping, 7 w C > C would have been clipped to C."""
    rows = private(CENTRAL, raw())
    norms = np.linalg.norm(rows, axis=1)
    weights = CENTRAL.weights_of(CLIENTS)
    assert sorted(weights.tolist()) == [0.25] * 3 + [1.0] * 9
    assert norms == pytest.approx(weights, rel=1e-6)
    assert (norms <= weights).all()


@pytest.mark.parametrize("joined", [False, True])
def test_the_weighted_sum_is_that_of_the_weighted_updates(joined: bool) -> None:
    updates = raw()
    rows = private(CENTRAL, updates)
    given = Joined([Stack(updates[:5]), Stack(updates[5:])], [5, 7]) if joined else Stack(updates)
    total, broken = privatise(given, CLIENTS, CENTRAL, Streams(5), round=0, observe="sum")
    assert total == pytest.approx(rows.sum(axis=0), rel=1e-12, abs=1e-12)
    assert not broken.any()


def test_one_client_moves_a_sum_by_the_sensitivity_of_its_group() -> None:
    """Exactly, with the rounding of a sum whose other parts are four times as long."""
    updates = raw()
    before = private(CENTRAL, updates, "sum")
    for client, weight in zip(CLIENTS, CENTRAL.weights_of(CLIENTS), strict=True):
        for changed, most in ((-updates[client], 2.0), (torch.zeros(50), 1.0)):
            after = private(
                CENTRAL, torch.where((torch.arange(12) == client)[:, None], changed, updates), "sum"
            )
            assert 0.999 * most * weight < np.linalg.norm(after - before) <= most * weight


def test_a_broken_update_is_found_in_its_place_and_counts_as_zero() -> None:
    updates = raw()
    light = int(np.flatnonzero(CENTRAL.weights_of(CLIENTS) < 1)[1])
    updates[light, 0] = torch.nan
    total, broken = privatise(Stack(updates), CLIENTS, CENTRAL, Streams(5), round=0, observe="sum")
    assert np.flatnonzero(broken).tolist() == [light]
    assert np.isfinite(total).all()


def test_settings_of_another_group_change_no_bit() -> None:
    first, place = private(CENTRAL, raw()), members(CENTRAL.groups, 12)
    other = private(with_group(CENTRAL, 0, weight=0.7), raw())
    assert np.flatnonzero((first != other).any(axis=1)).tolist() == np.flatnonzero(place == 0).tolist()
    # Before its weight, a client's update is the same whatever its own group has, where clipping is the same.
    lightest = with_group(CENTRAL, 0, weight=0.5)
    halves = private(lightest, 0.01 * raw())[place == 0]
    assert np.array_equal(halves, 2 * private(CENTRAL, 0.01 * raw())[place == 0])
    noisy = private(LOCAL, raw())
    less = private(with_group(LOCAL, 0, noise_multiplier=5.0), raw())
    changed = np.flatnonzero((noisy != less).any(axis=1))
    assert changed.tolist() == np.flatnonzero(members(LOCAL.groups, 12) == 0).tolist()
    alone = private(LOCAL.of_group("few"), raw())  # a run with this group alone
    assert np.array_equal(noisy[[1, 2]], alone[[1, 2]])


@pytest.mark.parametrize("draw", ["client", "sum"])
def test_each_client_adds_the_noise_of_its_group(draw: str) -> None:
    """Chi-square of 12 x 2,000 normalised coordinates, and of their sum (false alarms below 1e-3 each)."""
    plan, zeros = replace(LOCAL, noise_draw=draw), torch.zeros((12, 2000))
    deviations = plan.groups.values("noise_multiplier", 4.0, 12)
    assert sorted(deviations.tolist()) == [4.0] * 7 + [6.0] * 2 + [8.0] * 3
    if draw == "sum":
        noise = sum_noise(2000, CLIENTS, plan, Streams(5), round=0)
        assert two_sided(noise, np.sqrt((deviations**2).sum())) > 1e-3
        half = sum_noise(2000, CLIENTS[:3], plan, Streams(5), round=0)
        assert two_sided(half, np.sqrt((deviations[:3] ** 2).sum())) > 1e-3
        return
    for row, deviation in zip(private(plan, zeros), deviations, strict=True):
        assert two_sided(row, deviation) > 1e-3


def two_sided(noise: np.ndarray, deviation: float) -> float:
    statistic = float((np.asarray(noise) ** 2).sum() / deviation**2)
    freedom = len(noise)
    return 2 * min(stats.chi2.cdf(statistic, freedom), stats.chi2.sf(statistic, freedom))


def test_a_node_answers_by_its_own_plan_alone(make_scenario) -> None:
    """A server that would give a group another weight, rate or noise, or none, gets no answer."""
    for trust, key, values in (
        ("central", "weight", (0.5, 1.0)),
        ("local", "noise_multiplier", (5.0, 4.0)),
    ):
        group = f"privacy.groups.own={{share=0.25, {key}={values[0]}}}"
        fleet = Fleet.of(make_scenario(f"privacy.trust={trust}", group))
        weights = flat_weights(fleet.model.build(3))
        asked = TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, "each")
        sent = TrainRequest.of(*asked.parts())  # as it is on the wire
        assert answer(fleet, None, sent)[0].updates.shape[0] == 12
        for changed in (with_group(fleet.plan, 0, **{key: values[1]}), replace(fleet.plan, groups=None)):
            with pytest.raises(Refusal, match="groups: requested"):
                answer(fleet, None, replace(asked, plan=changed))


def test_local_noise_in_pieces_makes_the_mechanisms_of_groups_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of a large model is one client: a plan of each group for each would take longer than noise."""
    whole, made = private(LOCAL, raw()), []
    with_noise = Gaussian.with_noise
    monkeypatch.setattr("clients.privacy._AT_ONCE", 2 * 50)
    monkeypatch.setattr(Plan, "of_group", None)
    monkeypatch.setattr(Gaussian, "with_noise", lambda *given: made.append(given) or with_noise(*given))
    assert np.array_equal(private(LOCAL, raw()), whole)
    assert [noise for _, noise in made] == [8.0, 6.0]
