"""Opacus: `PrivacyEngine.make_private`, for one record.

Read from the source of opacus 1.6: `privacy_engine.py`, `data_loader.py` and `accountants/`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, Literal

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.accounting.epsilon import epsilon_pld, epsilon_rdp
from fedprivacy.accounting.events import MAX_COUNT
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.errors import Finding, InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.guarantees.statement import printed
from fedprivacy.sampling.batches import Batches, PoissonBatches, ShuffledBatches
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.delta import LEAST_DELTA
from fedprivacy.scenario.kinds import Kind
from scenarios.budgets.libraries.cost import BEYOND, MOST_EPSILON, Cost, Release, against_models
from scenarios.budgets.libraries.library import Library
from scenarios.budgets.question import MAX_ROUNDS, plural

_ASSUMPTIONS = (
    "each client trains by Opacus alone and sends nothing else; the observer sees the model after its steps",
    "the divisor of the gradient (the expected batch size) is fixed without looking at how many records "
    "there are, and their number is public",
    "no other layer mixes records (Opacus' validator refuses BatchNorm), and all gradients go through it",
    "learning rates, scalers and the choice of settings do not depend on the records",
    "nobody knows or repeats the noise: secure_mode is off by default, and a seed set by the script gives it "
    "away",
    "accuracy and loss are not shown to the observer",
)
_WITHOUT_REPLACEMENT = "the data loader draws each record at most once an epoch, without replacement"
_SECRET = "the observer does not learn which records were in a batch"


class MakePrivate(Section):
    """`make_private(noise_multiplier, max_grad_norm, poisson_sampling)` and the data that it gets."""

    noise_multiplier: float = Field(
        ge=0,
        le=1e7,
        examples=[1.1],
        description="The optimizer of Opacus has it.",
    )
    max_grad_norm: float = Field(1.0, gt=0)
    dataset_size: int = Field(ge=1, le=10**9, examples=[60000], description="Records of the client.")
    batch_size: int | None = Field(None, ge=1, le=10**9, description="Of the data loader.")
    drop_last: bool = Field(False, description="Of the data loader.")
    sample_rate: float | None = Field(None, ge=1e-12, le=1)
    epochs: int = Field(1, ge=1, le=MAX_ROUNDS, description="In a round.")
    rounds: int = Field(1, ge=1, le=MAX_ROUNDS, description="Rounds in which the client trains.")
    poisson_sampling: bool = True
    accountant: Literal["prv", "rdp", "gdp"] = "prv"
    delta: float = Field(1e-5, ge=LEAST_DELTA, lt=1)


class Opacus(Library):
    """Reads and accounts for Opacus' settings."""

    name: ClassVar[str] = "opacus"
    title: ClassVar[str] = "Opacus 1.6"
    kind: ClassVar[Kind] = Kind({"": MakePrivate})
    adjacency: ClassVar[str] = "add-remove"

    def findings(self, part: Section, adjacency: str) -> list[Finding]:
        """As `Library` has it."""
        assert isinstance(part, MakePrivate)
        if (part.batch_size is None) == (part.sample_rate is None):
            return [Finding(("batch_size",), "give exactly one of batch_size and sample_rate")]
        if part.batch_size is None:
            if not part.poisson_sampling:
                return [Finding(("sample_rate",), "batches without Poisson sampling have a batch_size")]
            if part.drop_last:
                return [Finding(("drop_last",), "has no effect with sample_rate", "Remove it.")]
        elif part.batch_size > part.dataset_size:
            what = f"must be at most dataset_size = {part.dataset_size}"
            return [Finding(("batch_size",), what, shown=str(part.batch_size))]
        if part.delta >= 1 / part.dataset_size:
            what = f"must be below 1/dataset_size = {1 / part.dataset_size:.3g}"
            remedy = (
                f"Give delta below {1 / part.dataset_size:.3g}, as in delta={0.1 / part.dataset_size:.1g}."
            )
            return [Finding(("delta",), what, remedy, f"{part.delta:g}")]
        if (steps := _poisson(part, part.epochs * part.rounds).steps) > MAX_COUNT:
            what = f"epochs x rounds x batches = {steps:.3g}: must be at most {MAX_COUNT:.0e}"
            return [Finding(("epochs",), what, "Give fewer epochs or rounds, or larger batches.")]
        return []

    def cost(self, part: Section, adjacency: str) -> Cost:
        """As `Library` has it."""
        assert isinstance(part, MakePrivate)
        records, passes = part.dataset_size, part.epochs * part.rounds
        poisson = _poisson(part, passes)
        batches: Batches = poisson
        secret: tuple[str, ...] = (_SECRET,)
        drawn = _drawn(part, poisson)
        if not part.poisson_sampling:
            batches, secret = ShuffledBatches(passes, part.batch_size), (_WITHOUT_REPLACEMENT,)
            drawn = f"batches of {plural(passes, 'shuffled epoch')}"
        release = dp.GaussianDpEvent(part.noise_multiplier)
        stated = Release(
            f"{plural(part.epochs, 'epoch')} in {plural(part.rounds, 'round')}",
            batches.event(release, records),
            part.delta,
            adjacency,
            drawn,
            part.rounds,
            "example",
        )
        claimed = _claimed(part, poisson.event(release, records))
        figures = [stated]
        if adjacency != "replace-one":
            figures.append(replace(stated, adjacency="replace-one"))
        return Cost(
            "local",
            claimed,
            part.delta,
            _claim(part, poisson, claimed),
            figures,
            against_models(stated, (*secret, *_ASSUMPTIONS)),
        )


def _poisson(part: MakePrivate, passes: int) -> PoissonBatches:
    """The batches that Opacus' accountant counts: as many coins as the loader has batches, 1/rate a pass."""
    if part.batch_size is not None:
        whole, rest = divmod(part.dataset_size, part.batch_size)
        steps = whole + (rest > 0 and not part.drop_last)  # len(data_loader)
        return PoissonBatches(passes * steps, rate=1 / steps)
    assert part.sample_rate is not None
    return PoissonBatches(math.ceil(passes / part.sample_rate * (1 - 1e-12)), rate=part.sample_rate)


def _drawn(part: MakePrivate, batches: PoissonBatches) -> str:
    """The batches of all rounds, in words."""
    return (
        f"{plural(batches.steps, 'Poisson draw')} of {part.dataset_size:,} records at rate {batches.rate:.4g}"
    )


def _claimed(part: MakePrivate, event: dp.DpEvent) -> float | None:
    """The epsilon that Opacus' accountant reports, up to its grid or orders; None where it has none."""
    if part.noise_multiplier == 0:
        return None
    if part.accountant == "gdp":
        return _of_use(gaussian_epsilon(part.delta, central_limit_mu(part)))
    account = epsilon_rdp if part.accountant == "rdp" else epsilon_pld
    try:
        reported = account(event, part.delta, "add-remove")
    except InputError:  # UnsupportedEvent: out of the accountant's range
        return None
    return _of_use(reported)


def _of_use(reported: float) -> float | None:
    return reported if reported <= MOST_EPSILON else None


def central_limit_mu(part: MakePrivate) -> float:
    """The mu of the "gdp" accountant: rate sqrt(steps (e^(1/sigma^2) - 1)), a limit and no bound.

    Bu, Dong, Long and Su 2020; Opacus warns that it underestimates (Gopi, Lee and Wutschitz 2021).
    """
    poisson = _poisson(part, part.epochs * part.rounds)
    assert poisson.rate is not None
    exponent = min(1 / part.noise_multiplier / part.noise_multiplier, 500.0)
    return poisson.rate * math.sqrt(poisson.steps * math.expm1(exponent))


def _claim(part: MakePrivate, poisson: PoissonBatches, claimed: float | None) -> str:
    if claimed is None:
        reason = str(Assume.NOISE_IS_ZERO) if part.noise_multiplier == 0 else BEYOND
        return f"Opacus reports no epsilon of use: {reason}."
    text = (
        f"Opacus' accountant {part.accountant} reports epsilon = {printed(claimed)} at delta = "
        f"{part.delta:g} for one record added or removed (example, add-remove), for "
        f"{_drawn(part, poisson)}, and nothing for a whole client."
    )
    if part.accountant == "gdp":
        text += " That is a limit theorem and no bound: it may be below the cost."
    if not part.poisson_sampling:
        text += " Here batches are shuffled, which it counts as Poisson batches: its figure does not hold."
    return text


LIBRARY = Opacus()
