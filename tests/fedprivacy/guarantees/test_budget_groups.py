"""The ledger of groups with budgets that differ: for each what a run with this group alone has."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation

from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.charge import charged
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.so_far import epsilons_after, rounds_within
from fedprivacy.guarantees.statement import group_guarantees, guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling
from fedprivacy.sampling.group_limits import OTHERS
from fedprivacy.sampling.groups import Group, Groups, members

GROUPS = Groups((Group("light", share=0.2, weight=0.5), Group("rare", clients=(1, 2), rate=0.1)))
CENTRAL = Plan(
    *("central", "client", "replace-one", 40, 10, PoissonSampling(0.5), Gaussian(1.0, 4.0), 1e-3),
    groups=GROUPS,
)
NOISY = Groups(
    (Group("careful", share=0.2, noise_multiplier=8.0), Group("few", clients=(1, 2), noise_multiplier=6.0))
)
LOCAL = Plan(
    *("local", "client", "replace-one", 40, 10, AllSampling(), Gaussian(1.0, 4.0), 1e-3, 10, "client"),
    groups=NOISY,
)


def finished(plan: Plan, draw: bool = False) -> Ledger:
    ledger = Ledger(plan)
    for round in range(plan.rounds):
        stream = np.random.default_rng(round)
        cohort = PoissonSampling(0.5).draw(plan.population, stream) if draw else np.arange(plan.population)
        ledger.request(cohort)
        ledger.release(cohort, len(cohort))
    return ledger


def events(claims: list[dict], observer: str) -> list[dict]:
    return [claim["event"] for claim in claims if claim["observer"] == observer]


@pytest.mark.parametrize("plan", [CENTRAL, LOCAL], ids=["central", "local"])
@pytest.mark.parametrize("observer", ["server", "participant"])
def test_each_group_has_the_events_of_a_run_whose_only_group_it_is(plan: Plan, observer: str) -> None:
    stored = finished(plan).to_json()
    assert [group["name"] for group in stored["groups"]] == list(plan.groups.names)
    for group in stored["groups"]:
        alone = finished(plan.of_group(group["name"])).to_json()
        assert events(group["claims"], observer) == events(alone["claims"], observer)
        for claim in group["claims"]:
            states = TrainingAssumption.GROUPS_PUBLIC.among(claim["assumptions"])
            assert states == (claim["event"] is not None)
    # Of all clients the ledger states what the others have.
    others = stored["groups"][-1]
    assert others["name"] == OTHERS
    assert events(stored["claims"], observer) == events(others["claims"], observer)


def test_what_is_stated_of_all_clients_bounds_each_group() -> None:
    for plan in (CENTRAL, LOCAL):
        stored = finished(plan).to_json()
        whole = {each.observer: each.epsilon for each in guarantees(stored)}
        for listed in group_guarantees(stored).values():
            for each in listed:
                if whole[each.observer] is not None:
                    assert each.epsilon <= whole[each.observer] * (1 + 1e-9)


def test_an_outsider_is_claimed_the_noise_of_all_who_answered() -> None:
    """Independent oracle: one sum a round, with the client's own noise and the least of the 39 others."""
    stored = finished(LOCAL).to_json()
    for name, own in (("careful", 8.0), ("few", 6.0), (OTHERS, 4.0)):
        together = np.sqrt(own**2 + 39 * 4.0**2) / 2  # an update that is replaced moves the sum by 2C
        event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(together), 10)
        oracle = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event).get_epsilon(1e-3)
        [stated] = [g for g in group_guarantees(stored)[name] if g.observer == "outsider"]
        assert stated.epsilon == pytest.approx(oracle, rel=1e-3)
        # In truth there is more noise: some of the others have more than the least.
        actual = np.sqrt(
            own**2 + (8 - (own == 8.0)) * 64 + (2 - (own == 6.0)) * 36 + (30 - (own == 4.0)) * 16
        )
        assert 2 * together <= actual


def test_a_sum_with_a_missing_share_claims_no_noise_of_others() -> None:
    ledger = Ledger(LOCAL)
    ledger.request(np.arange(40))
    ledger.release(np.arange(40), 39)
    for group in ledger.to_json()["groups"]:
        assert len(events(group["claims"], "outsider")) == 1


def test_a_group_is_charged_for_its_own_client_that_answered_most() -> None:
    ledger = finished(replace(LOCAL, sampler=PoissonSampling(0.5)), draw=True)
    places = members(NOISY, 40)
    for place, group in enumerate(ledger.to_json()["groups"]):
        here = ledger.participations[places == place]
        assert events(group["claims"], "server")[0]["count"] == here.max()
        assert group["participations"] == {
            str(count): int((here == count).sum()) for count in np.unique(here)
        }


def test_a_run_that_stopped_is_charged_its_plan_in_each_group() -> None:
    ledger = Ledger(LOCAL)
    ledger.request(np.arange(40))
    ledger.release(np.arange(40), 40)
    stated = charged(ledger, "interrupted", rounds=1, planned=10, early_stopping=False)
    for group, done in zip(stated["groups"], stated["completed"]["groups"], strict=True):
        assert events(group["claims"], "server")[0]["count"] == 10
        assert group["participations"] == {"10": group["clients"]}
        assert events(done["claims"], "server")[0]["count"] == 1
        assert TrainingAssumption.STOPPED_BLINDLY.among(done["claims"][0]["assumptions"])
        assert done["sampling"].startswith(f"group {group['name']} of {group['clients']} clients")


def test_the_epsilon_so_far_is_the_largest_over_groups() -> None:
    for plan in (CENTRAL, LOCAL):
        so_far = epsilons_after(plan, 5)
        assert so_far == epsilons_after(replace(plan, groups=None), 5)
        for name in plan.groups.names:
            for observer, epsilon in epsilons_after(plan.of_group(name), 5).items():
                if epsilon is not None:
                    assert epsilon <= so_far[observer]
        limit = so_far["participant"]
        assert rounds_within(plan, limit) == 5


def test_a_damaged_ledger_of_groups_is_refused() -> None:
    stored = json.loads(json.dumps(finished(LOCAL).to_json()))
    del stored["groups"][0]["claims"]
    stored["groups"][0]["claims"] = [{}]
    with pytest.raises(InputError, match="the ledger is damaged"):
        group_guarantees(stored)
