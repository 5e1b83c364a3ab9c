"""Opacus' settings: what its accountants report against Opacus itself, and what they leave out."""

from __future__ import annotations

import math
import warnings

import pytest
from opacus.accountants import create_accountant

from fedprivacy.errors import InputError
from scenarios.budgets.libraries.opacus import LIBRARY

WORDS = ["noise_multiplier=1.1", "dataset_size=6000", "batch_size=64", "epochs=3"]


def reported(mechanism: str, noise: float, rate: float, steps: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accountant = create_accountant(mechanism)
        accountant.history = [(noise, rate, steps)]
        return float(accountant.get_epsilon(1e-5))


@pytest.mark.parametrize(("mechanism", "tolerance"), [("rdp", 2e-3), ("gdp", 1e-6), ("prv", 0.03)])
def test_the_claim_is_what_opacus_reports(mechanism: str, tolerance: float) -> None:
    steps = math.ceil(6000 / 64)
    document = LIBRARY.document([*WORDS, f"accountant={mechanism}"])
    oracle = reported(mechanism, 1.1, 1 / steps, 3 * steps)
    assert document["claimed"]["epsilon"] == pytest.approx(oracle, rel=tolerance)
    assert document["guarantees"][0]["unit"] == "example"


def test_the_limit_theorem_underestimates_and_the_guarantee_does_not() -> None:
    words = ["noise_multiplier=0.8", "dataset_size=60000", "batch_size=60", "epochs=10", "accountant=gdp"]
    document = LIBRARY.document(words)
    assert document["claimed"]["epsilon"] < document["guarantees"][0]["epsilon"]
    assert "no bound" in document["words"]
    assert document["guarantees"][0]["epsilon"] == pytest.approx(reported("prv", 0.8, 1e-3, 10**4), rel=0.03)


def test_shuffled_batches_are_not_amplified() -> None:
    document = LIBRARY.document([*WORDS, "poisson_sampling=false"], "replace-one")
    stated = document["guarantees"][0]["epsilon"]
    assert stated > 4 * document["claimed"]["epsilon"]
    assert "its figure does not hold" in document["words"]
    # Each record is in one batch of an epoch: three Gaussian releases at distance 2C.
    mu = 2 * math.sqrt(3) / 1.1
    from scipy.stats import norm

    delta = norm.cdf(mu / 2 - stated / mu) - math.exp(stated) * norm.cdf(-mu / 2 - stated / mu)
    assert delta == pytest.approx(1e-5, rel=1e-6)


def test_shuffled_batches_have_no_account_where_records_come_and_go() -> None:
    document = LIBRARY.document([*WORDS, "poisson_sampling=false"])
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3


def test_rounds_compose_and_a_rate_replaces_the_batch_size() -> None:
    once = LIBRARY.document([*WORDS[:2], "sample_rate=0.01", "epochs=1", "rounds=3"])
    more = LIBRARY.document([*WORDS[:2], "sample_rate=0.01", "epochs=3", "rounds=1"])
    assert once["guarantees"][0]["epsilon"] == more["guarantees"][0]["epsilon"]
    assert "300 Poisson draws of 6,000 records at rate 0.01" in once["words"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([*WORDS, "sample_rate=0.1"], "give exactly one of batch_size and sample_rate"),
        ([*WORDS[:2], "batch_size=7000"], "must be at most dataset_size = 6000"),
        (
            [*WORDS, "delta=0.001"],
            r"must be below 1/dataset_size = 0\.000167\. Give delta below 0\.000167, as in",
        ),
        ([*WORDS[:2], "sample_rate=0.1", "drop_last=true"], "drop_last=true: has no effect with sample_rate"),
        (
            [*WORDS[:3], "epochs=1000000", "rounds=1000"],
            r"epochs=1000000: epochs x rounds x batches = 9\.4e\+10",
        ),
        ([*WORDS[:2], "sample_rate=0.1", "poisson_sampling=false"], "have a batch_size"),
    ],
)
def test_what_contradicts_is_refused(words: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        LIBRARY.document(words)


def test_no_noise_is_no_guarantee() -> None:
    document = LIBRARY.document(["noise_multiplier=0", *WORDS[1:]])
    assert document["claimed"]["epsilon"] is None
    assert all("the noise is zero" in each["words"] for each in document["guarantees"])


def test_dropping_the_last_batch_raises_the_rate() -> None:
    """The loader has floor(1000/512) = 1 batch: every record is in it, at rate 1."""
    words = ["noise_multiplier=1", "dataset_size=1000", "batch_size=512", "epochs=10"]
    whole = LIBRARY.document([*words, "drop_last=true"])
    assert [row["epsilon"] for row in whole["table"]] == pytest.approx([17.86, 46.22], abs=0.01)
    assert "10 Poisson draws of 1,000 records at rate 1" in whole["words"]
    assert "20 Poisson draws of 1,000 records at rate 0.5" in LIBRARY.document(words)["words"]
    same = [*words[:2], "batch_size=500", "epochs=10"]
    assert LIBRARY.document(same)["table"] == LIBRARY.document([*same, "drop_last=true"])["table"]


def test_shuffled_batches_are_drawn_without_replacement() -> None:
    document = LIBRARY.document([*WORDS, "poisson_sampling=false"], "replace-one")
    assert "without replacement" in document["guarantees"][0]["assumptions"][0]


@pytest.mark.parametrize("noise", ["1e-200", "1e-3", "5e-324"])
def test_noise_that_is_far_too_little_has_no_figure_and_no_traceback(noise: str) -> None:
    document = LIBRARY.document([f"noise_multiplier={noise}", *WORDS[1:], "accountant=gdp"])
    assert document["claimed"]["epsilon"] is None
    assert "the noise is zero" not in document["words"]
    assert "is beyond the range of useful epsilons" in document["words"]


def test_a_reason_is_no_internal_path() -> None:
    document = LIBRARY.document(["noise_multiplier=1e-5", *WORDS[1:]])
    assert [row["epsilon"] for row in document["table"]] == [None, None]
    assert all("event." not in each["words"] for each in document["guarantees"])
