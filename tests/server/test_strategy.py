"""Rounds over the real ClientApp and grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array, Message
from scipy import stats

from fedprivacy.errors import RunError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.sampling.cohorts import FixedSampling
from server.adversary import Interposed
from server.hosts import deal_hosts

NOBODY = "sampling={name='poisson', rate=1e-9}"


class Recorder:
    """A curious server: it reads and changes nothing."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.seen: list[Message] = []

    def act(self, request: Message) -> Message:
        self.sent.append(request)
        return request

    def observe(self, reply: Message) -> Message:
        self.seen.append(reply)
        return reply


def test_the_same_seed_gives_the_same_bits_and_another_does_not(make_scenario, trial) -> None:
    runs = [trial(make_scenario(f"seed={seed}")).play() for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("trust", ["central", "local"])
def test_observing_each_update_instead_of_sums_does_not_change_the_model(make_scenario, trial, trust) -> None:
    base = [f"privacy.trust={trust}"]
    summed = trial(make_scenario(*base)).play()
    each = trial(make_scenario(*base, "federation.observe=each")).play()
    # Sums are reckoned without forming single updates, where nobody sees them.
    assert np.allclose(summed, each, rtol=0, atol=1e-6)


def test_the_number_of_hosts_does_not_change_who_is_trained(make_scenario, trial) -> None:
    # Other chunks, so another order of summation; the same clients, noise and model up to rounding.
    one, three = (trial(make_scenario(f"federation.hosts={hosts}")).play() for hosts in (1, 3))
    assert np.allclose(one, three, atol=1e-12)


def test_an_empty_cohort_is_noised_all_the_same(make_scenario, trial) -> None:
    played = trial(make_scenario(NOBODY, "server.learning_rate=1e-9", "server.rounds=1"))
    cohort, total = played.federation.round(0)
    assert len(cohort) == total.answered == 0
    assert played.federation.weights.all()


def test_the_denominator_is_the_expected_cohort_and_not_the_realised_one(make_scenario, trial) -> None:
    asked = make_scenario("sampling={name='poisson', rate=0.5}", "privacy.noise_multiplier=1e-4")
    played = trial(asked)
    cohort, total = played.federation.round(0)
    assert len(cohort) != 6
    assert np.allclose(played.federation.weights, total.updates / 6.0, atol=1e-3)


def test_the_noise_in_the_model_is_the_noise_of_the_plan(make_scenario, trial) -> None:
    """Through the real apps: halve the noise anywhere and this fails. False alarms below 1e-6."""
    for trust, deviation in (("central", 2.0), ("local", 2.0 * np.sqrt(12))):
        draws = []
        for seed in range(10):
            base = [f"privacy.trust={trust}", f"seed={seed}", "server.rounds=1", "data.features=40"]
            quiet = trial(make_scenario(*base, "privacy.noise_multiplier=1e-4")).play()
            loud = trial(make_scenario(*base)).play()
            draws.append((loud - quiet) * 12)
        assert stats.kstest(np.concatenate(draws), "norm", args=(0, deviation)).pvalue > 1e-6


def test_a_client_that_fails_is_counted_and_the_round_goes_on(make_scenario, trial, make_people) -> None:
    rng = np.random.default_rng(0)
    people = make_people(rng.standard_normal((12, 4)), np.array([0, 1] * 5 + [0, 7]))
    played = trial(make_scenario(), people)
    _, total = played.federation.round(0)
    assert (total.answered, total.failed) == (11, 1)
    assert "client 11" in total.first_failure


def test_all_clients_failing_ends_the_run_with_the_first_error(make_scenario, trial, make_people) -> None:
    people = make_people(np.zeros((12, 4)), np.full(12, 9))
    with pytest.raises(RunError, match=r"all 12 clients failed. First: client 0"):
        trial(make_scenario(), people).federation.round(0)


def test_updates_that_are_not_finite_are_zeroed_and_counted(make_scenario, trial, make_people) -> None:
    x = np.ones((12, 4))
    x[3] = np.inf
    played = trial(make_scenario(), make_people(x, np.zeros(12)))
    _, total = played.federation.round(0)
    assert (total.answered, total.zeroed) == (12, 1)
    assert np.isfinite(played.federation.weights).all()


def test_a_server_that_asks_for_another_plan_gets_refusals(make_scenario, trial) -> None:
    asked = make_scenario()
    weaker = replace(plan_of(asked), mechanism=Gaussian(100.0, 0.0))
    with pytest.raises(RunError, match="clipping_norm"):
        trial(asked, server_plan=weaker).federation.round(0)


def test_spent_clients_are_counted_as_refusals(make_scenario, trial) -> None:
    asked = make_scenario("privacy.trust=local", "privacy.max_participations=1", "server.rounds=3")
    played = trial(asked)
    played.federation.round(0)
    played.ledger.participations[:] = 0  # a server that forgets what it asked for
    _, total = played.federation.round(1)
    assert (total.answered, total.refused, total.failed) == (0, 12, 0)


def test_clients_answer_no_more_often_than_their_noise_was_made_for(make_scenario, trial) -> None:
    """A cap above the rounds is not charged for, so a server that goes on asking must get nothing."""
    asked = make_scenario("privacy.trust=local", "privacy.max_participations=50", "server.rounds=2")
    played = trial(asked)
    for number in range(2):
        assert played.federation.round(number)[1].answered == 12
    played.ledger.participations[:] = 0
    _, total = played.federation.round(2)
    assert (total.answered, total.refused) == (0, 12)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_played_plan_has_cost_what_the_plan_says(make_scenario, trial, trust: str) -> None:
    """Every round is charged to every observer: a round left out of the ledger would be a false claim."""
    played = trial(make_scenario(f"privacy.trust={trust}"))
    played.play()
    spent = played.fleet.plan.spent().epsilon
    found = {g.observer: g for g in guarantees(played.ledger.to_json())}
    assert found["participant"].epsilon == pytest.approx(spent)
    assert found["participant"].rounds == 3
    if trust == "local":
        assert found["server"].epsilon == pytest.approx(spent)


def test_messages_are_charged_before_the_first_is_answered(make_scenario, trial) -> None:
    class Breaker(Recorder):
        def observe(self, reply: Message) -> Message:
            if reply.metadata.message_type == "train":
                raise KeyboardInterrupt
            return reply

    played = trial(make_scenario("privacy.trust=local"), wrap=lambda grid: Interposed(grid, Breaker()))
    with pytest.raises(KeyboardInterrupt):
        played.federation.round(0)
    found = {g.observer: g.epsilon for g in guarantees(played.ledger.to_json())}
    assert found["server"] > 0


def test_under_local_trust_a_node_never_has_two_messages_under_way(make_scenario, trial) -> None:
    class Counter(Recorder):
        under_way = most = 0

        def act(self, request: Message) -> Message:
            if request.metadata.message_type == "train":
                self.under_way += 1
                self.most = max(self.most, self.under_way)
            return request

        def observe(self, reply: Message) -> Message:
            if reply.metadata.message_type == "train":
                self.under_way -= 1
            return reply

    class Eager(Interposed):
        """Takes all messages of a call before the first is answered, as Flower's own grids do."""

        def send_and_receive(self, messages, *, timeout=None):
            sent = [self._adversary.act(message) for message in messages]
            for reply in self._grid.send_and_receive(sent, timeout=timeout):
                yield self._adversary.observe(reply)

    for trust, most in (("local", 1), ("central", 3)):
        counter = Counter()
        trial(make_scenario(f"privacy.trust={trust}"), wrap=lambda grid, c=counter: Eager(grid, c)).play()
        assert counter.most == most


def test_a_node_that_answers_for_clients_it_was_not_asked_for_fails(make_scenario, trial) -> None:
    def lie(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train":
            named = reply.content["arrays"]["clients"].numpy()
            reply.content["arrays"]["clients"] = Array(named + 100)
        return reply

    with pytest.raises(RunError, match="not requested"):
        trial(make_scenario(), mods=[lie]).federation.round(0)


def test_a_curious_server_sees_every_message_and_changes_nothing(make_scenario, trial) -> None:
    spy = Recorder()
    asked = make_scenario("federation.observe=each")
    spied = trial(asked, wrap=lambda grid: Interposed(grid, spy)).play()
    assert np.array_equal(spied, trial(asked).play())
    replies = [message for message in spy.seen if message.metadata.message_type == "train"]
    seen = [message.content["arrays"]["updates"].numpy() for message in replies]
    assert sum(len(stack) for stack in seen) == 3 * 12


def test_a_malicious_server_may_send_what_it_likes_to_one_chunk(make_scenario, trial) -> None:
    class Poisoner(Recorder):
        def act(self, request: Message) -> Message:
            if request.metadata.message_type == "train" and request.metadata.group_id.endswith("/1"):
                weights = request.content["arrays"]["weights"].numpy()
                request.content["arrays"]["weights"] = Array(weights + 1)
            return super().act(request)

    asked = make_scenario()
    poisoned = trial(asked, wrap=lambda grid: Interposed(grid, Poisoner())).play()
    assert not np.array_equal(poisoned, trial(asked).play())


def test_a_host_without_a_node_ends_the_run(make_scenario, trial) -> None:
    played = trial(make_scenario())
    with pytest.raises(RunError, match=r"no node serves the logical hosts \[1\]"):
        deal_hosts(played.grid, 2, timeout=0)


def test_fixed_size_cohorts(make_scenario, trial) -> None:
    played = trial(make_scenario("sampling={name='fixed', cohort=5}"))
    assert isinstance(played.fleet.plan.sampler, FixedSampling)
    assert {len(played.federation.round(number)[0]) for number in range(3)} == {5}
