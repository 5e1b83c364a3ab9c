"""`budget dp-sgd`: each sampler at the same work, the lectures' noise, and what is refused."""

from __future__ import annotations

import math

import pytest
from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.lectures_noise import lectures_dp_sgd_noise
from fedprivacy.errors import InputError
from fedprivacy.sampling.batches import PoissonBatches, ReplacementBatches, ShuffledBatches
from scenarios.budgets.dp_sgd import DpSgdQuestion

DIGITS = {"records": 1000, "batch_size": 30, "steps": 100}


def rows(document: dict) -> dict[str, dict]:
    return {row["sampling"]: row for row in document["table"]}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_each_sampler_is_beside_the_others_at_the_same_work(adjacency: str) -> None:
    document = DpSgdQuestion(**DIGITS, epsilon=2.0, adjacency=adjacency).document()
    events = {
        "poisson": PoissonBatches(100, batch_size=30),
        "shuffled": ShuffledBatches(3, 30),
        "with-replacement": ReplacementBatches(100, 30),
        "all records": ShuffledBatches(3),
    }
    table = rows(document)
    assert list(table) == list(events)
    for name, batches in events.items():
        row = table[name]
        event = batches.event(dp.GaussianDpEvent(row["noise_multiplier"]), 1000)
        spent = epsilon(event, 1e-5, adjacency)
        assert (row["epsilon"], row["accountant"]) == (spent.epsilon, spent.accountant)
        assert 2.0 * (1 - 1e-3) < spent.epsilon <= 2.0
        assert row["noise_of_mean"] * batches.mean_size(1000) == pytest.approx(row["noise_multiplier"])
    assert table["all records"]["noise_multiplier"] == table["shuffled"]["noise_multiplier"]
    assert document["noise_multiplier"] == table["poisson"]["noise_multiplier"]
    assert document["unit"] == "example"


@pytest.mark.parametrize("sampling", ["poisson", "shuffled", "with-replacement"])
def test_back_again(sampling: str) -> None:
    there = DpSgdQuestion(**DIGITS, sampling=sampling, epsilon=1.5).document()
    back = DpSgdQuestion(**DIGITS, sampling=sampling, noise_multiplier=there["noise_multiplier"]).document()
    assert back["epsilon"] == there["epsilon"]
    assert back["accountant"] == there["accountant"]
    assert len({row["noise_multiplier"] for row in back["table"]}) == 1
    assert rows(back)[sampling]["epsilon"] == back["epsilon"]


def test_a_rate_is_as_good_as_a_batch_size_and_passes_are_rounded_up() -> None:
    rate = DpSgdQuestion(records=1000, rate=0.03, steps=100, noise_multiplier=2.0).document()
    size = DpSgdQuestion(**DIGITS, noise_multiplier=2.0).document()
    assert [row["epsilon"] for row in rate["table"]] == [row["epsilon"] for row in size["table"]]
    more = DpSgdQuestion(records=1000, rate=0.03, steps=101, noise_multiplier=2.0).document()
    assert rows(more)["shuffled"]["batches"] == "4 shuffled passes in batches of 30"
    assert rows(more)["all records"]["batches"] == "4 steps on all records"


def test_words_say_who_is_protected_and_from_whom() -> None:
    poisson = DpSgdQuestion(**DIGITS, epsilon=2.0).document()["words"]
    known = DpSgdQuestion(**DIGITS, epsilon=2.0, sampling="with-replacement").document()["words"]
    for words in (poisson, known):
        for said in ("out of 1,000 records", "one record of a client replaced by any other (unit example, replace-one;",
                     "`fedprivacy budget group --size m`", "not against whoever holds the records"):  # fmt: skip
            assert said in words
    assert "but not which records were in a batch" in poisson
    assert "also where they know the batches" in known


def test_under_add_remove_what_has_no_answer_says_why() -> None:
    document = DpSgdQuestion(**DIGITS, epsilon=2.0, adjacency="add-remove").document()
    table = rows(document)
    for name in ("shuffled", "with-replacement"):
        assert [
            table[name][key] for key in ("noise_multiplier", "noise_of_mean", "epsilon", "accountant")
        ] == [None] * 4
        assert f"{name}: " in document["words"]
    assert table["all records"]["epsilon"] <= 2.0
    assert (
        "the rate and the divisor of the mean are fixed without looking at how many records"
        in document["words"]
    )
    with pytest.raises(InputError, match="use replace-one or zero-out adjacency, or Poisson"):
        DpSgdQuestion(**DIGITS, sampling="shuffled", epsilon=2.0, adjacency="add-remove").document()


@pytest.mark.exhaustive
def test_the_lectures_noise_stands_beside_one_example_a_step() -> None:
    single = {"records": 100, "batch_size": 1, "steps": 5_000, "sampling": "with-replacement"}
    document = DpSgdQuestion(**single, epsilon=1.0).document()
    lectures = lectures_dp_sgd_noise(1.0, 1e-5, 100, 5_000)
    assert document["lectures_noise_multiplier"] == lectures > document["noise_multiplier"]
    event = ReplacementBatches(5_000, 1).event(dp.GaussianDpEvent(lectures), 100)
    assert document["lectures_epsilon"] == epsilon(event, 1e-5, "replace-one").epsilon < 0.1
    assert f"{lectures:.6g} x C" in document["words"]
    for other in ({"epsilon": 1.01}, {"epsilon": 1.0, "steps": 10}):
        refused = DpSgdQuestion(**(single | other)).document()
        assert refused["lectures_noise_multiplier"] is None
        assert "The lectures' noise for one example a step says nothing here: " in refused["words"]
    for other in ({"sampling": "poisson"}, {"batch_size": 2}):
        assert "lectures" not in DpSgdQuestion(**(single | other), epsilon=1.0).document()["words"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as refused:
        DpSgdQuestion(
            records=100, rate=2.0, batch_size=101, steps=0, sampling="x", delta=0.01, adjacency="y"
        ).document()
    assert str(refused.value).splitlines() == [
        "--epsilon, --noise-multiplier: give exactly one; the other one is computed.",
        "--delta 0.01: must be at least 1e-12 and below 0.01; 1/records is too much.",
        "--steps 0: must be from 1 to 1e+09.",
        "--batch-size, --rate: give exactly one; it says how large a batch is.",
        "--batch-size 101: must be from 1 to 100; the records are the most.",
        "--rate 2.0: must be from 1e-12 to 1.",
        "--sampling x: must be one of poisson, shuffled, with-replacement.",
        "--adjacency y: must be one of replace-one, add-remove, zero-out.",
    ]
    with pytest.raises(InputError, match="--records 0: must be from 1 to"):
        DpSgdQuestion(records=0, rate=0.5, steps=1, epsilon=1.0).document()
    assert math.isfinite(DpSgdQuestion(records=1, rate=0.5, steps=1, epsilon=1.0).document()["epsilon"])
