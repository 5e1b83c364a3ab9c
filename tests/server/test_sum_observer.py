"""A server that sees the sum of a round alone, over the real ClientApp, the embedded grid and the secure sum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flwr.app import Message

from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Sight
from fedprivacy.messages.protocol import parts_of
from server.adversary import Interposed, SumObserver

VICTIM = 2
SHARES = "privacy={trust='distributed', clipping_norm=1.0, noise_multiplier=0.1, delta=1e-3}"


class Wire:
    """Writes down the replies' arrays, and which weights each message has."""

    def __init__(self) -> None:
        self.replies: list[dict[str, np.ndarray]] = []
        self.sent: list[tuple[list[int], np.ndarray]] = []

    def act(self, request: Message) -> Message:
        if request.metadata.message_type == "train":
            arrays, _ = parts_of(request)
            self.sent.append((arrays["clients"].tolist(), arrays["weights"].copy()))
        return request

    def observe(self, reply: Message) -> Message:
        if "arrays" in reply.content:
            self.replies.append(parts_of(reply)[0])
        return reply


class Observed:
    """A federation whose server is a `SumObserver`; its own clients answer with the same few numbers."""

    def __init__(self, trial, asked, **options) -> None:
        self.sights: list[Sight] = []
        self.requested: list[tuple[torch.Tensor, int]] = []
        self.wire = Wire()
        self.observer = SumObserver(
            victim=VICTIM, see=self.sights.append, references=self.references, **options
        )
        # The wire is what the grid hands over, nearer to it than the adversary.
        self.played = trial(asked, wrap=lambda grid: Interposed(Interposed(grid, self.wire), self.observer))

    def references(self, weights: torch.Tensor, most: int) -> torch.Tensor:
        self.requested.append((weights.clone(), most))
        return torch.full((4, len(weights)), 0.01)

    def round(self, number: int) -> bool:
        _, self.total = self.played.federation.round(number)
        return self.observer.close(self.total)


@pytest.mark.parametrize("trust", ["none", "central", "local", "distributed"])
def test_it_sees_the_sum_less_what_it_expects_of_the_others_and_changes_no_bit(
    make_scenario, trial, trust: str
) -> None:
    asked = make_scenario(SHARES if trust == "distributed" else f"privacy.trust={trust}")
    seen = Observed(trial, asked)
    before = seen.played.federation.model.copy()
    assert seen.round(0)
    [sight], [(weights, most)] = seen.sights, seen.requested
    assert np.array_equal(sight.sent.numpy(), before)
    assert np.array_equal(weights.numpy(), before)
    assert most == 4 * 12
    total = torch.from_numpy(seen.total.updates).float()
    assert torch.allclose(sight.update, total - 11 * 0.01, atol=1e-6)
    assert sight.others.shape == (4, len(before))
    assert sight.targets is None
    for number in range(1, asked.server.rounds):
        assert seen.round(number)
    assert np.array_equal(seen.played.federation.weights, trial(asked).play())


def test_what_it_sees_is_what_the_secure_sum_hands_over(make_scenario, trial) -> None:
    """One message of integers, decoded; the same bits for any cut of the cohort into messages."""
    sights = []
    for chunk in (1, 5, 12):
        seen = Observed(trial, make_scenario(SHARES, f"federation.chunk_size={chunk}"))
        assert seen.round(0)
        [reply] = seen.wire.replies
        assert list(reply) == ["total"]
        sights.append(seen.sights[0])
    for other in sights[1:]:
        assert torch.equal(other.update, sights[0].update)


@pytest.mark.parametrize(("chunk", "everybody"), [(1, True), (5, True), (1, False)])
def test_raised_weights_reach_all_clients_or_the_victim_alone(
    make_scenario, trial, chunk: int, everybody: bool
) -> None:
    asked = make_scenario(SHARES, f"federation.chunk_size={chunk}")
    seen = Observed(trial, asked, ascent=Ascent(level=2.0), everybody=everybody)
    fleet, target = seen.played.fleet, np.array([0])
    rows = torch.from_numpy(fleet.people.partition.records(VICTIM))
    seen.observer.probe = Probe(fleet.module, fleet.x[rows], fleet.y[rows])
    seen.observer.targets = target
    before = seen.played.federation.model.copy()
    assert seen.round(0)
    aim = seen.observer.probe.at(target)
    raised = seen.observer.ascent.climb(aim, torch.from_numpy(before)).numpy()
    assert not np.array_equal(raised, before)
    assert np.array_equal(seen.sights[0].sent.numpy(), raised)
    assert np.array_equal(seen.sights[0].targets, target)
    for clients, weights in seen.wire.sent:
        assert np.array_equal(weights, raised if everybody or clients == [VICTIM] else before)
    # What the others do is expected from the weights that they were sent.
    from_raised = [np.array_equal(weights.numpy(), raised) for weights, _ in seen.requested]
    assert from_raised == ([True] if everybody else [True, False])
    # The next round begins from the honest model.
    honest = seen.played.federation.model.copy()
    assert seen.round(1)
    aim_again = seen.observer.ascent.climb(aim, torch.from_numpy(honest))
    assert torch.equal(seen.sights[1].sent, aim_again)
    assert len(seen.wire.replies) == 2


def test_a_round_without_a_sum_or_perhaps_without_the_victim_shows_nothing(make_scenario, trial) -> None:
    few = make_scenario(SHARES, "privacy.min_survivors=12", "federation.dropout=0.3")
    seen = Observed(trial, few)
    assert not seen.observer.close(type("Total", (), {"void": False, "refused": 0, "answered": 12})())
    closed = [seen.round(number) for number in range(3)]
    assert closed == [False] * 3
    assert not seen.sights
    spent = Observed(trial, make_scenario(SHARES, "privacy.max_participations=1"))
    assert spent.round(0)
    spent.played.ledger.participations[:] = 0  # a server that lies to itself
    assert not spent.round(1)
    assert len(spent.sights) == 1
