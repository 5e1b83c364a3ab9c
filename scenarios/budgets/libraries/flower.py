"""Flower: `LocalDpMod`, and the strategy wrappers with fixed and with adaptive clipping.

Read from the source of flwr 1.41: `clientapp/mod/localdp_mod.py`, `clientapp/mod/centraldp_mods.py`,
`serverapp/strategy/dp_fixed_clipping.py`, `dp_adaptive_clipping.py` and `supercore/differential_privacy.py`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.errors import Finding, InputError, KeyPath
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.delta import LEAST_DELTA
from fedprivacy.scenario.kinds import Kind
from scenarios.budgets.libraries.cost import Cost, Release, against_models
from scenarios.budgets.libraries.library import ALWAYS_SENT, Library
from scenarios.budgets.question import MAX_ROUNDS, plural

Positive = Annotated[float, Field(gt=0, examples=[1.0])]
Rounds = Annotated[int, Field(ge=1, le=MAX_ROUNDS, description="Rounds in which a client takes part.")]
Delta = Annotated[float, Field(ge=LEAST_DELTA, lt=1, description="1e-5 is usual.", examples=[1e-5])]
Clients = Annotated[int, Field(ge=1, le=10**9, description="Clients in each round.", examples=[100])]

# True of every mechanism of Flower.
_ARRAYS = (
    "every array of the model has at least one dimension (Flower neither clips nor noises single numbers), "
    "and every update is finite and not zero (others pass unclipped, or end in an error that the server sees)"
)
_METRICS = "metrics in replies (num-examples, losses) are not counted: no noise protects them"
_RANDOMNESS = (
    "nobody knows or repeats the noise, which comes from numpy's global generator: a seed set by the app "
    "gives it away"
)
_LOCAL = ("each client runs the mod, whatever the server requests", _ARRAYS, _METRICS, _RANDOMNESS)
_CENTRAL = (
    "the server is honest: it sees every update, adds the noise and releases nothing else",
    "each round has as many replies as num_sampled_clients: with fewer the noise is less, and Flower only "
    "warns",
    _ARRAYS,
    _METRICS,
    _RANDOMNESS,
)
_DIVIDES = "Flower's clipping divides by the norm, and cannot process an update of exactly zero"
_NEXT_TO_ZERO = f"the neighbour's update is next to zero: {_DIVIDES}"
_EQUAL = "all clients have the same weight (weighted_by_key, num-examples by default)"
_SERVER = "the server is trusted: it sees the updates without noise"
_ADAPTED = (
    "the noise is scaled with the clipping norm after its update, which may be far below the norm that "
    "clipped, by an amount that depends on the data"
)


class LocalDp(Section):
    """`LocalDpMod(clipping_norm, sensitivity, epsilon, delta)`."""

    mechanism: Literal["local"] = "local"
    epsilon: float = Field(gt=0, le=1e6, examples=[8.0], description="Of one message, by Flower.")
    delta: float = Field(ge=LEAST_DELTA, lt=1, examples=[1e-5])
    clipping_norm: Positive
    sensitivity: float = Field(ge=0, examples=[1.0], description="Flower sets the noise by it alone.")
    rounds: Rounds = 1


class FixedClipping(Section):
    """`DifferentialPrivacyServerSideFixedClipping`, and the wrapper whose clients clip."""

    mechanism: Literal["fixed-clipping"] = "fixed-clipping"
    noise_multiplier: float = Field(ge=0, le=1e7, examples=[1.0])
    clipping_norm: Positive
    num_sampled_clients: Clients
    population: int | None = Field(None, ge=1, le=10**12, description="Clients in all.")
    equal_weights: bool = False
    delta: Delta = 1e-5
    rounds: Rounds = 1


class AdaptiveClipping(Section):
    """`DifferentialPrivacyServerSideAdaptiveClipping`, and the wrapper whose clients clip."""

    mechanism: Literal["adaptive-clipping"] = "adaptive-clipping"
    noise_multiplier: float = Field(ge=0, le=1e7, examples=[1.0])
    num_sampled_clients: Clients
    initial_clipping_norm: float = Field(0.1, gt=0)
    target_clipped_quantile: float = Field(0.5, ge=0, le=1)
    clip_norm_lr: float = Field(0.2, gt=0)
    clipped_count_stddev: float | None = Field(None, ge=0)
    delta: Delta = 1e-5
    rounds: Rounds = 1


class Flower(Library):
    """Reads and accounts for Flower's settings."""

    name: ClassVar[str] = "flower"
    title: ClassVar[str] = "Flower 1.41"
    kind: ClassVar[Kind] = Kind(
        {"local": LocalDp, "fixed-clipping": FixedClipping, "adaptive-clipping": AdaptiveClipping},
        "mechanism",
        "mechanism",
    )
    adjacency: ClassVar[str] = "replace-one"
    aliases: ClassVar[dict[str, str]] = {"num_server_rounds": "rounds"}

    def locate(self, document: dict[str, Any]) -> tuple[KeyPath, dict[str, Any]]:
        """As `Library` has it: `[tool.flwr.app.config]` in a pyproject.toml, else the whole file."""
        if "tool" not in document:
            return (), {}
        path: KeyPath = ("tool", "flwr", "app", "config")
        table: Any = document
        for part in path:
            table = table.get(part) if isinstance(table, dict) else None
        if not isinstance(table, dict):
            raise InputError("has no [tool.flwr.app.config]. Add it, or give KEY=VALUE.")
        return path, {}

    def infer(self, table: dict[str, Any]) -> str | None:
        """As `Library` has it."""
        if "epsilon" in table or "sensitivity" in table:
            return "local"
        adaptive = {*AdaptiveClipping.model_fields} - {*FixedClipping.model_fields}
        return "adaptive-clipping" if adaptive & {*table} else "fixed-clipping"

    def findings(self, part: Section, adjacency: str) -> list[Finding]:
        """As `Library` has it."""
        if isinstance(part, LocalDp) and adjacency == "add-remove":
            return [Finding(("mechanism",), *ALWAYS_SENT)]
        if isinstance(part, FixedClipping) and (part.population or math.inf) < part.num_sampled_clients:
            what = f"must be at least num_sampled_clients = {part.num_sampled_clients}"
            return [Finding(("population",), what, shown=str(part.population))]
        if isinstance(part, AdaptiveClipping) and part.noise_multiplier >= 2 * _count_noise(part):
            what = f"must be below 2 clipped_count_stddev = {2 * _count_noise(part):g}"
            remedy = "Flower refuses it: clipped_count_stddev is num_sampled_clients/20 by default."
            if part.noise_multiplier > 0:
                return [Finding(("noise_multiplier",), what, remedy, f"{part.noise_multiplier:g}")]
        return []

    def cost(self, part: Section, adjacency: str) -> Cost:
        """As `Library` has it."""
        if isinstance(part, LocalDp):
            return _local(part, adjacency)
        if isinstance(part, AdaptiveClipping):
            return _adaptive(part, adjacency)
        assert isinstance(part, FixedClipping)
        return _fixed(part, adjacency)


def local_multiplier(part: LocalDp) -> float:
    """The noise multiplier of `LocalDpMod`: sensitivity sqrt(2 ln(1.25/delta))/epsilon, over the norm."""
    return part.sensitivity * math.sqrt(2 * math.log(1.25 / part.delta)) / part.epsilon / part.clipping_norm


def _local(part: LocalDp, adjacency: str) -> Cost:
    z = local_multiplier(part)

    def messages(rounds: int, related: str) -> Release:
        name = "one message" if rounds == 1 else plural(rounds, "message")
        event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(z), rounds)
        return Release(name, event, part.delta, related, "a message in each round", rounds)

    related = dict.fromkeys([adjacency, "zero-out"])
    counts = sorted({1, part.rounds})
    proved = "" if part.epsilon <= 1 else f" (proved for epsilon up to 1, not for {part.epsilon:g})"
    claim = (
        f"Flower states epsilon = {part.epsilon:g} at delta = {part.delta:g} for one message. It adds "
        "noise of standard deviation sensitivity sqrt(2 ln(1.25/delta))/epsilon"
        f"{proved}: {z:.4g} x the clipping norm. Another update of the client moves a message by up to twice "
        "the norm (replace-one), and messages of several rounds compose, which Flower does not count. "
        f"Zero-out is a comparison alone: {_DIVIDES}."
    )
    return Cost(
        "local",
        part.epsilon,
        part.delta,
        claim,
        [messages(count, each) for each in related for count in counts],
        against_models(messages(part.rounds, adjacency), _conditions(_LOCAL, adjacency)),
    )


def _fixed(part: FixedClipping, adjacency: str) -> Cost:
    n, z = part.num_sampled_clients, part.noise_multiplier

    def rounds_of(name: str, noise: float, sampled: bool) -> Release:
        event: dp.DpEvent = dp.GaussianDpEvent(noise)
        words = "no amplification by sampling"
        if sampled and part.population is not None:
            event = dp.SampledWithoutReplacementDpEvent(part.population, n, event)
            words = f"{n} clients of {part.population} in each round, drawn without replacement"
        composed = dp.SelfComposedDpEvent(event, part.rounds)
        return Release(name, composed, part.delta, adjacency, words, part.rounds)

    z /= _moved(adjacency)
    # Weighted means of updates within C differ by up to 2C, whatever the weights, and not by 2C/n.
    by_examples = rounds_of("if one client may have nearly all weight", z / n, sampled=False)
    equal = rounds_of("with equal weights", z, sampled=False)
    drawn = rounds_of("with equal weights and secret cohorts", z, sampled=True)
    best = drawn if part.population is not None and adjacency != "add-remove" else equal
    assumptions = _conditions((_EQUAL, *_CENTRAL) if part.equal_weights else _CENTRAL, adjacency)
    if part.equal_weights and best is drawn:
        assumptions = (str(Assume.SECRET_COHORT), *assumptions)
    claim = (
        f"Flower adds noise of standard deviation {part.noise_multiplier:g} x clipping norm / {n} to the "
        "mean, and names no epsilon unless an accountant is attached. Its mean is weighted by num-examples: "
        f"the noise covers a share of 1/{n} for each client, and one that has more weight is protected less."
    )
    figures = [by_examples, equal, *([drawn] if best is drawn else [])]
    stated = best if part.equal_weights else by_examples
    return Cost("central", None, None, claim, figures, against_models(stated, assumptions, _SERVER))


def _conditions(assumptions: tuple[str, ...], adjacency: str) -> tuple[str, ...]:
    """The assumptions, and for zero-out the limit of what it compares with."""
    return (_NEXT_TO_ZERO, *assumptions) if adjacency == "zero-out" else assumptions


def _moved(adjacency: str) -> int:
    """How far a client moves a mean of n updates, in C/n; replace-one is doubled by the accountants.

    A client that is added or removed changes the divisor of the mean too, and moves it by up to 2C/n.
    """
    return 2 if adjacency == "add-remove" else 1


def _count_noise(part: AdaptiveClipping) -> float:
    """The standard deviation of the noisy count of clipped updates."""
    default = part.num_sampled_clients / 20
    return default if part.clipped_count_stddev is None else part.clipped_count_stddev


def adaptive_multiplier(part: AdaptiveClipping, adjacency: str) -> float:
    """The noise multiplier of a round's updates and count together, had the noise the norm that clipped.

    Flower takes z_u^-2 = z^-2 - (2 sigma_b)^-2 for the updates, since bits of +-1/2 move by half the norm of
    theirs. Its bits are 0 and 1: one client moves the count by 1. Where an update moves by 2C (mu = 2/z_u)
    the sum is mu^2 = 4/z^2; zeroing it moves it by C: mu^2 = z_u^-2 + sigma_b^-2 = z^-2 + 0.75 sigma_b^-2.
    """
    if adjacency != "zero-out" or part.noise_multiplier == 0:
        return part.noise_multiplier / _moved(adjacency)
    return 1 / math.hypot(1 / part.noise_multiplier, math.sqrt(0.75) / _count_noise(part))


def _adaptive(part: AdaptiveClipping, adjacency: str) -> Cost:
    event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(adaptive_multiplier(part, adjacency)), part.rounds)
    name = "if the noise had the norm that clipped, and weights were equal"
    figure = Release(name, event, part.delta, adjacency, "no amplification by sampling", part.rounds)
    claim = (
        f"Flower splits noise multiplier {part.noise_multiplier:g} between updates and the count of clipped "
        "ones (Andrew et al. 2021), and names no epsilon. It multiplies the noise by the clipping norm of "
        "the next round where the updates were clipped to that of this one."
    )
    if adjacency == "zero-out":
        claim += f" Zero-out is a comparison alone: {_DIVIDES}."
    return Cost("central", None, None, claim, [figure], against_models(None, (_ADAPTED,), _SERVER))


LIBRARY = Flower()
