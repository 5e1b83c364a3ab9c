"""`budget gaussian`: populations, and the other parameters of one release."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.strategy_matrix import best_strategy
from scenarios.budgets.gaussian import GaussianQuestion


@pytest.mark.parametrize("population", [0, -5, 10**13])
def test_a_population_out_of_range_is_refused(population: int) -> None:
    for cohort in (None, 1):
        with pytest.raises(InputError) as refused:
            GaussianQuestion(epsilon=1.0, population=population, cohort=cohort).document()
        assert str(refused.value) == f"--population {population}: must be from 1 to 1e+12."


def test_a_delta_of_one_client_and_a_cohort_beyond_the_population_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        GaussianQuestion(epsilon=1.0, population=100, cohort=101, delta=0.01).document()
    first, second = str(refused.value).splitlines()
    assert first == "--cohort 101: larger than the population of 100 clients. At most 100."
    assert second == "--delta 0.01: must be below 1/population = 0.01."


@pytest.mark.parametrize(("adjacency", "changed"), [("replace-one", 2), ("add-remove", 1), ("zero-out", 1)])
def test_one_release_has_mu_rho_and_the_lectures_noise(adjacency: str, changed: int) -> None:
    document = GaussianQuestion(epsilon=0.5, delta=1e-5, adjacency=adjacency).document()
    assert document["mu"] == pytest.approx(changed / document["noise_multiplier"])
    assert document["rho"] == pytest.approx(document["mu"] ** 2 / 2)
    lectures = document["lectures_noise_multiplier"]
    assert lectures == pytest.approx(changed * math.sqrt(2 * math.log(1.25e5)) / 0.5)
    assert lectures > document["noise_multiplier"]
    for said in (f"{lectures:.6g} x C", "(Gaussian DP)", "(zCDP)", f"S2 = {changed} C"):
        assert said in document["words"]
    back = GaussianQuestion(noise_multiplier=lectures, delta=1e-5, adjacency=adjacency).document()
    assert back["epsilon"] < 0.5
    assert back["lectures_noise_multiplier"] > lectures  # for the smaller epsilon


def test_the_lectures_formula_is_not_used_beyond_its_proof() -> None:
    document = GaussianQuestion(epsilon=1.01).document()
    assert document["lectures_noise_multiplier"] is None
    assert document["mu"] > 0
    assert "proved for an epsilon above 0 and at most 1" in document["words"]


@pytest.mark.parametrize("several", [{"rounds": 2}, {"sampling_rate": 0.1}, {"cohort": 5, "population": 50}])
def test_several_or_sampled_rounds_have_none_of_them(several: dict[str, float]) -> None:
    document = GaussianQuestion(epsilon=0.5, **several).document()
    assert [document[key] for key in ("mu", "rho", "lectures_noise_multiplier")] == [None, None, None]
    assert "lectures" not in document["words"]


def test_answers_that_lie_apart_cost_as_many_rounds_as_there_are_answers() -> None:
    asked = {"epsilon": 2.0, "rounds": 40}
    apart = GaussianQuestion(**asked, separation=8).document()
    banded = GaussianQuestion(**asked, separation=8, bands=8).document()
    assert apart["noise_multiplier"] == banded["noise_multiplier"]
    assert apart["noise_multiplier"] == pytest.approx(
        GaussianQuestion(epsilon=2.0, rounds=5).document()["noise_multiplier"], rel=1e-6
    )
    assert apart["sampling"] == banded["sampling"] == {"name": "separated", "separation": 8}
    assert "This counts on sampling" not in apart["words"]
    matrix = best_strategy(40, 8).matrix()
    left = np.linalg.norm(np.tril(np.ones((40, 40))) @ np.linalg.inv(matrix)) / math.sqrt(40)
    assert f"is {left * banded['noise_multiplier']:.4g} x C" in banded["words"]
    assert (apart.get("bands"), banded["bands"]) == (None, 8)
    many = GaussianQuestion(epsilon=2.0, rounds=1001, separation=8, bands=8).document()["words"]
    assert "over 8 rounds the noise is correlated" in many
    assert "independent noise leaves" not in many
    assert f"leaves {math.sqrt(41 / 2) * banded['noise_multiplier']:.4g} x C" in banded["words"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bands": 8}, '--bands 8: .* sampling "all" does not keep to that. Set --separation 8, or'),
        ({"separation": 8, "bands": 9}, "--bands 9: larger than --separation 8: .* At most 8"),
        ({"separation": 8, "sampling_rate": 0.1}, "--separation: without --sampling-rate"),
        ({"separation": 8, "adjacency": "add-remove"}, "--adjacency add-remove: .* Use --adjacency zero-out"),
        (
            {"separation": 8, "population": 4},
            "--separation 8: 8 cohorts of 1 are 8 clients, and there are 4: .* At most 4.$",
        ),
        ({"separation": 0}, "--separation 0: must be from 1"),
        (
            {"separation": 9000, "bands": 5000, "rounds": 100_000},
            "--bands 5000: with 100000 rounds .* At most 1000",
        ),
    ],
)
def test_what_does_not_lie_apart_is_refused(options: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        GaussianQuestion(epsilon=2.0, **options).document()


def test_bands_with_a_rate_are_groups_and_the_best_number_is_named() -> None:
    options = {"rounds": 80, "sampling_rate": 0.125, "adjacency": "zero-out", "epsilon": 8.0}
    assert "squared_errors" not in GaussianQuestion(**options, bands=8).document()
    document = GaussianQuestion(**options, bands=8, compare_bands=True).document()
    assert document["sampling"] == {"name": "cyclic-poisson", "rate": 0.125, "groups": 8}
    errors = {int(bands): error for bands, error in document["squared_errors"].items()}
    assert list(errors) == [1, 2, 4, 8]
    assert min(errors, key=errors.__getitem__) == 8
    assert "the least noise of 4 numbers of bands is that of 8: its squared error" in document["words"]
    poisson = GaussianQuestion(**options).document()
    assert errors[1] == pytest.approx(poisson["noise_multiplier"] ** 2 * 80 * 81 / 2)
    with pytest.raises(InputError, match=r"--bands 9: rounds of 0\.125 of all clients do not fit.*At most 8"):
        GaussianQuestion(**options, bands=9).document()
    with pytest.raises(InputError, match=r"--bands 8: there are 5 clients.*At most 5"):
        GaussianQuestion(**options, bands=8, population=5).document()
    with pytest.raises(InputError, match=r"--compare-bands: needs .*--bands"):
        GaussianQuestion(**options, compare_bands=True).document()
    with pytest.raises(InputError, match=r"--bands 4.*--separation 4"):
        GaussianQuestion(rounds=80, epsilon=8.0, bands=4).document()
