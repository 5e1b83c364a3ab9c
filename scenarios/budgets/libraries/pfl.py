"""pfl-research: the benchmarks' central mechanisms, as `benchmarks/*/configs/*.yaml` set them.

Read from pfl 0.6.0: `privacy/privacy_accountant.py`, `privacy/gaussian_mechanism.py`, `data/sampling.py`, and
`benchmarks/utils/argument_parsing.py`, which names the settings and their defaults.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.errors import Finding
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.delta import LEAST_DELTA
from fedprivacy.scenario.kinds import Kind
from scenarios.budgets.libraries.cost import Against, Cost, Release, against_models
from scenarios.budgets.libraries.library import Library
from scenarios.budgets.question import MAX_ROUNDS

LEAST_EPSILON = 1e-4  # less takes more noise than accountants know
MOST_NOISE = 100.0  # where pfl's search for noise ends
CLAIMED = "add-remove"  # the relation of pfl's accountants
_SERVER = "the server is trusted: it sees the updates without noise"
_ASSUMPTIONS = (
    "the server is honest: it sees every update, adds the noise and releases nothing else",
    'no user is drawn twice into a cohort: pfl\'s sampler "random" draws with replacement, and then a user '
    "moves the sum several times as far",
    "the noised sum is divided by the cohort size, which is public and the same whoever takes part: pfl "
    "divides by the total weight, to which it adds no noise",
    "metrics of training and evaluation are not counted: no noise protects them",
)
_WEIGHTED = (
    "pfl divides the noised sum by the total weight of the users, which depends on their records and has no "
    "noise: the quotient gives it away"
)
_DRAWN = "whoever is drawn stays secret, and each user is drawn by its own coin, as the accountant assumes"


class Central(Section):
    """The settings of all central mechanisms: pfl reads each, whichever mechanism is named."""

    central_epsilon: float = Field(1.0, ge=LEAST_EPSILON, le=1e6)
    central_delta: float = Field(1e-5, ge=LEAST_DELTA, lt=1)
    central_privacy_clipping_bound: float = Field(1.0, gt=0)
    cohort_size: int = Field(1000, ge=1, le=10**9, description="Users in each round.")
    noise_cohort_size: int = Field(1000, ge=1, le=10**9)
    central_num_iterations: int = Field(200, ge=1, le=MAX_ROUNDS)
    population: float = Field(1e7, ge=1, le=1e12, description="The assumed number of users.")
    weight_by_samples: bool = False
    weighting: Literal["user", "token", "sqrt_token", "cuberoot_token", "log_token", "clip_token"] = "user"
    seed: int = Field(0, description="Of all random numbers, the noise among them.")
    users: int | None = Field(None, ge=1, le=10**12, description="How many users the data have.")

    @property
    def weighted(self) -> bool:
        """Whether users have weights that depend on their records."""
        return self.weight_by_samples or self.weighting != "user"


class MomentsAccountant(Central):
    """`gaussian_moments_accountant`: noise for all rounds, by an accountant (of PLDs)."""

    central_privacy_mechanism: Literal["gaussian_moments_accountant"] = "gaussian_moments_accountant"


class SingleIteration(Central):
    """`gaussian`: noise for one round alone."""

    central_privacy_mechanism: Literal["gaussian"] = "gaussian"


class Laplace(Central):
    """`laplace`: noise for one round, by the sum of absolute values."""

    central_privacy_mechanism: Literal["laplace"] = "laplace"


class BandedMatrixFactorization(Central):
    """`banded_matrix_factorization`: noise that is correlated between rounds."""

    central_privacy_mechanism: Literal["banded_matrix_factorization"] = "banded_matrix_factorization"


class Clipping(Central):
    """`norm_clipping_only`."""

    central_privacy_mechanism: Literal["norm_clipping_only"] = "norm_clipping_only"


class NoMechanism(Central):
    """`none`, the default of the benchmarks."""

    central_privacy_mechanism: Literal["none"] = "none"


# Mechanisms without a guarantee, and the reason.
_REASONS: dict[type[Section], str] = {
    NoMechanism: "nobody adds noise",
    Clipping: "clipping alone is a heuristic: nobody adds noise",
    Laplace: (
        "pfl's Laplace noise is not read here: it is for one round and for updates clipped by the sum of "
        "their absolute values, and the ledger has no such release of whole updates"
    ),
    BandedMatrixFactorization: (
        "pfl's banded matrix factorization is not read here: its cost depends on the factorization that pfl "
        "computes, and on how far apart the rounds of a user are"
    ),
}


class Pfl(Library):
    """Reads and accounts for pfl's settings."""

    name: ClassVar[str] = "pfl"
    title: ClassVar[str] = "pfl-research 0.6"
    kind: ClassVar[Kind] = Kind(
        {
            "gaussian_moments_accountant": MomentsAccountant,
            "gaussian": SingleIteration,
            "laplace": Laplace,
            "banded_matrix_factorization": BandedMatrixFactorization,
            "norm_clipping_only": Clipping,
            "none": NoMechanism,
        },
        "central_privacy_mechanism",
        "mechanism",
    )
    adjacency: ClassVar[str] = CLAIMED

    def infer(self, table: dict[str, object]) -> str | None:
        """As `Library` has it."""
        return "none"

    def findings(self, part: Section, adjacency: str) -> list[Finding]:
        """As `Library` has it."""
        assert isinstance(part, Central)
        mistakes = []
        if part.users is not None and part.users < part.cohort_size:
            what = f"must be at least cohort_size = {part.cohort_size}"
            mistakes.append(Finding(("users",), what, shown=str(part.users)))
        if isinstance(part, MomentsAccountant):
            largest = max(part.cohort_size, part.noise_cohort_size)
            if part.cohort_size > part.noise_cohort_size:
                what = f"must be at least cohort_size = {part.cohort_size}"
                remedy = "pfl refuses noise for fewer users than there are in a cohort."
                mistakes.append(Finding(("noise_cohort_size",), what, remedy, str(part.noise_cohort_size)))
            elif part.population < largest:
                what = f"must be at least noise_cohort_size = {largest}"
                mistakes.append(Finding(("population",), what, shown=f"{part.population:g}"))
            elif not _reached(part):
                what = f"takes more noise than {MOST_NOISE:g} x the clipping bound, where pfl's search ends"
                remedy = "Give a larger epsilon or population, or fewer rounds."
                mistakes.append(Finding(("central_epsilon",), what, remedy, f"{part.central_epsilon:g}"))
        return mistakes

    def cost(self, part: Section, adjacency: str) -> Cost:
        """As `Library` has it."""
        if isinstance(part, MomentsAccountant):
            return _by_accountant(part, adjacency)
        if isinstance(part, SingleIteration):
            return _single(part, adjacency)
        reason = _REASONS[type(part)]
        claim = f"pfl states no epsilon: {reason}. The benchmarks' configs name one in a comment alone."
        if isinstance(part, Laplace | BandedMatrixFactorization):
            claim = f"pfl names epsilon = {part.central_epsilon:g}."
        return Cost("central", None, None, claim, [], against_models(None, (reason,), _SERVER))


def _composed(noise: float, rate: float, rounds: int) -> dp.DpEvent:
    """Rounds of Gaussian noise on the sum of users who are each drawn by a coin."""
    release: dp.DpEvent = dp.GaussianDpEvent(noise)
    return dp.SelfComposedDpEvent(release if rate == 1 else dp.PoissonSampledDpEvent(rate, release), rounds)


def claimed_multiplier(part: MomentsAccountant) -> float:
    """The noise that reaches the claim at the assumed population, relative to the clipping bound."""
    rate = part.noise_cohort_size / part.population
    event = partial(_composed, rate=rate, rounds=part.central_num_iterations)
    return noise_multiplier(event, part.central_epsilon, part.central_delta, CLAIMED)


def _reached(part: MomentsAccountant) -> bool:
    """Whether the noise at which pfl's search ends is enough for the claim."""
    rate = part.noise_cohort_size / part.population
    spent = epsilon(_composed(MOST_NOISE, rate, part.central_num_iterations), part.central_delta, CLAIMED)
    return spent.epsilon <= part.central_epsilon


def _against(part: Central, release: Release, assumed: tuple[str, ...] = ()) -> list[Against]:
    """The guarantees of all models, or the reason for none where a total weight gives records away."""
    if part.weighted:
        return against_models(None, (_WEIGHTED,), _SERVER)
    seed = f"a secret seed replaces seed = {part.seed}, from which pfl draws the noise and the cohorts"
    return against_models(release, (seed, _DRAWN, *assumed, *_ASSUMPTIONS), _SERVER)


def _release(part: Central, name: str, noise: float, delta: float, adjacency: str) -> Release:
    """The models of a run on the data's users, or on the assumed ones where `users` is not given."""
    assumed = part.population if isinstance(part, MomentsAccountant) else part.cohort_size
    users = float(part.users or assumed)
    rate = part.cohort_size / users
    words = "no amplification by sampling"
    if rate < 1:
        words = f"Poisson sampling of {part.cohort_size:,} users of {users:,.0f} on average"
    rounds = part.central_num_iterations
    return Release(name, _composed(noise, rate, rounds), delta, adjacency, words, rounds)


def _by_accountant(part: MomentsAccountant, adjacency: str) -> Cost:
    delta, rounds = part.central_delta, part.central_num_iterations
    z, scale = claimed_multiplier(part), part.cohort_size / part.noise_cohort_size
    rate = part.noise_cohort_size / part.population
    sampled = f"Poisson sampling of {part.noise_cohort_size:,} users of {part.population:,.0f} on average"
    claimed = Release(
        "as claimed, with as many users as assumed",
        _composed(z, rate, rounds),
        delta,
        adjacency,
        sampled,
        rounds,
    )
    real = _release(part, "with that noise, on the users of the data", z, delta, adjacency)
    drawn = _release(part, "with the noise that the run adds", z * scale, delta, adjacency)
    figures = [claimed]
    if part.users is not None:
        figures.append(real)
    if scale < 1:
        figures.append(drawn)
    stated = real if scale == 1 else drawn
    assumed = () if part.users else (f"there are {part.population:,.0f} users, as the config assumes",)
    claim = (
        f"pfl states epsilon = {part.central_epsilon:g} at delta = {delta:g} for {rounds:,} rounds of "
        f"{part.noise_cohort_size:,} users out of {part.population:,.0f} (add-remove), and takes noise of "
        f"standard deviation {z:.4g} x the clipping bound for it."
    )
    if scale < 1:
        claim += (
            f" With cohorts of {part.cohort_size:,} it then adds {scale:g} of that, {z * scale:.4g} x the "
            "bound: a simulation of a larger federation, whose epsilon is not that of the users in the data."
        )
    return Cost(
        "central",
        part.central_epsilon,
        delta,
        claim,
        figures,
        _against(part, stated, assumed),
    )


def _single(part: SingleIteration, adjacency: str) -> Cost:
    delta = part.central_delta
    z = Gaussian.calibrated(part.central_epsilon, delta, CLAIMED).noise_multiplier
    whole = _release(part, "all rounds", z, delta, adjacency)
    once = Release("one round", dp.GaussianDpEvent(z), delta, adjacency, "no amplification by sampling", 1)
    claim = (
        f"pfl states epsilon = {part.central_epsilon:g} at delta = {delta:g} for one round (add-remove), by "
        f"noise of standard deviation {printed(z)} x the clipping bound, and does not compose its rounds."
    )
    return Cost("central", part.central_epsilon, delta, claim, [once, whole], _against(part, whole))


LIBRARY = Pfl()
