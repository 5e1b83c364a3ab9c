"""The privacy plan: one frozen value that draws noise and cohorts and states their cost.

The server, each client and the ledger hold the same plan; there is no second place where a sigma
or a sampling rate is written, so what the accountant reads is what the code draws.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, get_origin, get_type_hints

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.accounting.epsilon import Accounted
from fedprivacy.accounting.epsilon import epsilon as accounted
from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.accounting.events import is_relative
from fedprivacy.errors import InputError
from fedprivacy.io import side_process
from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.catalogue import MECHANISMS, ClipOnly, Mechanism
from fedprivacy.mechanisms.central import SERVER_ONLY, CentralMechanism
from fedprivacy.mechanisms.combinations import RULES, RULES_OF_WHOLE_PLANS, Terms, refuse_broken
from fedprivacy.mechanisms.encoding import Encoder
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LocalMechanism
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.pure import MAX_EPSILON, PureMechanism
from fedprivacy.mechanisms.registry import name_in_scenarios
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.sampling.batches import BATCHES, Batches
from fedprivacy.sampling.cohorts import (
    SAMPLERS,
    CyclicPoissonSampling,
    Ids,
    PoissonSampling,
    Sampler,
    SeparatedSampling,
)
from fedprivacy.sampling.group_limits import LEAST_RATE, least_weight
from fedprivacy.sampling.groups import Groups, members

MOST = 10**9  # of anything that a plan counts or measures, as scenarios have it


@dataclass(frozen=True)
class Plan:
    """The privacy plan of a run: everything that determines its privacy, and nothing else.

    Args:
        trust: Who adds the noise: "none", "local" (each client), "central" (the server) or "distributed"
            (each client a share, of which the server sees the secure sum).
        unit: The unit of privacy: "client", or "example" (one record).
        adjacency: "replace-one", "add-remove" or "zero-out".
        population: The number of clients that may be drawn.
        rounds: The number of rounds.
        sampler: Draws each round's cohort.
        mechanism: Clips and noises: updates, or with unit "example" the sum of a batch's gradients, in every
            step; None under trust "none" without clipping.
        delta: The delta of every guarantee, below 1 / (number of units); None under trust "none".
        max_participations: How often a client answers at most; None but under "local" and "distributed".
        noise_draw: "client" (one draw a client) or "sum" (one for a chunk's sum); None but under "local" and
            "distributed".
        batches: Draws the batches of each client; None with unit "client", where it costs nothing.
        least_records: The records of the smallest client, where a record of a smaller one costs more.
        frozen: The part of the model that no client trains; None where all of it is trained.
        groups: The groups of clients with stricter budgets; None where all have the same. What the plan
            states of all clients is that of the others, and so a bound for each group.
        personal: How each client gets a model of its own (`fedprivacy.training.personalisation`); None: none
            does. It changes no event.
    """

    trust: str
    unit: str
    adjacency: str
    population: int
    rounds: int
    sampler: Sampler
    mechanism: Mechanism | None
    delta: float | None = None
    max_participations: int | None = None
    noise_draw: str | None = None
    batches: Batches | None = None
    least_records: int | None = None
    frozen: FrozenPart | None = None
    groups: Groups | None = None
    personal: str | None = None

    def __post_init__(self) -> None:
        """Raises InputError: with every rule of `combinations` that the plan breaks, or for the event."""
        refuse_broken(self.terms, (*RULES, *RULES_OF_WHOLE_PLANS))
        shares = self.shares
        if shares is not None and shares.clients != self.most_in_a_sum:
            raise InputError(
                f"mechanism.clients = {shares.clients}: a round's sum has up to {self.most_in_a_sum} "
                "clients, and its modulus must be made for them."
            )
        noise = self.central_noise
        if noise is not None and not is_relative(noise.event()):
            raise InputError(
                f"mechanism {noise.name}: no accountant doubles the sensitivity of its event under "
                "replace-one, where a client moves the sum by twice the clipping norm. State an event "
                "relative to this norm, such as GaussianDpEvent."
            )
        if self.groups is not None:
            self.groups.check(self.population, self._limits_of_groups)

    @property
    def _limits_of_groups(self) -> dict[str, tuple[float, float] | None]:
        """The limits of each setting of a group, within which the plan of all bounds it; None: unused."""
        rate = self.sampler.rate if isinstance(self.sampler, PoissonSampling) else None
        local, central = self.trust == "local", self.trust == "central"
        return {
            "noise_multiplier": (self.noise_multiplier or 0.0, MOST) if local else None,
            "weight": (least_weight(self.population), 1.0) if central else None,
            "rate": (LEAST_RATE, rate) if central and rate is not None else None,
        }

    @property
    def terms(self) -> Terms:
        """The plan in plain values, as its rules read it: mechanisms under the names of scenarios."""
        sampler, mechanism, banded = self.sampler, self.mechanism, self.banded
        return Terms(
            trust=self.trust,
            unit=self.unit,
            adjacency=self.adjacency,
            population=self.population,
            rounds=self.rounds,
            sampling=sampler.name,
            cohort=getattr(sampler, "cohort", None),
            separation=sampler.separation if isinstance(sampler, SeparatedSampling) else None,
            rate=getattr(sampler, "rate", None),
            sampling_groups=sampler.groups if isinstance(sampler, CyclicPoissonSampling) else None,
            mechanism=None if mechanism is None else name_in_scenarios(mechanism.name),
            noise_draw=self.noise_draw,
            max_participations=self.max_participations,
            min_survivors=None if self.shares is None else self.shares.min_survivors,
            batches=None if self.batches is None else self.batches.name,
            steps=None if self.batches is None else self.batches.steps_in(MOST),
            encoding=None if self.encoder is None else self.encoder.kind,
            clipping_quantile=None if self.adaptive is None else self.adaptive.quantile,
            bands=None if banded is None else banded.bands,
            noise_rounds=None if banded is None else banded.rounds,
            groups=self.groups,
            personal=self.personal,
        )

    def of_group(self, name: str) -> Plan:
        """The plan of a run whose only group is this one: its mechanism, sampler and event are the group's.

        A weight w after clipping to C makes the sensitivity w C, for which the same noise is z / w times as
        much.

        Args:
            name: The name of the group, or "others".
        """
        if self.groups is None:
            return self
        group, mechanism, sampler = self.groups[name], self.mechanism, self.sampler
        assert isinstance(mechanism, Gaussian)
        if group.noise_multiplier is not None:
            mechanism = mechanism.with_noise(group.noise_multiplier)
        if group.weight is not None:
            mechanism = Gaussian(
                mechanism.clipping_norm * group.weight, mechanism.noise_multiplier / group.weight
            )
        if group.rate is not None:
            sampler = PoissonSampling(group.rate)
        return dataclasses.replace(self, groups=None, mechanism=mechanism, sampler=sampler)

    def weights_of(self, clients: Ids) -> NDArray[np.float64] | None:
        """The factor of each client's clipped update, shape (clients,); None where all are 1."""
        if self.groups is None or not any(self.groups.set("weight")):
            return None
        return self.groups.values("weight", 1.0, self.population)[clients]

    def randomisers(self, clients: Ids) -> list[tuple[NDArray[np.bool_], LocalMechanism]]:
        """The local mechanisms of some clients, each with the mask of the clients that have it."""
        mechanism = self.randomiser
        if mechanism is None or self.groups is None:
            return [] if mechanism is None else [(np.ones(len(clients), np.bool_), mechanism)]
        places = members(self.groups, self.population)[clients]
        return [
            (places == place, mechanism if noise is None else mechanism.with_noise(noise))
            for place, noise in enumerate([*self.groups.set("noise_multiplier"), None])
        ]

    def draw_cohort(self, stream: np.random.Generator, round: int) -> Ids:
        """Draws the ids of a round's cohort, sorted, at the rate of each group."""
        if isinstance(self.sampler, PoissonSampling) and self.groups is not None:
            rates = self.groups.values("rate", self.sampler.rate, self.population)
            return self.sampler.draw(self.population, stream, round, rates)
        return self.sampler.draw(self.population, stream, round)

    @property
    def expected_weight(self) -> float:
        """The mean of the summed weights of a cohort: the fixed denominator of the average.

        It is the mean size of a cohort where all weights are 1. Rates, weights and group sizes are public.
        """
        if self.groups is None or self.trust != "central":
            return self.sampler.expected_cohort(self.population)
        alike = self.sampler.expected_cohort(self.population) / self.population
        return float(
            self.groups.values("rate", alike, self.population)
            @ self.groups.values("weight", 1.0, self.population)
        )

    @property
    def separation(self) -> int:
        """The number of consecutive rounds with at most one participation of a client; else 1."""
        if isinstance(self.sampler, CyclicPoissonSampling):
            return self.sampler.groups
        return self.sampler.separation if isinstance(self.sampler, SeparatedSampling) else 1

    def charged(self, rounds: int) -> int:
        """The number of releases that a client is charged for: the rounds that it may participate in."""
        # At most one of b consecutive rounds (b-min-separation, Choquette-Choo et al. 2023).
        return math.ceil(rounds / self.separation)

    @property
    def banded(self) -> BandedGaussian | None:
        """The noise that is correlated over rounds, or None where each round's is independent."""
        return self.mechanism if isinstance(self.mechanism, BandedGaussian) else None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of clients' clipped updates, or None."""
        return self.mechanism.encoder if isinstance(self.mechanism, CentralMechanism) else None

    @property
    def adaptive(self) -> AdaptiveGaussian | None:
        """The mechanism whose clipping norm changes from round to round, or None where it does not."""
        return self.mechanism if isinstance(self.mechanism, AdaptiveGaussian) else None

    def for_round(self, norm: float | None) -> Plan:
        """The plan of one round.

        Args:
            norm: The clipping norm of the round, where the plan's changes, else None.

        Raises:
            InputError: a norm is missing, or given though the plan's is fixed, or not valid.
        """
        if (norm is None) != (self.adaptive is None):
            raise InputError(
                "the clipping norm of the round is missing, and the plan's changes"
                if norm is None
                else "the request has another clipping norm, and the plan's does not change"
            )
        if self.adaptive is None or norm is None:
            return self
        return dataclasses.replace(self, mechanism=dataclasses.replace(self.adaptive, clipping_norm=norm))

    def answer_length(self, parameters: int) -> int:
        """The length of an answer: of the update, and a bit if adaptive; padded with noise in shares."""
        return parameters + (self.adaptive is not None) if self.shares is None else self.shares.padded

    @property
    def answer_type(self) -> type[np.float64] | type[np.int64]:
        """The type of the numbers of an answer: integers modulo 2^b with noise in shares."""
        return np.float64 if self.shares is None else np.int64

    @property
    def clipping_norm(self) -> float | None:
        """C, or None where nothing is clipped."""
        return None if self.mechanism is None else self.mechanism.clipping_norm

    @property
    def noise_multiplier(self) -> float | None:
        """z = noise standard deviation / C, or None without noise."""
        known = isinstance(self.mechanism, CentralMechanism | NoiseShares)
        return self.mechanism.noise_multiplier if known else None  # type: ignore[union-attr]

    @property
    def noise_words(self) -> str | None:
        """The amount of noise in words, or None without noise."""
        mechanism = self.randomiser or self.step_noise or self.central_noise or self.shares
        return None if mechanism is None else mechanism.words

    @property
    def central_noise(self) -> CentralMechanism | None:
        """The noise that the server adds, or None if it adds none."""
        mechanism = self.mechanism
        return mechanism if self.trust == "central" and isinstance(mechanism, CentralMechanism) else None

    @property
    def shares(self) -> NoiseShares | None:
        """The noise of which each client adds a share, or None."""
        mechanism = self.mechanism
        return mechanism if self.trust == "distributed" and isinstance(mechanism, NoiseShares) else None

    @property
    def distrusts_server(self) -> bool:
        """Whether clients protect themselves from the server: they add noise, and count participations."""
        return self.trust in ("local", "distributed")

    @property
    def randomiser(self) -> LocalMechanism | None:
        """The local mechanism of each client, or None."""
        of_clients = self.trust == "local" and self.unit == "client"
        return self.mechanism if of_clients and isinstance(self.mechanism, LocalMechanism) else None

    def sum_deviation(self, answered: int) -> float | None:
        """The standard deviation of the Gaussian noise in each coordinate of a round's sum.

        Args:
            answered: The clients in the sum; under local trust each has added its own noise.

        Returns:
            None where there is no such noise, or none of known size: it is in the steps, or not Gaussian, or
            correlated over rounds, where no single round determines the amount.
        """
        if self.banded is not None or self.terms.mechanism in SERVER_ONLY:
            return None
        if self.groups is not None and self.trust == "local":  # it depends on which groups answered
            return None
        if isinstance(self.central_noise, Gaussian):
            return self.central_noise.standard_deviation
        if isinstance(self.randomiser, Gaussian):  # independent draws: variances add up
            return self.randomiser.standard_deviation * math.sqrt(answered)
        return None

    @property
    def most_in_a_sum(self) -> int:
        """The most clients that a round's sum may hold: by the number of clients, which is public."""
        return min(self.population, getattr(self.sampler, "cohort", self.population))

    @property
    def step_noise(self) -> Gaussian | None:
        """The noise that each client adds in every step of its training (DP-SGD), or None if it adds none."""
        inside = self.trust == "local" and self.unit == "example"
        return self.mechanism if inside and isinstance(self.mechanism, Gaussian) else None

    def release_event(self) -> dp.DpEvent:
        """The event of one release.

        Central: the noisy sum of a sampled cohort, for an observer that does not see the cohort. With noise
        correlated over rounds: one participation, in all rounds that share its noise. Cyclic Poisson
        sampling: one round of the client's group.
        Local: one client's noisy message, without amplification, since the server chose the client.
        Distributed: the noisy sum of a round that has the client, for the server; without amplification.
        Unit "example": a round of a participating client of the smallest size. The cohort amplifies nothing,
        since all records of a client are in or out of it together.
        """
        if self.trust == "none" or self.mechanism is None:
            return dp.NonPrivateDpEvent()
        if self.batches is not None:
            # At a batch size, the smallest client's records are drawn most often and cost most.
            return self.batches.event(self.mechanism.event(), self.least_records or 1)
        if self.trust == "local" or isinstance(self.mechanism, NoiseShares):
            return self.mechanism.event()
        return self.sampler.event(self.mechanism.event(), self.population)

    def event(self) -> dp.DpEvent:
        """The event of the whole run: all rounds, or all answers that a client may give."""
        return dp.SelfComposedDpEvent(self.release_event(), self.answers)

    @property
    def answers(self) -> int:
        """The most participations of a client, for which it is charged."""
        rounds = self.charged(self.rounds)
        return rounds if self.max_participations is None else min(self.max_participations, rounds)

    def spent(self) -> Accounted:
        """The epsilon of the whole run at the plan's delta."""
        if self.delta is None:
            raise InputError("a plan without noise has no epsilon")
        return accounted(self.event(), self.delta, self.adjacency)

    def calibrate(self, epsilon: float, delta: float | None = None) -> Plan:
        """The plan with the least noise that keeps the whole run within (epsilon, delta)."""
        delta = self.delta if delta is None else delta
        mechanism = self.mechanism
        if delta is None or mechanism is None or isinstance(mechanism, ClipOnly):
            raise InputError("only a plan with noise and a delta can be calibrated")
        noise = side_process.call("fedprivacy.plan.privacy_plan:least_multiplier", self, epsilon, delta)
        return dataclasses.replace(self, delta=delta, mechanism=mechanism.with_noise(noise))

    def refusal(self, requested: Plan) -> str | None:
        """The reason for which a client with this plan refuses a request for another one."""
        # All fields, since each client's epsilon is computed from them: a server that lowers the noise alone
        # must not get an answer.
        differences = [
            f"{field.name}: requested {getattr(requested, field.name)!r}, "
            f"agreed {getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(requested, field.name) != getattr(self, field.name)
        ]
        return f"the request has another plan ({'; '.join(differences)[:1000]})" if differences else None

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        data["sampler"] = {"name": self.sampler.name, **dataclasses.asdict(self.sampler)}
        if self.batches is not None:
            data["batches"] = {"name": self.batches.name, **dataclasses.asdict(self.batches)}
        if self.mechanism is not None:
            data["mechanism"] = {"name": self.mechanism.name, **dataclasses.asdict(self.mechanism)}
        if self.shares is not None:
            data["mechanism"] |= self.shares.derived
        if self.frozen is None:  # plans that train whole models stay as they were
            data.pop("frozen")
        else:
            data["frozen"] = self.frozen.to_json()
        if self.groups is None:
            data.pop("groups")
        else:
            data["groups"] = self.groups.to_json()
        if self.personal is None:
            data.pop("personal")
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """The plan that `to_json` wrote.

        Raises:
            InputError: if the data is not a plan.
        """
        try:
            values = dict(data)
            values["sampler"] = _from_kinds(SAMPLERS, values["sampler"])
            for key, kinds in (("batches", BATCHES), ("mechanism", MECHANISMS)):
                if values.get(key) is not None:
                    values[key] = _from_kinds(kinds, values[key])
            if values.get("frozen") is not None:
                _check_types(FrozenPart, values["frozen"])
                values["frozen"] = FrozenPart(**values["frozen"])
            if values.get("groups") is not None:
                values["groups"] = Groups.from_json(values["groups"])
            _check_types(cls, values)
            return cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"not a privacy plan: {type(error).__name__}: {str(error)[:500]}") from error


def _from_kinds(kinds: Mapping[str, Any], data: Any) -> Any:
    """The sampler, batches or mechanism that a table names."""
    values = dict(data)
    kind = kinds[str(values.pop("name"))]
    derived = {key: values.pop(key) for key in getattr(kind, "derived_fields", ())}
    _check_types(kind, values)
    entry = kind(**values)
    for key, stated in derived.items():
        if not math.isclose(stated, follows := entry.derived[key], rel_tol=1e-9):
            raise ValueError(f"{key} is {stated:g}, and {follows:g} follows from the other values")
    return entry


_hints = cache(get_type_hints)  # a comparison is checked plan by plan


def _check_types(kind: Any, values: Mapping[str, Any]) -> None:
    """Checks types and sizes of numbers, which dataclasses do not check."""
    for name, hint in _hints(kind).items():
        if name not in values or get_origin(hint) is ClassVar:
            continue
        value = values[name]
        wanted = (hint | int) if isinstance(0.0, hint) else hint
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise TypeError(f"{name} is {str(value)[:40]!r}")
        if isinstance(value, int | float) and not 0 <= value <= MOST:
            raise ValueError(f"{name} is {value:g}, it must be from 0 to {MOST:g}")


def least_multiplier(plan: Plan, epsilon: float, delta: float) -> float:
    """The least noise multiplier of a plan's mechanism that keeps the whole run within (epsilon, delta).

    Args:
        plan: A plan with noise.
        epsilon: Above 0.
        delta: In (0, 1).

    Raises:
        InputError: A value is out of range, or no noise gives this epsilon.
        UnsupportedEvent: No accountant answers for the run.
    """
    mechanism = plan.mechanism
    assert mechanism is not None
    assert not isinstance(mechanism, ClipOnly)

    if isinstance(mechanism, NoiseShares):  # its modulus has room for so much noise alone
        return mechanism.calibrated(epsilon, delta, plan.adjacency, plan.answers).noise_multiplier

    def make_event(multiplier: float) -> dp.DpEvent:
        return dataclasses.replace(plan, mechanism=mechanism.with_noise(multiplier)).event()

    if isinstance(mechanism, PureMechanism):
        most = make_event(1 / MAX_EPSILON)  # a further budget makes no message more accurate
        if accounted(most, delta, plan.adjacency).epsilon <= epsilon:
            return 1 / MAX_EPSILON
    return least_noise(make_event, epsilon, delta, plan.adjacency)
