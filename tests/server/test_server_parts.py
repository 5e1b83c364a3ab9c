from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from flwr.app import ConfigRecord, Error, Message, RecordDict
from scipy import stats

from fedprivacy.errors import RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling, FixedSampling, PoissonSampling, SeparatedSampling
from fedprivacy.scenario import AdamServer, MomentumServer, SgdServer
from scenarios.engines.embedded import EmbeddedGrid
from server.aggregation import by_turn
from server.optimizers import server_optimizer
from server.sampling import chunks, draw_cohort
from server.strategy import add_central_noise

CENTRAL = Plan("central", "client", "replace-one", 1000, 5, PoissonSampling(0.1), Gaussian(2.0, 3.0), 1e-5)
LOCAL = replace(CENTRAL, trust="local", max_participations=2, noise_draw="client")


def test_central_noise_is_the_plans_and_is_there_without_any_cohort() -> None:
    noise = add_central_noise(np.zeros(20_000), CENTRAL, Streams(1), round=0)
    assert stats.kstest(noise, "norm", args=(0, 6.0)).pvalue > 1e-6
    assert not np.array_equal(noise, add_central_noise(np.zeros(20_000), CENTRAL, Streams(1), round=1))


def test_correlated_noise_needs_that_of_past_rounds() -> None:
    separated = SeparatedSampling(4, 2)
    plan = replace(CENTRAL, sampler=separated, mechanism=BandedGaussian(2.0, 3.0, bands=2, rounds=5))
    with pytest.raises(RunError, match="the noise of past rounds is missing"):
        add_central_noise(np.zeros(9), plan, Streams(1), round=0)


def test_nobody_but_a_trusted_server_adds_central_noise() -> None:
    for plan in (LOCAL, replace(CENTRAL, trust="none", mechanism=None)):
        assert not add_central_noise(np.zeros(10), plan, Streams(1), round=0).any()


def test_every_round_draws_a_cohort_of_its_own() -> None:
    drawn = [draw_cohort(CENTRAL, Ledger(CENTRAL), Streams(1), number).tolist() for number in range(5)]
    assert len({tuple(cohort) for cohort in drawn}) == 5


@pytest.mark.parametrize("hosts", [1, 3])
def test_chunks_cover_the_cohort_in_order_and_never_cross_hosts(hosts: int) -> None:
    cohort = np.sort(Streams(1).stream("test").choice(1000, 137, replace=False))
    cut = list(chunks(cohort, hosts=hosts, size=10))
    assert np.array_equal(np.sort(np.concatenate([chunk.clients for chunk in cut])), cohort)
    assert all((chunk.clients % hosts == chunk.host).all() and len(chunk.clients) <= 10 for chunk in cut)
    assert [(c.host, c.number) for c in cut] == sorted((c.host, c.number) for c in cut)


def test_an_empty_cohort_has_no_chunks() -> None:
    assert list(chunks(np.arange(0), hosts=2, size=10)) == []


@pytest.mark.parametrize("sampler", [PoissonSampling(0.5), FixedSampling(400), AllSampling()])
def test_nobody_is_drawn_beyond_the_participation_cap(sampler) -> None:
    plan = replace(LOCAL, sampler=sampler, rounds=20)
    ledger = Ledger(plan)
    for number in range(20):
        cohort = draw_cohort(plan, ledger, Streams(1), number)
        ledger.request(cohort)
    assert ledger.participations.max() == 2


def test_replies_are_taken_in_turn_and_a_missing_one_does_not_stop_the_rest() -> None:
    EmbeddedGrid(lambda message, context: message, [{}])  # a Flower task identity, which messages need
    replies = []
    for number in (2, 0, 5, 1, 4):
        asked = Message(RecordDict({"c": ConfigRecord()}), 1, "train", group_id=f"7/{number}")
        replies.append(Message(Error(0, "x"), reply_to=asked))
    assert [number for number, _ in by_turn(iter(replies))] == [0, 1, 2, 4, 5]


def test_replies_stream_as_soon_as_it_is_their_turn() -> None:
    EmbeddedGrid(lambda message, context: message, [{}])
    taken = []

    def arriving():
        for number in range(3):
            taken.append(number)
            asked = Message(RecordDict({"c": ConfigRecord()}), 1, "train", group_id=f"7/{number}")
            yield Message(Error(0, "x"), reply_to=asked)

    stream = by_turn(arriving())
    next(stream)
    assert taken == [0]


def test_optimizers_follow_torchs_sgd_and_the_papers_adam() -> None:
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((6, 5))
    for options, momentum in (
        (SgdServer(rounds=1, learning_rate=0.3), 0.0),
        (MomentumServer(optimizer="momentum", rounds=1, learning_rate=0.3, momentum=0.9), 0.9),
    ):
        ours, optimizer = np.zeros(5), server_optimizer(options, 9, 5)
        theirs = torch.zeros(5, dtype=torch.float64, requires_grad=True)
        reference = torch.optim.SGD([theirs], lr=0.3, momentum=momentum)
        for number, update in enumerate(updates):
            ours = optimizer.step(ours, update, number)
            theirs.grad = -torch.from_numpy(update)
            reference.step()
        assert np.allclose(ours, theirs.detach().numpy())
    options = AdamServer(
        optimizer="adam", rounds=1, learning_rate=0.1, beta1=0.9, beta2=0.99, adaptivity=1e-2
    )
    weights = server_optimizer(options, 9, 1).step(np.zeros(1), np.ones(1), 0)
    # Reddi et al. 2021, algorithm 2: m = (1 - b1), v = b2 tau^2 + (1 - b2), x = lr m / (sqrt(v) + tau)
    assert weights == pytest.approx(0.1 * 0.1 / (np.sqrt(0.99 * 1e-4 + 0.01) + 0.01))
