"""Robust rules, each against an oracle that shares no code with it, and through whole rounds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord
from scipy import optimize, stats

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.clipping import bounds_of_a_sum
from fedprivacy.messages.protocol import parts_of
from server.robust_rules import RULES, RobustRule, geometric_median, krum, median, trimmed_mean

EACH = ("privacy.trust=none", "federation.observe=each")
ROBUST = ("median", "trimmed-mean", "krum", "geometric-median")


def rule_of(name: str) -> tuple[str, ...]:
    byzantine = ("server.byzantine=2",) if name in ("trimmed-mean", "krum") else ()
    return (*EACH, f"server.aggregation={name}", *byzantine)


def rows_of(seed: int, count: int = 9, length: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, length)) * [1, 2, 1, 5, 1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [8, 9])
def test_the_coordinatewise_rules_are_scipys(seed: int, count: int) -> None:
    rows = rows_of(seed, count)
    assert np.allclose(median(rows), stats.scoreatpercentile(rows, 50, axis=0))
    assert np.allclose(trimmed_mean(rows, 2), stats.trim_mean(rows, 2 / count, axis=0))
    assert np.allclose(trimmed_mean(rows, 0), rows.mean(axis=0))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("byzantine", [0, 1, 2])
def test_krum_is_the_row_with_the_nearest_group(seed: int, byzantine: int) -> None:
    rows = rows_of(seed)
    near = len(rows) - byzantine - 2

    def cheapest(at: int) -> float:  # over all groups, not by sorting
        others = [row for place, row in enumerate(rows) if place != at]
        return min(
            sum(np.sum((rows[at] - row) ** 2) for row in group) for group in combinations(others, near)
        )

    best = min(range(len(rows)), key=cheapest)
    assert np.array_equal(krum(rows, byzantine), rows[best])


@pytest.mark.parametrize("seed", range(4))
def test_the_geometric_median_minimises_the_sum_of_distances(seed: int) -> None:
    rows = rows_of(seed)

    def total(point: np.ndarray) -> float:
        return float(np.linalg.norm(rows - point, axis=1).sum())

    starts = [
        optimize.minimize(total, row, method="Nelder-Mead", options={"maxiter": 10_000}) for row in rows
    ]
    assert total(geometric_median(rows)) <= min(result.fun for result in starts) * (1 + 1e-9)


def test_the_geometric_median_of_a_majority_at_one_point_is_that_point() -> None:
    rows = np.concatenate([np.full((5, 3), 2.0), rows_of(0, 4)[:, :3]])
    assert np.array_equal(geometric_median(rows), np.full(3, 2.0))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_rule_scales_with_its_updates(scale: float) -> None:
    rows = rows_of(1)
    for name in ROBUST:
        rule = RobustRule(name, 2)
        assert np.allclose(rule.estimate(scale * rows), scale * rule.estimate(rows), rtol=1e-6, atol=0)


@pytest.mark.parametrize("far", [1e3, 1e200, 1.7e308])
@pytest.mark.parametrize("name", ROBUST)
def test_two_of_nine_move_no_rule_far(name: str, far: float) -> None:
    rows = rows_of(2)
    honest = rows[2:]
    poisoned = rows.copy()
    poisoned[:2] = far
    moved = np.linalg.norm(RobustRule(name, 2).estimate(poisoned) - honest.mean(axis=0))
    assert moved <= 2 * np.linalg.norm(honest - honest.mean(axis=0), axis=1).max()


def test_every_name_has_its_rule() -> None:
    assert set(RULES) == set(ROBUST)


@pytest.mark.parametrize("name", ROBUST)
def test_a_round_moves_the_model_by_the_rules_estimate(make_scenario, trial, name: str) -> None:
    rows: dict[int, np.ndarray] = {}

    def look(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type != "train":
            return reply
        arrays, _ = parts_of(reply)
        rows.update(zip(arrays["clients"].tolist(), arrays["updates"], strict=True))
        return reply

    played = trial(make_scenario(*rule_of(name)), mods=(look,))
    before = played.federation.weights.copy()
    moved = played.play(1) - before
    byzantine = 2 if name in ("trimmed-mean", "krum") else 0
    expected = RULES[name](np.stack([rows[client] for client in sorted(rows)]), byzantine)
    assert len(rows) == 12
    assert np.allclose(moved, expected, rtol=1e-12)


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize("trust", ["none", "local"])
@pytest.mark.parametrize("name", ROBUST)
def test_hosts_and_chunks_change_no_bit(make_scenario, trial, name: str, trust: str) -> None:
    base = (*rule_of(name), f"privacy.trust={trust}")
    cuts = (("federation.hosts=1",), ("federation.hosts=3", "federation.chunk_size=2"))
    first, other = (trial(make_scenario(*base, *cut)).play() for cut in cuts)
    assert np.array_equal(first, other)


def test_a_round_with_too_few_answers_moves_nothing_and_stays_charged(make_scenario, trial) -> None:
    asked = make_scenario(*rule_of("krum"), "federation.dropout=0.75", "server.rounds=1")
    played = trial(asked)
    before = played.federation.weights.copy()
    _, total = played.federation.round(0)
    assert 0 < total.answered < 7
    assert total.void
    assert total.contributed == 0
    assert np.array_equal(played.federation.weights, before)
    assert played.ledger.rounds == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("privacy.trust=central", "federation.observe=each"), r"server\.aggregation.*another amount"),
        (("privacy.trust=distributed", "federation.observe=each"), r"server\.aggregation.*the secure sum"),
        (("privacy.trust=none",), r'server\.aggregation.*nodes reply with sums.*observe = "each"'),
        ((*EACH, "training.weighting=records"), r"counts each client as one"),
        (("privacy.trust=local", EACH[1], "server.denoise=james-stein"), "noise of unknown size"),
        (("privacy.trust=local", EACH[1], "privacy.mechanism=privunit"), "noise is symmetric"),
    ],
)
def test_robust_rules_are_refused_where_they_have_no_meaning(make_scenario, changes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes, "server.aggregation=median")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("server.aggregation=krum",), r"server\.byzantine: missing.*byzantine = 1"),
        (("server.aggregation=krum", "server.byzantine=5"), r"13 answers or more, and a round has 12"),
        (("server.aggregation=trimmed-mean", "server.byzantine=6"), "13 answers or more, and a round has 12"),
        (("server.aggregation=median", "server.byzantine=1"), r"server\.byzantine.*has no effect"),
        (("server.byzantine=1",), r"server\.byzantine.*has no effect"),
        (("server.aggregation=crumb",), r"unknown rule of aggregation.*krum"),
        (
            ("server.aggregation=krum", "server.byzantine=2", "sampling={name='fixed', cohort=6}"),
            "7 answers or more, and a round has 6",
        ),
    ],
)
def test_the_number_of_malicious_clients_is_checked(make_scenario, changes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*EACH, *changes)
    make_scenario(*EACH, "server.aggregation=krum", "server.byzantine=4")


CLIPS = ("federation.observe=each", "server.clips=true")


def sender_of(client: int, values: float):
    """A mod by which one client of each message uploads what it likes."""

    def mod(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type != "train":
            return reply
        arrays, _ = parts_of(reply)
        if client in (ids := arrays["clients"].tolist()):
            forged = arrays["updates"].copy()
            forged[ids.index(client)] = values
            arrays = {"updates": Array(forged), "clients": Array(arrays["clients"])}
            reply.content.array_records["arrays"] = ArrayRecord(arrays)
        return reply

    return mod


def test_a_server_that_clips_takes_no_more_than_the_norm_from_a_client(make_scenario, trial) -> None:
    asked = make_scenario(*CLIPS, "server.rounds=1")
    honest, poisoned = trial(asked), trial(asked, mods=(sender_of(3, 1e6),))
    plan = honest.fleet.plan
    sums = [played.federation.total(0, np.arange(12)) for played in (honest, poisoned)]
    assert [total.answered for total in sums] == [12, 12]
    bound = bounds_of_a_sum(plan.clipping_norm, 12)[0]
    part = sums[1].updates - sums[0].updates
    assert 0.1 < np.linalg.norm(part) <= 2 * bound
    clients = [
        trial(asked, mods=(sender_of(3, value),)).federation.total(0, np.array([3]))
        for value in (1e6, np.nan)
    ]
    assert np.linalg.norm(clients[0].updates) == pytest.approx(bound, rel=1e-9)
    assert not clients[1].updates.any()
    assert clients[1].zeroed == 1


def test_a_server_that_does_not_clip_refuses_the_whole_message(make_scenario, trial) -> None:
    played = trial(make_scenario("federation.observe=each"), mods=(sender_of(3, 1e6),))
    total = played.federation.total(0, np.arange(12))
    assert (total.answered, total.failed) == (7, 5)  # the other clients of its message too


def test_clipping_again_moves_an_honest_sum_by_rounding_alone(make_scenario, trial) -> None:
    asked = make_scenario("federation.observe=each")
    plain, clipping = trial(asked), trial(make_scenario(*CLIPS))
    clipping.fleet.__dict__["streams"] = plain.fleet.streams
    first, again = (played.federation.total(0, np.arange(12)).updates for played in (plain, clipping))
    assert np.allclose(first, again, rtol=0, atol=1e-14)
    assert torch.isfinite(torch.from_numpy(again)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("privacy.trust=local",), r"server\.clips.*noisy messages"),
        (
            ("privacy.unit=example", "training.batches=poisson", "training.rate=0.5"),
            r"server\.clips.*gradients",
        ),
        (("federation.observe=sum",), r"server\.clips.*nodes reply with sums"),
        (("privacy.encoding=sketch",), r"server\.clips|encoding"),
        (("privacy.clipping_quantile=0.5",), r"server\.clips.*the bits"),
    ],
)
def test_clipping_is_refused_where_the_server_sees_no_update(make_scenario, changes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*CLIPS, *changes)


def test_clipping_needs_a_norm(make_scenario, base_text: str) -> None:
    text = base_text.replace("clipping_norm = 1.0\nnoise_multiplier = 2.0\ndelta = 1e-3\n", "")
    with pytest.raises(InputError, match=r"server\.clips.*no norm to clip to"):
        make_scenario(*CLIPS, "privacy.trust=none", text=text)


def test_the_unprotected_cell_of_a_comparison_has_nothing_to_clip_to(make_scenario) -> None:
    asked = make_scenario(*CLIPS)
    assert asked.cell("central", 1.0, 1).server.clips
    assert not asked.cell("none", None, 1).server.clips
    assert asked.cell("none", None, 1, clipped=True).server.clips
