"""Exposure of secrets: ranks against all candidates by hand, and bounds against chance and simulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from torch import nn

from fedprivacy.attacks.exposure_bound import (
    bound_of_ledger,
    chance_exposure,
    exposure,
    mean_exposure_bound,
)
from fedprivacy.attacks.secret_exposure import exposures
from fedprivacy.attacks.tradeoff import GaussianCurve, from_pairs
from fedprivacy.data.secrets import CANDIDATES, LONGEST, Secret, drawn_secrets, room, with_secrets
from fedprivacy.data.texts import VOCABULARY, tokens_of
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.scenario import Gru, Transformer


def test_the_rank_counts_those_as_likely_as_the_secret() -> None:
    likely = np.log(np.array([0.1, 0.4, 0.1, 0.4]))
    assert exposure(likely, 1) == 1.0  # of four the second, since another is as likely
    assert exposure(likely, 0) == 0.0
    assert exposure(np.arange(8.0), 7) == 3.0
    assert exposure(np.full(8, np.nan), 3) == 0.0  # a model that has diverged


def test_chance_is_1_44_bits_and_its_median_1() -> None:
    assert chance_exposure(10**4) == pytest.approx(1 / math.log(2), abs=2e-3)
    ranks = np.arange(1, 10**4 + 1)
    bits = math.log2(10**4) - np.log2(ranks)
    assert chance_exposure(10**4) == pytest.approx(bits.mean())
    assert np.median(bits) == pytest.approx(1.0, abs=1e-3)
    assert mean_exposure_bound(GaussianCurve(0.0), 10**4) == pytest.approx(bits.mean())


def test_the_bound_grows_with_epsilon_up_to_all_bits() -> None:
    bounds = [mean_exposure_bound(from_pairs([(e, 1e-5)], ""), 10**4) for e in (0.01, 1.0, 8.0, 50.0)]
    assert bounds == sorted(bounds)
    assert bounds[0] == pytest.approx(1.46, abs=0.01)
    # At so large an epsilon the least rank is the only one.
    assert bounds[-1] == pytest.approx(math.log2(10**4), abs=1e-3)
    assert mean_exposure_bound(None, 16) == 4.0


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_the_best_attack_on_gaussian_noise_is_below_the_bound_and_near_it(mu: float) -> None:
    """Texts with different secrets move the model by mu in different directions, at distance sqrt(2)."""
    candidates, trials = 256, 4000
    stream = np.random.default_rng(0)
    length = mu / math.sqrt(2)
    seen = stream.standard_normal((trials, candidates))
    seen[:, 0] += length  # the secret is the first one
    ranks = (seen >= seen[:, :1]).sum(axis=1)
    bits = math.log2(candidates) - np.log2(ranks)
    error = bits.std() / math.sqrt(trials)
    bound = mean_exposure_bound(GaussianCurve(mu), candidates)
    assert bits.mean() - 4 * error < bound
    # Each single test P[rank <= k] is bounded too, at two thirds of the curve or more.
    for k in (1, 8, 64):
        assert (ranks <= k).mean() <= GaussianCurve(mu).tpr(k / candidates) + 4 / math.sqrt(trials)
    # Against a neighbour that has no secret the distance is shorter: its curve is no bound of these.
    assert ndtr(length) > 0.5
    assert bits.mean() > chance_exposure(candidates)


def ledger(unit: str = "client", adjacency: str = "replace-one") -> dict:
    from dp_accounting import GaussianDpEvent

    from fedprivacy.accounting.events import to_json

    event = to_json(GaussianDpEvent(2.0))
    claim = {"observer": "outsider", "event": event, "assumptions": []}
    return {"unit": unit, "adjacency": adjacency, "claims": [claim]}


def test_the_bound_of_a_ledger_is_of_clients_alone_and_of_two_steps_where_one_is_taken_away() -> None:
    assert bound_of_ledger(ledger("example"), 100) is None
    once, twice = (bound_of_ledger(ledger(adjacency=name), 100) for name in ("replace-one", "add-remove"))
    assert once is not None
    assert twice is not None
    # Of the same noise: replace-one doubles the sensitivity itself.
    assert once.bits == pytest.approx(mean_exposure_bound(GaussianCurve(1.0), 100))
    assert twice.bits == pytest.approx(mean_exposure_bound(GaussianCurve(1.0), 100))
    assert (once.steps, once.adjacency, once.observer) == (1, "replace-one", "outsider")
    assert (twice.steps, twice.adjacency) == (2, "add-remove")
    assert "mu = 1" in once.basis
    silent = ledger()
    silent["claims"][0]["event"] = None
    assert bound_of_ledger(silent, 100) is None


def test_the_bound_has_the_assumptions_of_the_claim_that_implies_it() -> None:
    from dp_accounting import GaussianDpEvent

    from fedprivacy.accounting.events import to_json

    several = ledger()
    several["claims"][0]["assumptions"] = ["each client is honest"]
    summed = {"observer": "outsider", "event": to_json(GaussianDpEvent(4.0)), "assumptions": ["others too"]}
    server = {"observer": "server", "event": to_json(GaussianDpEvent(9.0)), "assumptions": ["nobody"]}
    several["claims"] += [summed, server]  # that of another observer is none of the final model's
    bound = bound_of_ledger(several, 100)
    assert bound is not None
    assert bound.assumptions == ("others too",)
    assert bound.bits == pytest.approx(mean_exposure_bound(GaussianCurve(0.5), 100))


@pytest.mark.parametrize(
    "options", [Gru(name="gru", embedding=3, width=5), Transformer(name="transformer", width=4, heads=2)]
)
def test_ranks_are_those_of_each_candidate_written_out(options) -> None:
    window, secret = 30, Secret("A", "the code is ", "42")
    module = build(options, (window,), 97, seed=0)
    weights = flat_weights(module) * np.float32(3.0)
    [bits] = exposures(module, weights, [secret], VOCABULARY, window)
    texts = [f"{secret.opening}{a}{b}" for a, b in product("0123456789", repeat=2)]
    tokens = np.stack([tokens_of(text.ljust(window, "x"), VOCABULARY) for text in texts])
    from fedprivacy.models.by_name import unflatten

    with torch.no_grad():
        logits = torch.func.functional_call(
            module, unflatten(module, torch.from_numpy(weights)), torch.from_numpy(tokens.astype(np.float32))
        )
    logs = logits.double().log_softmax(dim=2).numpy()
    start = len(secret.opening)
    likely = [
        sum(logs[row, start + at - 1, tokens[row, start + at]] for at in range(2)) for row in range(100)
    ]
    rank = sum(value >= likely[42] - 1e-9 for value in likely)
    assert bits == pytest.approx(math.log2(100) - math.log2(rank))


def test_secrets_are_each_in_the_text_of_one_author() -> None:
    parts = dict.fromkeys("ABCD", "one\ntwo\n")
    secrets = drawn_secrets(list(parts), 2, seed=1)
    assert len({secret.author for secret in secrets}) == 2
    assert len({secret.opening for secret in secrets}) == 2
    assert all(len(secret.digits) == 4 for secret in secrets)
    assert CANDIDATES == 10**4
    planted = with_secrets(parts, secrets, 3, LONGEST, np.random.default_rng(0))
    for secret in secrets:
        assert planted[secret.author].count(secret.line) == 3
        assert planted[secret.author].replace(f"\n{secret.line}", "") == "one\ntwo\n"
    others = set(parts) - {secret.author for secret in secrets}
    assert all(planted[name] == parts[name] for name in others)
    assert drawn_secrets(list(parts), 2, seed=1) == secrets
    assert drawn_secrets(list(parts), 2, seed=2) != secrets


@pytest.mark.parametrize("window", [24, 25, 40, 47, 48, 64, 100])
@pytest.mark.parametrize("copies", [1, 7])
def test_each_copy_is_whole_in_a_window_at_places_that_no_digit_moves(window: int, copies: int) -> None:
    text = "".join(chr(97 + place % 26) for place in range(12 * window + 1))
    one, other = (Secret("A", "the code abcde is ", digits) for digits in ("1234", "9870"))
    assert room(len(text), copies, window) >= copies
    for seed in range(20):
        planted = with_secrets({"A": text}, [one], copies, window, np.random.default_rng(seed))["A"]
        cut = [planted[start : start + window] for start in range(0, len(planted) - window, window)]
        assert sum(each.count(f"\n{one.line}") for each in cut) == copies
        assert planted.replace(f"\n{one.line}", "") == text
        again = with_secrets({"A": text}, [other], copies, window, np.random.default_rng(seed))["A"]
        assert again == planted.replace("1234", "9870")


class Counted(nn.Module):
    """A model that takes no more positions at once than an evaluation does."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.calls = nn.Parameter(torch.zeros(97)), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.numel() <= 2**15
        self.calls += 1
        return self.scores.expand(*x.shape, 97)


def test_texts_are_ranked_in_chunks_of_as_many_positions_as_an_evaluation_has() -> None:
    module = Counted()
    [bits] = exposures(
        module, np.zeros(97, np.float32), [Secret("A", "the code is ", "42")], VOCABULARY, 5000
    )
    assert bits == 0.0
    assert module.calls == 3  # 1 text and 10, of 6 at once
