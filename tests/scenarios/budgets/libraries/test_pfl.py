"""pfl's settings: its benchmark's noise against pfl itself, and its cost against dp-accounting."""

from __future__ import annotations

import math

import dp_accounting as dpa
import pytest
from dp_accounting.pld import PLDAccountant

from fedprivacy.errors import InputError
from scenarios.budgets.libraries.pfl import LIBRARY, MomentsAccountant, claimed_multiplier

BASELINE = [
    "central_privacy_mechanism=gaussian_moments_accountant", "central_epsilon=2.0", "central_delta=1e-6",
    "central_privacy_clipping_bound=0.4", "noise_cohort_size=1000", "cohort_size=50",
    "central_num_iterations=1500", "population=1e6",
]  # fmt: skip
# `PLDPrivacyAccountant(1500, 1000/population, "gaussian", 2.0, 1e-6).noise_parameter` of pfl 0.6.0, as printed.
PFL = {1e6: 0.616145133972168, 1e7: 0.46744346618652344}


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("population", PFL)
def test_the_noise_is_the_one_that_pfl_finds(population: float) -> None:
    part = MomentsAccountant(
        central_epsilon=2.0,
        central_delta=1e-6,
        cohort_size=50,
        central_num_iterations=1500,
        population=population,
    )
    assert claimed_multiplier(part) == pytest.approx(PFL[population], rel=2e-4)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_epsilon_2_is_46_9_at_the_rate_of_the_data_and_hundreds_of_thousands_as_run() -> None:
    document = LIBRARY.document([*BASELINE, "users=1000"])
    claimed, real, drawn = (row["epsilon"] for row in document["table"])
    assert claimed == pytest.approx(2, rel=1e-3)
    assert real == pytest.approx(46.9, abs=0.05)
    accountant = PLDAccountant()
    accountant.compose(dpa.PoissonSampledDpEvent(0.05, dpa.GaussianDpEvent(PFL[1e6])), 1500)
    assert real == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)
    # Without sampling: mu^2/2 + mu sqrt(2 ln(1/delta)) is a little above, and mu^2/2 below.
    mu = math.sqrt(1500) / (PFL[1e6] * 0.05)
    assert mu * mu / 2 < drawn < (mu * mu / 2 + mu * math.sqrt(2 * math.log(1e6))) * (1 + 1e-3)
    assert [each["epsilon"] for each in document["guarantees"]] == [None, drawn, drawn]
    assert "a simulation of a larger federation" in document["words"]


def test_noise_for_one_round_composes() -> None:
    words = ["central_privacy_mechanism=gaussian", "central_epsilon=1", "cohort_size=50"]
    once, whole = (
        row["epsilon"] for row in LIBRARY.document([*words, "central_num_iterations=100"])["table"]
    )
    assert once == pytest.approx(1, rel=1e-6)
    assert whole > 10


def test_benchmarks_without_a_mechanism_have_no_guarantee() -> None:
    document = LIBRARY.document(["cohort_size=50"])
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
    assert "nobody adds noise" in document["words"]


def test_sizes_that_contradict_each_other_are_refused_together() -> None:
    with pytest.raises(InputError) as refused:
        LIBRARY.document([*BASELINE[:5], "cohort_size=2000", "users=1500", "population=500"])
    assert str(refused.value).splitlines() == [
        "users=1500: must be at least cohort_size = 2000.",
        "noise_cohort_size=1000: must be at least cohort_size = 2000. "
        "pfl refuses noise for fewer users than there are in a cohort.",
    ]
    with pytest.raises(InputError, match="population=500: must be at least noise_cohort_size = 1000"):
        LIBRARY.document([*BASELINE[:7], "population=500"])


SINGLE = ["central_privacy_mechanism=gaussian", "central_epsilon=1", "cohort_size=50"]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("word", ["weight_by_samples=true", "weighting=token", "weighting=clip_token"])
def test_a_total_weight_without_noise_has_no_guarantee(word: str) -> None:
    """The noised sum over W: with one update of zero or of many records, W alone decides the quotient's noise."""
    for mechanism in (SINGLE, [*BASELINE[:4], "cohort_size=1000", "population=1e5"]):
        document = LIBRARY.document([*mechanism, word, "central_num_iterations=3"])
        assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
        assert "the total weight of the users" in document["guarantees"][1]["words"]


def test_equal_weights_are_divided_by_a_public_number_and_the_seed_is_replaced() -> None:
    assumptions = LIBRARY.document([*SINGLE, "seed=7", "weighting=user"])["guarantees"][1]["assumptions"]
    assert assumptions[0].startswith("a secret seed replaces seed = 7")
    assert any("divided by the cohort size, which is public" in text for text in assumptions)
    default = LIBRARY.document(SINGLE)["guarantees"][1]["assumptions"]
    assert default[0].startswith("a secret seed replaces seed = 0")


@pytest.mark.parametrize("name", ["laplace", "banded_matrix_factorization"])
def test_mechanisms_that_are_not_read_state_it_to_each_observer(name: str) -> None:
    document = LIBRARY.document([f"central_privacy_mechanism={name}", "central_epsilon=2", "population=1e6"])
    assert document["table"] == []
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
    assert "is not read here" in document["guarantees"][1]["words"]


def test_noise_beyond_pfls_search_and_an_epsilon_without_noise_are_refused() -> None:
    words = [*BASELINE[:1], "central_delta=1e-6", "cohort_size=1000", "population=1000"]
    with pytest.raises(InputError, match=r"central_epsilon=0\.01: takes more noise than 100 x the clipping"):
        LIBRARY.document([*words, "central_epsilon=0.01", "central_num_iterations=200"])
    with pytest.raises(InputError, match=r"central_epsilon=1e-200: must be at least 0\.0001"):
        LIBRARY.document([*words, "central_epsilon=1e-200"])


def test_the_settings_of_other_mechanisms_are_read_and_have_no_effect() -> None:
    """Published configs name an epsilon beside `none`; pfl reads every argument whichever mechanism is named."""
    document = LIBRARY.document(["central_privacy_mechanism=none", "central_epsilon=2", "population=1e6"])
    assert [each["epsilon"] for each in document["guarantees"]] == [None] * 3
