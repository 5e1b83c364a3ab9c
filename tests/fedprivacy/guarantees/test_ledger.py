from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.guarantees.statement import Guarantee, guarantees, printed
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling

CENTRAL = Plan(
    "central", "client", "replace-one", 1000, 100, PoissonSampling(0.1), Gaussian(1.0, 3.9828), 1e-5
)
LOCAL = Plan(
    "local", "client", "replace-one", 100, 10, AllSampling(), Gaussian(1.0, 12.6), 1e-3, 10, "client"
)
SHARES = Plan(
    "distributed",
    "client",
    "replace-one",
    100,
    10,
    AllSampling(),
    Skellam(1.0, 2.0, 300, 18, 100, 70, 5),
    1e-3,
    10,
)
EVERYBODY = np.arange(100)


def by_observer(ledger: Ledger) -> dict[str, Guarantee]:
    stored = json.loads(json.dumps(ledger.to_json()))
    return {guarantee.observer: guarantee for guarantee in guarantees(stored)}


def played(plan: Plan, rounds: int, cohort: np.ndarray = EVERYBODY, missing: int = 0) -> Ledger:
    ledger = Ledger(plan)
    for _ in range(rounds):
        ledger.request(cohort)
        ledger.release(cohort, len(cohort) - missing)
    return ledger


def test_central_protects_from_participants_and_outsiders_but_not_from_the_server() -> None:
    found = by_observer(played(CENTRAL, 100))
    assert found["server"].epsilon is None
    assert "trusted" in found["server"].words
    for observer in ("participant", "outsider"):
        assert found[observer].epsilon == pytest.approx(2.0, rel=1e-3)
        assert found[observer].accountant == "PLD"
        assert any("cohort" in assumption for assumption in found[observer].assumptions)


def test_the_ledger_counts_what_happened_not_what_was_planned() -> None:
    assert by_observer(played(CENTRAL, 0))["outsider"].epsilon == 0
    assert by_observer(played(CENTRAL, 10))["outsider"].epsilon < 0.8
    assert by_observer(played(CENTRAL, 10))["outsider"].rounds == 10


def test_local_protects_from_the_server_without_amplification() -> None:
    sampled = replace(LOCAL, sampler=PoissonSampling(0.01))
    for plan in (LOCAL, sampled):
        found = by_observer(played(plan, 10))
        assert found["server"].epsilon == pytest.approx(replace(LOCAL).spent().epsilon)
        assert not any("cohort stays secret" in a for g in found.values() for a in g.assumptions)


def test_local_is_charged_by_the_client_that_took_part_most() -> None:
    ledger = Ledger(LOCAL)
    ledger.request(np.array([0, 1]))
    ledger.request(np.array([1, 2]))
    once, twice = (replace(LOCAL, max_participations=k).spent().epsilon for k in (1, 2))
    assert once < by_observer(ledger)["server"].epsilon == pytest.approx(twice)
    assert ledger.to_json()["participations"] == {"0": 97, "1": 2, "2": 1}
    assert "at most 2 answers of one client" in by_observer(ledger)["server"].words


def test_an_outsider_of_local_noise_sees_the_noise_of_all_and_a_participant_is_claimed_no_more_than_the_server() -> (
    None
):
    found = by_observer(played(LOCAL, 10))
    summed = replace(LOCAL, mechanism=Gaussian(1.0, 12.6 * np.sqrt(100))).spent().epsilon
    assert found["outsider"].epsilon == pytest.approx(summed)
    assert found["participant"].epsilon == found["server"].epsilon > found["outsider"].epsilon


def test_once_a_client_did_not_answer_the_summed_noise_is_no_longer_claimed() -> None:
    # Who fails may depend on its data, so the number of noise shares is no longer a known one.
    found = by_observer(played(LOCAL, 10, missing=1))
    assert found["outsider"].epsilon == found["server"].epsilon


def test_an_asked_client_is_charged_even_if_it_did_not_answer() -> None:
    assert by_observer(played(LOCAL, 5, missing=100))["server"].epsilon > 0


@pytest.mark.parametrize(
    "plan",
    [
        replace(CENTRAL, trust="none", mechanism=None, delta=None),
        replace(CENTRAL, trust="none", mechanism=ClipOnly(1.0), delta=None),
        replace(CENTRAL, mechanism=Gaussian(1.0, 0.0)),
    ],
)
def test_without_noise_there_is_no_guarantee_for_anybody(plan: Plan) -> None:
    found = by_observer(played(plan, 5))
    assert {guarantee.epsilon for guarantee in found.values()} == {None}
    assert all("No guarantee" in guarantee.words for guarantee in found.values())


def test_words_name_everything_that_belongs_to_an_epsilon() -> None:
    words = by_observer(played(CENTRAL, 100))["participant"].words
    for part in (
        "epsilon",
        "delta = 1e-05",
        "client",
        "replace-one",
        "rate 0.1",
        "100 rounds",
        "PLD",
        "provided",
    ):
        assert part in words


def test_state_restores_to_the_same_claims() -> None:
    ledger = played(LOCAL, 4)
    arrays, facts = ledger.state()
    again = Ledger(LOCAL)
    again.restore(arrays, json.loads(json.dumps(facts)))
    assert again.to_json() == ledger.to_json()


def test_eligible_are_those_with_participations_left() -> None:
    ledger = Ledger(replace(LOCAL, max_participations=1))
    ledger.request(np.arange(98))
    assert ledger.eligible().tolist() == [98, 99]
    assert Ledger(CENTRAL).eligible() is None


def test_a_damaged_ledger_is_an_input_error() -> None:
    stored = Ledger(CENTRAL).to_json()
    del stored["claims"][1]["observer"]
    with pytest.raises(InputError, match="damaged"):
        guarantees(stored)


def test_the_summed_noise_is_that_of_the_round_with_the_fewest_answers() -> None:
    ledger = Ledger(LOCAL)
    for size in (100, 40, 100):
        ledger.request(np.arange(size))
        ledger.release(np.arange(size), size)
    summed = replace(LOCAL, mechanism=Gaussian(1.0, 12.6 * np.sqrt(40)), max_participations=3).spent().epsilon
    assert by_observer(ledger)["outsider"].epsilon == pytest.approx(summed)


def test_every_guarantee_states_what_it_rests_on() -> None:
    assumed = {
        (trust, observer): " ".join(guarantee.assumptions)
        for trust, ledger in (("central", played(CENTRAL, 2)), ("local", played(LOCAL, 2)))
        for observer, guarantee in by_observer(ledger).items()
        if guarantee.epsilon is not None
    }
    assert len(assumed) == 5
    for (trust, _), text in assumed.items():
        assert "simulation-grade randomness" in text
        assert "operator-only" in text
        assert ("server is honest" in text) == (trust == "central")


def test_a_printed_epsilon_is_rounded_up_and_never_down() -> None:
    assert [printed(value) for value in (2.00009, 1.99978, 0.12341, 2980.958)] == [
        "2.001",
        "2",
        "0.1235",
        "2,981",
    ]


@pytest.mark.parametrize("plan", [CENTRAL, replace(LOCAL, max_participations=4)])
def test_a_run_under_way_is_charged_for_its_whole_plan(plan: Plan) -> None:
    """A process that is killed writes no more: what its record says must hold whenever that happens."""
    before, whole = by_observer(Ledger(plan).in_advance()), by_observer(played(plan, 4))
    for observer, guarantee in before.items():
        if guarantee.epsilon is not None:
            assert guarantee.epsilon == pytest.approx(plan.spent().epsilon)
            assert guarantee.epsilon >= whole[observer].epsilon
            assert "charged in advance" in guarantee.words


@pytest.mark.parametrize("plan", [CENTRAL, LOCAL])
def test_accuracy_on_records_of_clients_is_outside_every_guarantee(plan: Plan) -> None:
    ledger = Ledger(plan, tested=True)
    for stated in (ledger, ledger.in_advance()):
        for guarantee in by_observer(stated).values():
            assert guarantee.epsilon is None or "accuracy and loss are not shown" in guarantee.words


def test_what_is_charged_in_advance_rests_on_what_the_ledger_does() -> None:
    ledger = Ledger(LOCAL, held=False)
    for guarantee in by_observer(ledger.in_advance(broken_off=True)).values():
        said = " ".join(guarantee.assumptions)
        assert "the submitter of the run is honest" in said
        assert "broke off" in said


def test_a_ledger_covers_another_that_charged_no_more() -> None:
    for plan in (CENTRAL, LOCAL):
        three, four = played(plan, 3), played(plan, 4)
        assert four.covers(three.to_json())
        assert three.covers(three.to_json())
        assert not three.covers(four.to_json())
    asked = played(LOCAL, 3)
    asked.request(EVERYBODY[:1])  # and broken off
    assert not played(LOCAL, 3).covers(asked.to_json())


def test_a_round_that_is_played_again_without_its_fault_does_not_cover_the_noise_that_was_missing() -> None:
    whole, short = played(LOCAL, 3), played(LOCAL, 2)
    short.request(EVERYBODY)
    short.release(EVERYBODY, len(EVERYBODY) - 1)
    assert not whole.covers(short.to_json())
    assert short.covers(whole.to_json())


def test_clients_that_were_handed_their_plan_do_not_enforce_it() -> None:
    ledger = Ledger(LOCAL, held=False)
    ledger.request(EVERYBODY)
    for guarantee in by_observer(ledger).values():
        assert any("the submitter of the run is honest" in text for text in guarantee.assumptions)
        assert not any("whatever the server asks" in text for text in guarantee.assumptions)


def test_the_server_under_local_trust_is_claimed_nothing_on_the_word_of_its_own_silence() -> None:
    """What reaches the server is noised; what it must not be shown never reaches it by a message."""
    found = by_observer(played(LOCAL, 2))["server"]
    assert not any("counts of zeroed updates" in text for text in found.assumptions)


def test_more_noise_than_accountants_take_is_claimed_as_the_most_that_they_take() -> None:
    plan = replace(LOCAL, mechanism=Gaussian(1.0, 5e6), population=1000)
    found = by_observer(played(plan, 1, np.arange(1000)))
    assert found["outsider"].epsilon <= found["server"].epsilon


def test_shares_protect_from_each_observer_by_the_honest_ones_and_name_the_sum() -> None:
    found = by_observer(played(SHARES, 10, missing=30))
    spent = {name: SHARES.shares.shares_against(name) for name in found}
    assert spent == {"server": 65, "participant": 65, "outsider": 65}
    for guarantee in found.values():
        assert guarantee.epsilon == pytest.approx(SHARES.spent().epsilon)
        texts = " ".join(guarantee.assumptions)
        assert guarantee.assumptions[0] == TrainingAssumption.IDEAL_SUM
        assert "at least 70 clients; the observer knows the noise of at most 5 of them" in texts
        assert TrainingAssumption.DROPOUTS_BLIND in guarantee.assumptions
        assert TrainingAssumption.SECRET_COHORT not in guarantee.assumptions
    assert "itself among them" in " ".join(found["participant"].assumptions)


def test_a_participant_without_other_colluders_knows_its_own_share() -> None:
    alone = replace(SHARES, mechanism=replace(SHARES.mechanism, colluders=0))
    found = by_observer(played(alone, 10))
    assert found["server"].epsilon == found["outsider"].epsilon < found["participant"].epsilon
    one = replace(alone, mechanism=replace(alone.mechanism, min_survivors=1))
    found = by_observer(played(one, 10))
    assert found["participant"].epsilon is None
    assert found["participant"].assumptions == (str(TrainingAssumption.SHARE_KNOWN),)
    assert found["server"].epsilon is not None


def test_shares_are_charged_for_every_request_of_the_client_that_was_requested_most() -> None:
    ledger = Ledger(SHARES)
    ledger.request(np.array([0, 1]))  # too few: the round releases nothing, and stays charged
    ledger.release(np.array([0, 1]), 2)
    ledger.request(np.array([1, 2]))
    twice = replace(SHARES, max_participations=2).spent().epsilon
    assert by_observer(ledger)["server"].epsilon == pytest.approx(twice)
    assert ledger.to_json()["participations"] == {"0": 97, "1": 2, "2": 1}
    assert ledger.to_json()["least_shares"] is None
    assert by_observer(ledger.in_advance())["server"].epsilon == pytest.approx(SHARES.spent().epsilon)
    reads = Ledger(SHARES, stated=Stated(reads=True))
    assert by_observer(reads)["server"].epsilon is None


def test_a_server_whose_own_process_adds_up_the_messages_gets_no_guarantee() -> None:
    remote = Ledger(SHARES, held=False)
    remote.request(EVERYBODY)
    found = by_observer(remote)
    assert found["server"].epsilon is None
    assert found["server"].assumptions == (str(TrainingAssumption.SUM_AT_SERVER),)
    assert "the server, which sees each message" in found["server"].words
    assert found["outsider"].epsilon is not None
    masked = Ledger(SHARES, held=False, stated=Stated(pinned=True, noise="system"))
    masked.request(EVERYBODY)
    assert by_observer(masked)["server"].epsilon is not None
