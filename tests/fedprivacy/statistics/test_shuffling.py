"""Trust "shuffled": the claim of each observer, against exact laws and against the code that draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon as cost
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.accounting.shuffle import shuffled_epsilon
from fedprivacy.accounting.shuffled_event import ShuffledDpEvent
from fedprivacy.errors import InputError, ScenarioError, UnsupportedEvent
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.randomness.streams import Streams
from fedprivacy.statistics.ledger import ledger
from fedprivacy.statistics.plan import StatisticsPlan, plan_of
from fedprivacy.statistics.shuffling import message_epsilon, shuffled_event

NUMBERS = tuple(f"queries.seen.{setting}" for setting in ("kind=mean", "low=0", "high=1", "local=laplace"))
SHUFFLED = ("privacy.trust=shuffled", "privacy.delta=1e-6", "data.clients=5000")
TWO = """
name = "two"
seed = 1
[data]
name = "categories"
clients = 3000
shares = [1, 2, 3]
[queries.which]
kind = "histogram"
weight = 3.0
[queries.most]
kind = "most-common"
[privacy]
trust = "shuffled"
epsilon = 0.8
delta = 1e-6
"""


def claims(plan: StatisticsPlan, queries: int | None = None) -> dict:
    charged = len(plan.asks) if queries is None else queries
    return {each.observer: each for each in guarantees(ledger(plan, charged, held=True))}


def test_the_guarantee_states_that_answers_are_released_by_query(make_statistics) -> None:
    stated = claims(plan_of(make_statistics(*SHUFFLED)))["analyst"].assumptions
    assert any("to a query are released only if all clients answered it" in str(each) for each in stated)


@pytest.mark.parametrize("text", [None, TWO])
def test_each_observer_has_its_own_epsilon(make_statistics, text: str | None) -> None:
    scenario = make_statistics(*SHUFFLED) if text is None else make_statistics(text=text)
    plan = plan_of(scenario)
    stated, clients = claims(plan), plan.population
    assert list(stated) == ["server", "analyst", "participant", "outsider"]
    local = math.fsum(ask.mechanism.epsilon for ask in plan.asks)
    assert stated["analyst"].epsilon == stated["outsider"].epsilon == shuffled_epsilon(local, clients, 1e-6)
    assert stated["participant"].epsilon == shuffled_epsilon(local, clients - 1, 1e-6)
    assert stated["participant"].epsilon <= scenario.privacy.epsilon < 1.00001 * stated["participant"].epsilon
    assert stated["analyst"].epsilon < stated["participant"].epsilon
    assert 3 * scenario.privacy.epsilon < stated["server"].epsilon <= local * (1 + 1e-9)
    assert stated["analyst"].words.startswith(
        "Against the analyst behind the shuffler, who sees all messages"
    )
    assert "numerical clone bound" in stated["analyst"].words
    assert stated["server"].words.startswith("Against the shuffler, which sees each message with its sender")
    for observer, one in stated.items():
        assert ("the shuffler is honest" in one.words) == (observer != "server")
    assert "no other client's own randomness" in stated["participant"].words


def test_budgets_are_shared_by_weight_and_completed_queries_cost_less(make_statistics) -> None:
    plan = plan_of(make_statistics(text=TWO))
    first, second = (ask.mechanism.epsilon for ask in plan.asks)
    assert first == pytest.approx(3 * second)
    assert claims(plan, 1)["analyst"].epsilon == shuffled_epsilon(first, 3000, 1e-6)
    assert claims(plan, 0)["analyst"].epsilon == 0


def exact_delta(local: float, clients: int, epsilon: float) -> float:
    """The hockey-stick divergence of the number of ones, where all other clients answer zeros, both ways."""
    truth = 1 / (1 + math.exp(-local))
    ones = stats.binom.pmf(np.arange(clients), clients - 1, 1 - truth)
    laws = [np.append(ones * (1 - chance), 0) + np.append(0, ones * chance) for chance in (truth, 1 - truth)]
    return max(
        float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) for one, other in (laws, laws[::-1])
    )


@pytest.mark.parametrize(
    ("clients", "epsilon", "delta"), [(300, 1.0, 1e-4), (5000, 0.3, 1e-6), (5000, 2.0, 1e-6)]
)
def test_the_messages_of_the_plan_keep_its_claim_exactly(make_statistics, clients, epsilon, delta) -> None:
    """Shuffled bits are their number of ones, whose law is known."""
    keys = (f"data.clients={clients}", f"privacy.epsilon={epsilon}", f"privacy.delta={delta}")
    plan = plan_of(make_statistics("privacy.trust=shuffled", *keys))
    (ask,) = plan.asks
    assert isinstance(ask.mechanism, RandomizedResponse)
    assert exact_delta(ask.mechanism.epsilon, clients, epsilon) <= delta
    assert exact_delta(ask.mechanism.epsilon + 2.5, clients, epsilon) > delta  # the check has teeth


def empirical_epsilon(mechanism: RandomizedResponse, clients: int, delta: float) -> float:
    """The epsilon that drawn answers prove at 99.9 %: one client says yes, or no, and all others no."""
    trials, counts = 40_000, []
    for world in (1.0, 0.0):
        answers = np.zeros((trials, clients))
        answers[:, 0] = world
        stream = Streams(3).stream(f"audit/{world}")
        drawn = mechanism.draw_numbers(answers.ravel(), stream).reshape(trials, clients)
        counts.append(drawn.sum(axis=1))
    least = np.median(counts[0][: trials // 2])  # chosen by the first half, proved on the second
    first, second = (int((each[trials // 2 :] >= least).sum()) for each in counts)
    half = trials // 2
    low = stats.beta.ppf(0.0005, first, half - first + 1)
    high = stats.beta.ppf(0.9995, second + 1, half - second)
    return max(0.0, math.log((low - delta) / high))


def test_shuffled_answers_keep_the_claim_and_single_ones_break_it(make_statistics) -> None:
    plan = plan_of(
        make_statistics(
            "privacy.trust=shuffled", "data.clients=40", "privacy.epsilon=1", "privacy.delta=1e-3"
        )
    )
    (ask,) = plan.asks
    claimed = claims(plan)["analyst"].epsilon
    assert 0.1 < empirical_epsilon(ask.mechanism, 40, 1e-3) <= claimed
    assert empirical_epsilon(ask.mechanism, 1, 1e-3) > claimed  # what the shuffler sees


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("privacy.delta=0",), "A shuffler helps at a delta above 0 only"),
        (("privacy.adjacency=zero-out",), "answers of clients are protected under replace-one alone"),
        (("compare.trusts=['shuffled']", "privacy={trust='local', epsilon=1.0}"), "Set privacy.delta = 1e-6"),
        (("privacy.shuffled=true",), "shuffled"),
        (NUMBERS, r"queries\.seen\.local.* depends on their order"),
        (
            (*NUMBERS, "privacy.trust=local", "compare.trusts=['local', 'shuffled']"),
            r"queries\.seen\.local.* depends on their order",
        ),
    ],
)
def test_a_scenario_that_no_shuffler_helps_is_refused(make_statistics, keys, text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        make_statistics(*SHUFFLED, *keys)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("data.clients=10",), "10 clients are too few, a shuffler .* clients, a larger delta, a smaller"),
        (("data.clients=1",), "1 clients are too few"),
        (("privacy.epsilon=30",), r"privacy\.epsilon = 30\.0: must be above 0 and at most 25"),
        (("privacy.epsilon=1e-5", "data.clients=100"), r"privacy\.epsilon = 1e-05: too small"),
    ],
)  # fmt: skip
def test_a_plan_that_no_shuffler_helps_is_refused(make_statistics, keys, text: str) -> None:
    with pytest.raises(InputError, match=text):
        plan_of(make_statistics(*SHUFFLED, *keys))


def test_numbers_are_told_as_bits(make_statistics) -> None:
    keys = ("queries.seen.kind=mean", "queries.seen.low=0", "queries.seen.high=1")
    (ask,) = plan_of(make_statistics(*SHUFFLED, *keys)).asks
    assert isinstance(ask.mechanism, RandomizedResponse)


def test_approximate_messages_are_refused() -> None:
    with pytest.raises(UnsupportedEvent, match="for pure ones"):
        shuffled_event([PureDpEvent(1.0), dp.GaussianDpEvent(4.0)], 1000)


def test_out_of_the_range_of_the_bound_nothing_is_amplified() -> None:
    for local, clients in ((26.0, 10**6), (1e-4, 10**6), (2.0, 1)):
        event = shuffled_event([PureDpEvent(local)], clients)
        assert event == dp.ComposedDpEvent([PureDpEvent(local)])


def test_shares_of_a_message_never_add_up_to_more_than_the_target() -> None:
    for clients in (100, 10**4, 10**6):
        local = message_epsilon(0.7, clients, 1e-7)
        assert shuffled_epsilon(local * (1 + 1e-12), clients - 1, 1e-7) <= 0.7


def test_shuffled_messages_are_accounted_for_alone_and_as_local_ones_beside_others() -> None:
    event = ShuffledDpEvent(4.0, 10**5)
    assert from_json(to_json(event)) == event
    alone = cost(event, 1e-6, "replace-one")
    assert alone.accountant == "numerical clone bound"
    assert 0.1675 < alone.epsilon < 0.1728  # Feldman, McMillan and Talwar 2021, by Apple's implementation
    for other in ([event, event], [event, PureDpEvent(0.5)]):
        pure = [PureDpEvent(4.0) if each is event else each for each in other]
        ours, local = (cost(dp.ComposedDpEvent(parts), 1e-6, "replace-one") for parts in (other, pure))
        assert ours == local
    assert cost(event, 0.0, "replace-one").epsilon == 4.0
    with pytest.raises(UnsupportedEvent, match="use replace-one"):
        cost(event, 1e-6, "zero-out")
    for wrong in ({"local_epsilon": 30.0}, {"local_epsilon": 1e-5}, {"clients": 0}, {"clients": 1.5}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            from_json({**to_json(event), **wrong})
