"""The batches that the accountant assumes are the batches that are drawn, and cost what others say they cost.

False-alarm rate of each statistical test: below 1e-6, with fixed seeds.
"""

from __future__ import annotations

import warnings

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon, epsilon_rdp
from fedprivacy.accounting.events import RELATIONS, from_json, releases, to_json
from fedprivacy.errors import UnsupportedEvent
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import (
    BATCHES,
    Batches,
    PoissonBatches,
    ReplacementBatches,
    ShuffledBatches,
    padded,
)

RELEASE = dp_accounting.GaussianDpEvent(1.0)
ALARM = 1e-6
DELTA = 1e-5


def drawn(batches: Batches, records: int) -> np.ndarray:
    """How often each record stands in each batch, one row a batch."""
    rows = batches.draw(records, Streams(5).stream("batches", round=0))
    assert all(((row >= 0) & (row < records)).all() for row in rows)
    return np.stack([np.bincount(row, minlength=records) for row in rows])


def as_likely(found: int, of: int, probability: float) -> bool:
    return stats.binomtest(found, of, probability).pvalue > ALARM


def as_expected(counts: np.ndarray, probabilities: np.ndarray) -> bool:
    return stats.chisquare(counts, counts.sum() * probabilities / probabilities.sum()).pvalue > ALARM


# --- Poisson --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [PoissonBatches(2000, rate=0.02), PoissonBatches(2000, batch_size=60)])
def test_poisson_batches_hold_each_record_at_the_rate_of_the_event(batches: PoissonBatches) -> None:
    counts = drawn(batches, 200)
    assert counts.shape == (2000, 200)
    assert counts.max() == 1
    event = batches.event(RELEASE, 200)
    assert event.count == 2000
    rate = event.event.sampling_probability
    assert as_likely(int(counts.sum()), counts.size, rate)
    per_record = counts.sum(axis=0)
    statistic = ((per_record - 2000 * rate) ** 2).sum() / (2000 * rate * (1 - rate))
    assert ALARM < 2 * stats.chi2.sf(statistic, 200) < 2 - ALARM
    assert batches.mean_size(200) == pytest.approx(200 * rate)


def test_poisson_coins_are_independent_between_records_and_between_steps() -> None:
    counts = drawn(PoissonBatches(2000, rate=0.2), 200)
    pairs = counts.size // 2  # disjoint, so that they are independent too
    assert as_likely(int((counts[:, ::2] & counts[:, 1::2]).sum()), pairs, 0.04)
    assert as_likely(int((counts[::2] & counts[1::2]).sum()), pairs, 0.04)
    # A fixed size would have variance 0, one coin for all 200 times as much.
    variance = counts.sum(axis=1).var(ddof=1) / (200 * 0.2 * 0.8)
    assert ALARM < 2 * stats.chi2.sf(variance * 1999, 1999) < 2 - ALARM


def test_a_poisson_batch_may_be_empty_and_still_counts_as_a_step() -> None:
    batches = PoissonBatches(1000, rate=0.001)
    sizes = drawn(batches, 10).sum(axis=1)
    assert as_likely(int((sizes == 0).sum()), 1000, 0.999**10)
    assert batches.event(RELEASE, 10).count == 1000


def test_a_poisson_batch_as_large_as_the_client_holds_all_and_is_no_sample() -> None:
    for records in (1, 5, 6):
        batches = PoissonBatches(3, batch_size=6)
        assert (drawn(batches, records) == 1).all()
        assert releases(batches.event(RELEASE, records), "add-remove") == ((RELEASE, 3),)
        assert batches.mean_size(records) == records


# --- shuffled -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "size", "sizes"), [(10, 3, [3, 3, 3, 1]), (9, 3, [3, 3, 3]), (2, 3, [2])]
)
def test_a_shuffled_pass_holds_each_record_once(records: int, size: int, sizes: list[int]) -> None:
    batches = ShuffledBatches(50, size)
    counts = drawn(batches, records)
    assert counts.sum(axis=1).tolist() == sizes * 50
    assert (counts.reshape(50, len(sizes), records).sum(axis=1) == 1).all()
    assert batches.mean_size(records) == min(size, records)


def test_shuffled_batches_are_uniform_and_anew_in_each_pass() -> None:
    counts = drawn(ShuffledBatches(4000, 5), 20)
    place = counts.reshape(4000, 4, 20).argmax(axis=1)  # in which batch of a pass each record is
    assert all(as_expected(np.bincount(place[:, record]), np.ones(4)) for record in (0, 7, 19))
    then = 4 * place[::2, 0] + place[1::2, 0]  # one pass and the next
    assert as_expected(np.bincount(then, minlength=16), np.ones(16))
    together = int((place[:, 0] == place[:, 1]).sum())
    assert as_likely(together, 4000, 4 / 19)


def test_shuffling_amplifies_nothing_and_needs_a_fixed_number_of_records() -> None:
    for records in (1, 7, 1000):
        event = ShuffledBatches(3, 10).event(RELEASE, records)
        for adjacency in ("replace-one", "zero-out"):
            assert releases(event, adjacency) == ((RELEASE, 3),)
        with pytest.raises(UnsupportedEvent, match="replace-one or zero-out adjacency, or Poisson"):
            epsilon(event, DELTA, "add-remove")
    whole = ShuffledBatches(3)
    assert releases(whole.event(RELEASE, 7), "add-remove") == ((RELEASE, 3),)
    assert (drawn(whole, 7) == 1).all()


def test_one_more_record_moves_others_between_shuffled_batches() -> None:
    """Why a pass in batches has no accountant under add-remove.

    Whoever knows the order sees the sum of one batch replaced by another record's and that of the next grow: 10
    records in batches of 5, then 11, of which the new one took a place. mu is then sqrt(2^2 + 1^2)/z, not 1/z.
    """
    gradients = np.array([1.0] * 5 + [1.0] * 5)
    before = [gradients[:5].sum(), gradients[5:].sum(), 0.0]
    more = np.append(gradients, -1.0)
    order = [0, 1, 2, 3, 10, 5, 6, 7, 8, 9, 4]  # the new one in the place of record 4, which comes last
    after = [more[order[start : start + 5]].sum() for start in (0, 5, 10)]
    assert np.sum((np.array(before) - after) ** 2) == 5


# --- with replacement -----------------------------------------------------------------------------


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("records", "size"), [(40, 1), (40, 10), (8, 20), (1, 4)])
def test_a_record_fills_a_binomial_number_of_places(records: int, size: int) -> None:
    batches = ReplacementBatches(20_000, size)
    counts = drawn(batches, records)
    assert (counts.sum(axis=1) == size).all()
    sampled = batches.event(RELEASE, records).event
    law = stats.binom(sampled.sample_size, 1 / sampled.source_dataset_size)
    for record in {0, records // 2, records - 1}:  # of one record, steps are independent
        often = np.bincount(np.minimum(counts[:, record], size), minlength=size + 1)
        expected = law.pmf(np.arange(size + 1))
        usual = expected * 20_000 >= 5
        found = np.append(often[usual], often[~usual].sum())
        wanted = np.append(expected[usual], expected[~usual].sum())
        if wanted[-1] * 20_000 < 1:  # too rare for a cell of its own
            assert found[-1] <= 20
            found, wanted = found[:-1], wanted[:-1]
        assert len(found) == 1 or as_expected(found, wanted)
    assert batches.mean_size(records) == size


def test_places_are_independent_within_a_batch_and_between_steps() -> None:
    rows = np.stack(ReplacementBatches(20_000, 3).draw(5, Streams(6).stream("batches", round=0)))
    assert as_expected(np.bincount(5 * rows[:, 0] + rows[:, 2], minlength=25), np.ones(25))
    assert as_expected(np.bincount(5 * rows[::2, 2] + rows[1::2, 0], minlength=25), np.ones(25))


def test_one_place_of_one_record_is_the_record_itself() -> None:
    event = ReplacementBatches(4, 1).event(RELEASE, 1)
    assert releases(event, "replace-one") == ((RELEASE, 4),)
    four = epsilon(ReplacementBatches(1, 4).event(dp_accounting.GaussianDpEvent(8.0), 1), DELTA, "zero-out")
    assert four.epsilon == pytest.approx(
        epsilon(dp_accounting.GaussianDpEvent(2.0), DELTA, "zero-out").epsilon, rel=1e-5
    )


# --- all of them ----------------------------------------------------------------------------------

EACH = [PoissonBatches(6, rate=0.2), PoissonBatches(6, batch_size=3), ShuffledBatches(6, 3), ShuffledBatches(6),
        ReplacementBatches(6, 1), ReplacementBatches(6, 3)]  # fmt: skip


@pytest.mark.parametrize("batches", EACH, ids=str)
def test_the_same_stream_draws_the_same_batches_and_the_event_can_be_stored(batches: Batches) -> None:
    one, two = (batches.draw(12, Streams(1).stream("batches", round=r)) for r in (0, 0))
    assert all((left == right).all() for left, right in zip(one, two, strict=True))
    event = batches.event(RELEASE, 12)
    assert from_json(to_json(event)) == event
    assert hash(releases(event, "replace-one"))
    assert BATCHES[batches.name] is type(batches)
    assert batches.words.endswith("in a round")


@pytest.mark.parametrize("batches", EACH, ids=str)
def test_records_of_smaller_clients_cost_more_where_it_says_so(batches: Batches) -> None:
    noisy = dp_accounting.GaussianDpEvent(5.0)
    few, many = (
        epsilon(batches.event(noisy, records), DELTA, "replace-one").epsilon for records in (10, 100)
    )
    assert (few > many) == batches.by_size


@pytest.mark.parametrize("batches", EACH, ids=str)
def test_rounds_of_one_client_are_counted_together(batches: Batches) -> None:
    event = batches.event(RELEASE, 12)
    ((leaf, count),) = releases(dp_accounting.ComposedDpEvent([event, event, event]), "replace-one")
    assert count == 18
    assert releases(event, "replace-one") == ((leaf, 6),)


# --- what they cost -------------------------------------------------------------------------------


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.1, 0.01, 2000), (0.8, 0.05, 200), (2.0, 0.2, 100), (6.0, 0.5, 60)]
)
def test_poisson_batches_cost_what_opacus_and_dp_accounting_say(
    noise: float, rate: float, steps: int
) -> None:
    event = PoissonBatches(steps, rate=rate).event(dp_accounting.GaussianDpEvent(noise), 1000)
    ours = epsilon(event, DELTA, "add-remove")
    assert ours.accountant == "PLD"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.accountants import PRVAccountant, RDPAccountant

        prv, rdp = PRVAccountant(), RDPAccountant()
        prv.history = rdp.history = [(noise, rate, steps)]
        assert ours.epsilon == pytest.approx(prv.get_epsilon(delta=DELTA), rel=0.01)
        assert epsilon_rdp(event, DELTA, "add-remove") == pytest.approx(
            rdp.get_epsilon(delta=DELTA), rel=0.01
        )
    for adjacency in ("add-remove", "replace-one", "zero-out"):
        theirs = PLDAccountant(RELATIONS[adjacency]).compose(event).get_epsilon(DELTA)
        assert epsilon(event, DELTA, adjacency).epsilon == pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_shuffled_batches_cost_what_unsampled_gaussian_noise_costs(adjacency: str) -> None:
    event = ShuffledBatches(9, 32).event(dp_accounting.GaussianDpEvent(6.0), 1000)
    spent = epsilon(event, DELTA, adjacency)
    assert spent.accountant == "analytic Gaussian"
    sensitivity = 2 if adjacency == "replace-one" else 1
    assert spent.epsilon == pytest.approx(
        dp_accounting.get_epsilon_gaussian(6.0 / 3 / sensitivity, DELTA), rel=1e-7
    )


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("noise", "records", "steps"), [(1.0, 100, 1000), (3.0, 20, 400), (5.0, 1000, 100_000)]
)
def test_one_drawn_record_a_step_costs_less_than_dp_accounting_says_of_a_sample_of_one(
    noise: float, records: int, steps: int
) -> None:
    event = ReplacementBatches(steps, 1).event(dp_accounting.GaussianDpEvent(noise), records)
    # RdpAccountant takes the noise over what is changed, 2C.
    changed = ReplacementBatches(steps, 1).event(dp_accounting.GaussianDpEvent(noise / 2), records)
    theirs = RdpAccountant(neighboring_relation=RELATIONS["replace-one"]).compose(changed).get_epsilon(DELTA)
    ours = epsilon(event, DELTA, "replace-one")
    assert ours.accountant == "PLD"
    assert 0.3 * theirs < ours.epsilon < epsilon_rdp(event, DELTA, "replace-one") < theirs


@pytest.mark.parametrize("sizes", [[5, 5, 5], [7, 1, 4, 12, 5], [3], [10, 10, 9]])
@pytest.mark.parametrize(
    "batches",
    [
        ShuffledBatches(1), ShuffledBatches(3), ShuffledBatches(1, 5), ShuffledBatches(3, 4), ShuffledBatches(2, 1),
        ShuffledBatches(2, 50), PoissonBatches(3, rate=0.4), PoissonBatches(2, batch_size=3),
        ReplacementBatches(2, 3),
    ],
)  # fmt: skip
def test_many_clients_draw_together_what_each_draws_alone(batches: Batches, sizes: list[int]) -> None:
    streams, clients = Streams(3), range(4, 4 + len(sizes))
    records, agreed = np.array(sizes), np.array(sizes) + 1
    positions, used, steps = padded(batches, records, agreed, streams.streams("batches", clients, round=2))
    assert positions.shape == used.shape
    assert positions.shape[1] == steps.max()
    assert (positions[~used] < records.max()).all()
    for row, client in enumerate(clients):
        own = streams.stream("batches", round=2, member=client)
        drawn = batches.at(agreed[row]).draw(sizes[row], own)
        assert steps[row] == len(drawn)
        for step, part in enumerate(drawn):
            assert np.array_equal(positions[row, step][used[row, step]], part)
        assert not used[row, len(drawn) :].any()
