"""`budget gaussian`: epsilon to noise and back, from the same plan objects that a run uses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.combinations import (
    COHORT_WITHIN_POPULATION,
    CYCLIC,
    GROUPS_HAVE_ENOUGH_CLIENTS,
    NO_GROUP_IS_EMPTY,
    RULES,
    Terms,
    problems,
    publishes_one,
)
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.band_search import least_error, numbers_of_bands, plans_by_bands, squared_error
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import (
    AllSampling,
    CyclicPoissonSampling,
    FixedSampling,
    PoissonSampling,
    Sampler,
    SeparatedSampling,
)
from scenarios.budgets.command_options import GaussianOptions
from scenarios.budgets.question import (
    ADJACENCIES,
    CLIENTS,
    DELTA,
    ROUNDS,
    Question,
    Range,
    flag,
    plural,
    promise,
)

BANDS = Range(1, 10**4)
RATE = Range(0, 1, above=True)
PLAN_RULES = (COHORT_WITHIN_POPULATION, GROUPS_HAVE_ENOUGH_CLIENTS, NO_GROUP_IS_EMPTY, *RULES)
OPTIONS_OF_TERMS = {
    **{term: flag(term) for term in ("adjacency", "population", "rounds", "cohort", "separation", "bands")},
    "sampling": "",  # it follows from the others
}
_DENSE = 1000  # rounds whose dense matrix is evaluated within a second


class GaussianQuestion(GaussianOptions, Question):
    """Answers `budget gaussian`; exactly one of noise and epsilon is given."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        cohort, separation = self.cohort, self.separation
        drawn = self.sampling_rate is not None or cohort is not None
        population = self._in(CLIENTS, "population")
        checks = [
            (
                separation is not None and drawn,
                "--separation: without --sampling-rate and --cohort, whose secrecy it does without.",
            ),
            (
                self.sampling_rate is not None and cohort is not None,
                "--sampling-rate, --cohort: give one: Poisson sampling, or a cohort of fixed size.",
            ),
            (
                cohort is not None and self.population is None,
                "--cohort: a cohort of fixed size needs --population too.",
            ),
            (
                self.compare_bands and None in (self.epsilon, self.sampling_rate, self.bands),
                "--compare-bands: needs --epsilon, --sampling-rate and --bands.",
            ),
            (
                publishes_one(self.delta, population),
                f"--delta {self.delta}: must be below 1/population = {1 / (population or 1):.3g}.",
            ),
        ]
        return [
            self.not_exactly_one("epsilon", "noise_multiplier"),
            self.out_of_range("epsilon", Range(0, 1e6, "1 to 8 is usual", above=True)),
            self.out_of_range("noise_multiplier", Range(0.01, 1e7, "0.5 to 20 is usual")),
            self.out_of_range("delta", DELTA),
            self.out_of_range("rounds", ROUNDS),
            self.out_of_range("sampling_rate", RATE),
            self.out_of_range("population", CLIENTS),
            self.out_of_range("cohort", CLIENTS),
            self.out_of_range("separation", BANDS),
            self.out_of_range("bands", BANDS),
            *(str(problem) for problem in problems(self._terms(), PLAN_RULES)),
            *(text for wrong, text in checks if wrong),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the budget of rounds of Gaussian noise: noise for epsilon, or epsilon for noise."""
        plan = Plan(
            trust="central",
            unit="client",
            adjacency=self.adjacency,
            population=self.population or self.separation or 1,
            rounds=self.rounds,
            sampler=self._sampler(),
            mechanism=self._mechanism(),
            delta=self.delta,
        )
        calibrated = plan if self.epsilon is None else plan.calibrate(self.epsilon)
        document = _document(calibrated, self.epsilon)
        if self.compare_bands:
            assert self.epsilon is not None
            errors, sentence = self._by_bands(plan, self.epsilon)
            document["squared_errors"] = {str(bands): error for bands, error in errors.items()}
            document["words"] += f" {sentence}"
        return document

    def _in(self, allowed: Range, option: str) -> int | None:
        """Returns the value of an option; None where it is not given, or out of its range."""
        value: int | None = getattr(self, option)
        return value if value is not None and value in allowed else None

    def _terms(self) -> Terms:
        """Returns the terms of the plan, as far as the options are valid by themselves."""
        rate, apart = self.sampling_rate, self.separation is not None
        coins = "poisson" if self.bands is None else CYCLIC
        drawn = coins if rate is not None else "all" if self.cohort is None else "fixed"
        return Terms(
            trust="central",
            unit="client",
            adjacency=self.adjacency,
            population=self._in(CLIENTS, "population"),
            rounds=self._in(ROUNDS, "rounds"),
            sampling="separated" if apart else drawn,
            cohort=1 if apart else self._in(CLIENTS, "cohort"),
            separation=self._in(BANDS, "separation"),
            rate=rate if rate is not None and rate in RATE else None,
            bands=self._in(BANDS, "bands"),
            names=OPTIONS_OF_TERMS,
        )

    def _sampler(self) -> Sampler:
        if self.sampling_rate is not None:
            if self.bands is not None:
                return CyclicPoissonSampling(self.sampling_rate, self.bands)
            return PoissonSampling(self.sampling_rate)
        if self.separation is not None:
            return SeparatedSampling(1, self.separation)
        return AllSampling() if self.cohort is None else FixedSampling(self.cohort)

    def _mechanism(self) -> Gaussian:
        noise = self.noise_multiplier or 0.0
        return (
            Gaussian(1.0, noise)
            if self.bands is None
            else BandedGaussian(1.0, noise, self.bands, self.rounds)
        )

    def _by_bands(self, plan: Plan, epsilon: float) -> tuple[dict[int, float], str]:
        """Returns the squared errors of numbers of bands at the same epsilon, and the least in words."""
        assert isinstance(plan.sampler, CyclicPoissonSampling)
        numbers = numbers_of_bands(plan.sampler.rate, plan.rounds, self.population)
        plans = plans_by_bands(plan, epsilon, numbers)
        errors = {bands: squared_error(each) for bands, each in plans.items()}
        least = least_error(plans).terms.bands or 1
        poisson = "Poisson sampling itself" if least == 1 else f"where Poisson sampling has {errors[1]:.4g}"
        return errors, (
            f"At this epsilon the least noise of {plural(len(errors), 'number')} of bands is that of "
            f"{least}: its squared error over all rounds is {errors[least]:.4g} C^2 per coordinate, "
            f"{poisson}."
        )


def _document(plan: Plan, epsilon: float | None) -> dict[str, Any]:
    spent, once = plan.spent(), replace(plan, rounds=1).spent()
    assert plan.delta is not None
    amplified = plan.sampler.name in ("poisson", "fixed", CYCLIC)
    drawn = plan.to_json()["sampler"]
    apart = plan.sampler.name == "separated"
    who = f"each client in one of {plan.separation} in a row at most" if apart else plan.sampler.words
    words = (
        f"Gaussian noise of standard deviation {plan.noise_multiplier:.6g} x C on the sum of updates "
        f"clipped to L2 norm C, in {plural(plan.rounds, 'round')} with {who}, costs "
        f"{promise(spent.epsilon, plan.delta, plan.adjacency, spent.accountant)}. "
        f"One round alone costs epsilon = {printed(once.epsilon)} at delta = {plan.delta:g}."
    )
    if amplified and "not counted" not in spent.accountant:
        words += (
            " This counts on sampling: it holds against whoever does not learn who was in a cohort "
            "(participants and outsiders), not against the server that draws it."
        )
    else:
        words += " It holds against those who see the noisy sums, not against whoever adds the noise."
    if plan.banded is not None:
        words += _in_models(plan.banded)
    other: dict[str, float | None] = {"mu": None, "rho": None, "lectures_noise_multiplier": None}
    if plan.rounds == 1 and plan.sampler.name == "all":
        other, sentence = _one_release(plan, spent.epsilon if epsilon is None else epsilon)
        words += f" {sentence}"
    return {
        "epsilon": spent.epsilon,
        "delta": plan.delta,
        "noise_multiplier": plan.noise_multiplier,
        "rounds": plan.rounds,
        "sampling": {key: value for key, value in drawn.items() if not (apart and key == "cohort")},
        "unit": plan.unit,
        "adjacency": plan.adjacency,
        "accountant": spent.accountant,
        "epsilon_of_one_round": once.epsilon,
        **({} if plan.banded is None else {"bands": plan.banded.bands}),
        **other,
        "words": words,
    }


def _in_models(mechanism: BandedGaussian) -> str:
    """Describes the benefit of correlation; without figures for many rounds, where they take long."""
    shared = plural(min(mechanism.bands, mechanism.rounds), "round")
    words = f" That is of what is drawn; over {shared} the noise is correlated (banded matrix factorisation)"
    if mechanism.rounds > _DENSE:
        return f"{words}."
    ours, alone = (math.sqrt(variant.error(1)) for variant in (mechanism, replace(mechanism, bands=1)))
    return (
        f"{words}, and in the sum of all rounds so far, a model under plain averaging, its standard "
        f"deviation is {ours:.4g} x C (root mean square over rounds), where independent noise "
        f"leaves {alone:.4g} x C."
    )


def _one_release(plan: Plan, epsilon: float) -> tuple[dict[str, float | None], str]:
    """Returns other parameters of a single release, and the lectures' noise, as fields and in words.

    Args:
        plan: Of one round without sampling.
        epsilon: For which the lectures' formula is evaluated; it is proved in (0, 1] only.
    """
    release = plan.mechanism
    assert isinstance(release, Gaussian)
    assert plan.delta is not None
    mu, rho = release.mu(plan.adjacency), release.rho(plan.adjacency)
    changed, lectures = mu * release.noise_multiplier, None
    if 0 < epsilon <= 1:
        lectures = Gaussian.lectures(epsilon, plan.delta, plan.adjacency).noise_multiplier
    words = (
        f"This one release has mu = {printed(mu, 6)} (Gaussian DP) and rho = {printed(rho, 6)} (zCDP); the "
        f"lectures' formula, S2 sqrt(2 ln(1.25/delta))/epsilon with S2 = {changed:g} C, "
    )
    if lectures is None:
        words += "does not apply: it is proved for an epsilon above 0 and at most 1 alone."
    else:
        words += f"takes a standard deviation of {lectures:.6g} x C for the same."
    return {"mu": mu, "rho": rho, "lectures_noise_multiplier": lectures}, words
