"""Builds the privacy plan of a scenario.

There is one way to a plan: `plan_of` calibrates its noise, and `stored_plan` checks the noise of a stored
plan against the scenario without reading any data. Facts that settings leave open (clients, parameters, the
smallest client) come as `Facts`, from the data or from the stored plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.io.tolerance import CLOSE
from fedprivacy.mechanisms.catalogue import ClipOnly, Mechanism
from fedprivacy.mechanisms.central import CENTRAL_NAMES, CentralMechanism, Settings, central_class
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LOCAL, local_class
from fedprivacy.mechanisms.noise_shares import NoiseShares, likely_survivors
from fedprivacy.mechanisms.pure import PureMechanism
from fedprivacy.mechanisms.registry import GAUSSIAN_VARIANTS, family, mechanism_class, name_in_scenarios
from fedprivacy.models.frozen_part import FrozenPart
from fedprivacy.plan.band_search import least_error, numbers_of_bands, plans_by_bands
from fedprivacy.plan.group_budgets import with_groups, with_stored_groups
from fedprivacy.plan.mechanism_search import Candidate, best, calibrated, described
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population, population
from fedprivacy.population.first_clients import renumbered
from fedprivacy.population.on_nodes import known
from fedprivacy.sampling.batches import Batches, PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.sampling.cohorts import (
    AllSampling,
    CyclicPoissonSampling,
    FixedSampling,
    PoissonSampling,
    Sampler,
    SeparatedSampling,
)
from fedprivacy.scenario import Code, OnNodes, PoissonTraining, ReplacementTraining, Scenario
from fedprivacy.scenario.data import DEALT_BY_LABEL, FileData
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.model import stated_features
from fedprivacy.scenario.privacy import CentralPrivacy, DistributedPrivacy
from fedprivacy.scenario.sections import AdamServer, MomentumServer, Privacy, Server

if TYPE_CHECKING:  # a stored plan is checked without torch, which takes seconds to import
    from torch import nn

    from fedprivacy.mechanisms.layer_clipping import LayerClipping
    from fedprivacy.training.model_spec import ModelSpec


@dataclass(frozen=True)
class Facts:
    """The facts of data and model that a plan needs beside its scenario's settings.

    Args:
        population: The number of clients.
        dimension: Computes the number of coordinates of an update.
        least_records: Computes the records of the smallest client.
        frozen: The part of the model that no client trains.
    """

    population: int
    dimension: Callable[[], int]
    least_records: Callable[[], int]
    frozen: FrozenPart | None = None


def plan_of(scenario: Scenario, model: ModelSpec | None = None, people: Population | None = None) -> Plan:
    """The plan of a scenario, calibrated where the scenario gives an epsilon.

    With unit "example" the data are loaded, since the plan depends on record counts.

    Args:
        scenario: The scenario of the run.
        model: Its model, if already made; some mechanisms depend on its number of parameters.
        people: The clients, where they are others than all of the scenario's data.

    Raises:
        UnsupportedEvent: if no accountant answers for this sampler and adjacency.
        InputError: if no noise gives this epsilon, or the model has one layer and is to be clipped by layer.
    """
    if model is not None and scenario.privacy.clipping_layers is not None:
        layers_of(scenario.privacy, model.build(0))  # refuses a single one before any node is asked to train
    privacy, groups = scenario.privacy, renumbered(scenario.data, scenario.privacy.groups)
    by_label = _dealt_by_label(scenario)
    facts = _facts(scenario, model)
    if people is not None:
        least = partial(int, people.partition.sizes.min())
        facts = replace(facts, population=people.partition.clients, least_records=least)
    if (numbers := _bands_to_choose_from(scenario, facts.population)) is not None:
        epsilon = privacy.epsilon
        assert epsilon is not None
        plan = _without_noise(_with_bands(scenario, numbers[0]), facts)
        return least_error(plans_by_bands(plan, epsilon, numbers))
    plan = _without_noise(scenario, facts)
    if plan.unit == "example":
        check_sizes(plan, (people or _people(scenario)).partition.sizes)
    if privacy.epsilon is None:
        return with_groups(_with_room(plan, privacy), groups, by_label=by_label)
    if privacy.mechanism == "auto":
        dimension = dimension_of(scenario, model)
        return best(calibrated(plan, privacy.epsilon, dimension, privacy.direction or "lifted"), dimension)
    return with_groups(_with_room(plan.calibrate(privacy.epsilon), privacy), groups, by_label=by_label)


def stored_plan(scenario: Scenario, stored: Plan, clients: int | None = None) -> Plan:
    """The plan of a scenario at the noise of a stored plan, without reading the data.

    Facts that the settings leave open (clients and records of a file, parameters of a model) come from the
    stored plan. For `mechanism = "auto"` and `bands = "auto"` any candidate is accepted: the choice by least
    error does not affect privacy.

    Args:
        scenario: The scenario of the run.
        stored: The plan in the run's record.
        clients: Their number, where it is not that of the scenario's data.

    Raises:
        InputError: its noise is not that of the scenario's epsilon.
    """
    population = _settled_clients(scenario) if clients is None else clients
    if population is None:
        population = stored.population
    if (numbers := _bands_to_choose_from(scenario, population)) is not None:
        if stored.banded is None or stored.banded.bands not in numbers:
            raise InputError("plan.mechanism.bands: not one that the scenario chooses from")
        scenario = _with_bands(scenario, stored.banded.bands)
    privacy, mechanism = scenario.privacy, stored.mechanism
    groups, by_label = renumbered(scenario.data, privacy.groups), _dealt_by_label(scenario)
    dimension = partial(_stored_dimension, mechanism)
    facts = Facts(population, dimension, lambda: stored.least_records or 1, _stored_part(scenario, stored))
    plan = _without_noise(scenario, facts)
    if privacy.epsilon is None:
        return with_stored_groups(_with_room(plan, privacy), groups, stored.groups, by_label=by_label)
    if privacy.mechanism == "auto" and mechanism is not None and mechanism.name in LOCAL:
        chosen = local_class(mechanism.name).uncalibrated(
            privacy.clipping_norm, getattr(mechanism, "dimension", 0), privacy.direction or "lifted"
        )
        plan = replace(plan, mechanism=chosen)
    stored_mechanism = plan.mechanism
    if stored_mechanism is None or type(stored_mechanism) is not type(mechanism):
        return plan
    noise = "epsilon" if isinstance(stored_mechanism, PureMechanism) else "noise_multiplier"
    stated = getattr(mechanism, noise)
    plan = replace(plan, mechanism=replace(stored_mechanism, **{noise: stated}))
    spent = plan.spent().epsilon
    # Calibration decides if a mechanism cannot spend its whole budget, or epsilon is steep in its noise.
    if not math.isclose(spent, privacy.epsilon, rel_tol=CLOSE):
        least = getattr(plan.calibrate(privacy.epsilon).mechanism, noise)
        if not math.isclose(stated, least, rel_tol=CLOSE):
            raise InputError(
                f"{noise} {stated:.6g} costs epsilon = {spent:.6g} in the whole run, and the scenario asks "
                f"for privacy.epsilon = {privacy.epsilon:g}"
            )
    return with_stored_groups(_with_room(plan, privacy), groups, stored.groups, by_label=by_label)


def _dealt_by_label(scenario: Scenario) -> bool:
    """Whether the ids of clients follow from their labels."""
    return getattr(scenario.data, "partition", None) in DEALT_BY_LABEL


def _settled_clients(scenario: Scenario) -> int | None:
    """The number of clients that take part, where no file has to be read for it, else None."""
    data = scenario.data
    if not isinstance(data, FileData):
        return scenario.population
    return data.clients if data.first_clients is None else data.first_clients


def _bands_to_choose_from(scenario: Scenario, clients: int) -> tuple[int, ...] | None:
    """The numbers of bands of a scenario that leaves theirs open, else None."""
    privacy, sampling = scenario.privacy, scenario.sampling
    if not isinstance(privacy, CentralPrivacy) or privacy.bands != "auto":
        return None
    assert sampling.name == "cyclic-poisson"
    return numbers_of_bands(sampling.rate, scenario.server.rounds, clients)


def _with_bands(scenario: Scenario, bands: int) -> Scenario:
    """The scenario with this number of bands."""
    privacy = scenario.privacy.model_copy(update={"bands": bands})
    return scenario.model_copy(update={"privacy": privacy})


def _stored_dimension(mechanism: Mechanism | None) -> int:
    """The length of an update that a stored mechanism states, without the model."""
    length = getattr(mechanism, "dimension", None)
    if not isinstance(length, int):
        raise InputError(
            "plan.mechanism: it states no length of updates (`dimension`), and the scenario's mechanism "
            "depends on that. Start a new run."
        )
    return length


def _stored_part(scenario: Scenario, stored: Plan) -> FrozenPart | None:
    """The frozen part that a stored plan states, with the sizes that follow from a model by name.

    Only the plan has the digests, and the sizes where the shape of records is in a file of data.
    """
    part, model, shared = stored.frozen, scenario.model, scenario.training.shared
    plain = model.is_plain and shared is None
    implied = None if plain or isinstance(model, Code) else _implied_sizes(scenario)
    empty = not isinstance(model, Code) and (implied is None or not any(implied[1:]))
    if part is None:
        if empty and model.weights is None:
            return None
        raise InputError(
            "plan.frozen: missing, and the scenario's model is code, reads weights or freezes some. Start a "
            "new run."
        )
    if empty and model.weights is None:
        raise InputError("plan.frozen: the scenario's model has no frozen parameters. Start a new run.")
    if (part.file is None) != (model.weights is None):
        raise InputError("plan.frozen.file: does not fit the scenario's model.weights. Start a new run.")
    if part.features != stated_features(model):
        raise InputError("plan.frozen.features: does not fit the scenario's model.features. Start a new run.")
    if bool(part.personal) != (shared is not None) or part.personal > part.frozen:
        raise InputError(
            "plan.frozen.personal: does not fit the scenario's training.shared. Start a new run."
        )
    length = getattr(stored.mechanism, "dimension", part.trained)
    if length != part.trained:
        raise InputError(
            f"plan.frozen.trained: is {part.trained:,}, and the mechanism is for updates of {length:,}. "
            "Start a new run."
        )
    sizes = (part.trained, part.frozen, part.buffers)
    if implied is not None and not isinstance(scenario.data, FileData) and sizes != implied:
        raise InputError(
            f"plan.frozen: has {sizes[0]:,} trained and {sizes[1]:,} frozen parameters and {sizes[2]:,} "
            f"values of buffers, and the scenario's model {implied[0]:,}, {implied[1]:,} and {implied[2]:,}. "
            "Start a new run."
        )
    return part


def _implied_sizes(scenario: Scenario) -> tuple[int, int, int]:
    """The sizes of the parts of a model by name (`parts_by_name`).

    Records of a file have any shape here that fits the model: it decides about the sizes, and not about
    whether they are zero.
    """
    from fedprivacy.training.model_spec import parts_by_name

    model, shared = scenario.model, scenario.training.shared
    assert not isinstance(model, Code)
    if isinstance(scenario.data, FileData):
        side = 128 << len(getattr(model, "channels", ()))
        return parts_by_name(model, (side, side), 2, shared)
    tables = scenario.tables()["data"]
    values = Values({f"data.{key}": value for key, value in tables.items()})
    assert values.features is not None
    assert values.classes is not None
    return parts_by_name(model, values.features, values.classes, shared)


def _frozen_part(scenario: Scenario, model: ModelSpec | None) -> FrozenPart | None:
    if model is None and not (scenario.model.is_plain and scenario.training.shared is None):
        model = _model(scenario)
    return None if model is None else model.frozen


def _facts(scenario: Scenario, model: ModelSpec | None) -> Facts:
    """Reads the facts of data and model."""
    return Facts(
        scenario.population,
        lambda: dimension_of(scenario, model),
        lambda: int(_people(scenario).partition.sizes.min()),
        _frozen_part(scenario, model),
    )


def _with_room(plan: Plan, privacy: Privacy) -> Plan:
    """The plan, after checking that its noise leaves room for the count of adaptive clipping.

    The default noise of the count is a twentieth of the mean cohort, as in Andrew et al. 2021, but at least
    z. Then there is always room, and updates get at most 2/sqrt(3) z. The joint noise multiplier z does not
    depend on it.
    """
    adaptive = plan.adaptive
    if adaptive is None:
        return plan
    if isinstance(privacy, CentralPrivacy) and privacy.clipping_count_noise is None:
        adaptive = replace(adaptive, count_noise=max(adaptive.count_noise, adaptive.noise_multiplier))
    _ = adaptive.update_noise
    return replace(plan, mechanism=adaptive)


def candidates_of(scenario: Scenario, model: ModelSpec | None = None) -> list[Candidate] | None:
    """The mechanisms that `mechanism = "auto"` chose from, or None where a scenario names one."""
    privacy = scenario.privacy
    if privacy.mechanism != "auto" or privacy.epsilon is None:
        return None
    dimension, plan = dimension_of(scenario, model), _without_noise(scenario, _facts(scenario, model))
    plans = calibrated(plan, privacy.epsilon, dimension, privacy.direction or "lifted")
    return described(plans, dimension)


def check_sizes(plan: Plan, sizes: NDArray[np.int64]) -> None:
    """Refuses a plan for clients with other record counts than it was made for.

    Args:
        plan: The clients' agreed plan.
        sizes: The records that each of them has, shape (population,).

    Raises:
        InputError: a record of a smaller client would cost more, or delta allows to publish one.
    """
    if plan.unit != "example":
        return
    records, least = int(sizes.sum()), int(sizes.min())
    if plan.delta is not None and publishes_one(plan.delta, records):
        raise InputError(
            f"privacy.delta = {plan.delta:g}: must be below 1/(number of records) = 1/{records} "
            f"= {1 / records:.3g}, as the clients have {records:,} records; {0.1 / records:.0e} is usual."
        )
    if plan.least_records is not None and least < plan.least_records:
        raise InputError(
            f"the privacy plan is for clients of {plan.least_records} records or more, and one has {least}."
        )


def batches_of(scenario: Scenario) -> Batches:
    """The sampler of a client's batches."""
    training = scenario.training
    if isinstance(training, PoissonTraining):
        return PoissonBatches(training.steps, training.rate, training.batch_size)
    if isinstance(training, ReplacementTraining):
        return ReplacementBatches(training.steps, training.batch_size)
    return ShuffledBatches(training.epochs, None if training.batch_size == "all" else training.batch_size)


def layers_of(privacy: Privacy, module: nn.Module) -> LayerClipping | None:
    """The layers by which updates of a model are clipped; None: as a whole alone.

    Raises:
        InputError: the model trains one layer only.
    """
    from fedprivacy.mechanisms.layer_clipping import LayerClipping
    from fedprivacy.models.partial_training import trained_parameters

    if privacy.clipping_layers is None:
        return None
    sizes = [(name, value.numel()) for name, value in trained_parameters(module).items()]
    return LayerClipping.of(sizes, privacy.clipping_layers)


def dimension_of(scenario: Scenario, model: ModelSpec | None = None) -> int:
    """The number of coordinates of an update: the model's trained parameters."""
    from fedprivacy.models.partial_training import trained_size

    return trained_size((model or _model(scenario)).build(0))


def _model(scenario: Scenario) -> ModelSpec:
    from fedprivacy.training.model_spec import model_of

    return model_of(scenario, _people(scenario))


def _people(scenario: Scenario) -> Population:
    """The data, or public knowledge of data on nodes, which gives server and nodes the same plan."""
    return known(scenario.data) if isinstance(scenario.data, OnNodes) else population(scenario.data)


def _without_noise(scenario: Scenario, facts: Facts) -> Plan:
    """The plan before calibration, with the scenario's noise if it sets one."""
    privacy = scenario.privacy
    batches = batches_of(scenario) if privacy.unit == "example" else None
    by_size = batches is not None and batches.by_size
    return Plan(
        trust=privacy.trust,
        unit=privacy.unit,
        adjacency=privacy.adjacency,
        population=facts.population,
        rounds=scenario.server.rounds,
        sampler=_sampler(scenario),
        mechanism=_mechanism(scenario, facts),
        delta=None if privacy.trust == "none" else privacy.delta,
        max_participations=privacy.max_participations,
        noise_draw=privacy.noise_draw,
        batches=batches,
        # With batches of fixed size a record of the smallest client is drawn most often, so it sets the
        # guarantee.
        least_records=facts.least_records() if by_size else None,
        frozen=facts.frozen,
        personal=scenario.training.personal,
    )


def _mechanism(scenario: Scenario, facts: Facts) -> Mechanism | None:
    privacy = scenario.privacy
    if privacy.trust == "none":
        return None if privacy.clipping_norm is None else ClipOnly(privacy.clipping_norm)
    if isinstance(privacy, DistributedPrivacy):
        return _shares(scenario, privacy, facts)
    if privacy.mechanism in CENTRAL_NAMES:
        settings = Settings(
            privacy=dict(privacy),
            rounds=scenario.server.rounds,
            momentum=_momentum(scenario.server),
            expected_cohort=_sampler(scenario).expected_cohort(facts.population),
            dimension=facts.dimension,
        )
        return central_mechanism(settings.privacy).of_scenario(settings)
    if privacy.mechanism == "auto":
        return Gaussian(privacy.clipping_norm, privacy.noise_multiplier or 0.0)
    kind = local_class(privacy.mechanism)
    # To know it takes the model, so only a mechanism that keeps the length of an update gets it.
    dimension = facts.dimension() if "dimension" in kind.__dataclass_fields__ else 0
    return kind.uncalibrated(privacy.clipping_norm, dimension, privacy.direction or "lifted")


def _shares(scenario: Scenario, privacy: DistributedPrivacy, facts: Facts) -> NoiseShares:
    """The noise in shares of a scenario, for the most clients that a round may have."""
    clients = min(facts.population, getattr(_sampler(scenario), "cohort", facts.population))
    kind = cast(type[NoiseShares], mechanism_class(privacy.mechanism))
    usual = likely_survivors(clients, scenario.federation.dropout, privacy.colluders)
    try:
        return kind(
            clipping_norm=privacy.clipping_norm,
            noise_multiplier=privacy.noise_multiplier or 0.0,
            dimension=facts.dimension(),
            bits=privacy.bits,
            clients=clients,
            min_survivors=usual if privacy.min_survivors is None else privacy.min_survivors,
            colluders=privacy.colluders,
        )
    except InputError as error:
        raise InputError(f"privacy.{error}") from None


def central_mechanism(privacy: Mapping[str, Any]) -> type[CentralMechanism]:
    """Returns the mechanism of the server's sum of a section `privacy`.

    >>> central_mechanism({"mechanism": "gaussian", "bands": 8}).name
    'banded-gaussian'
    >>> central_mechanism({"mechanism": "gaussian"}).name
    'gaussian'
    """
    if privacy["mechanism"] == Gaussian.name:
        chosen = (name for key, name in GAUSSIAN_VARIANTS.items() if privacy.get(key) is not None)
        return central_class(next(chosen, Gaussian.name))
    names = {name_in_scenarios(name): name for name in family("central update")}
    return central_class(names[privacy["mechanism"]])


def _momentum(server: Server) -> float:
    """The server optimizer's momentum; for Adam beta1, as if its denominator were constant."""
    if isinstance(server, MomentumServer):
        return server.momentum
    return server.beta1 if isinstance(server, AdamServer) else 0.0


def _sampler(scenario: Scenario) -> Sampler:
    options = scenario.sampling
    if options.name == "poisson":
        return PoissonSampling(options.rate)
    if options.name == "fixed":
        return FixedSampling(options.cohort)
    if options.name == "separated":
        return SeparatedSampling(options.cohort, options.separation)
    if options.name == "cyclic-poisson":
        # As many groups as bands: with more, clients would be in fewer rounds for no less noise.
        bands = scenario.privacy.bands if isinstance(scenario.privacy, CentralPrivacy) else None
        assert bands != "auto"
        return CyclicPoissonSampling(options.rate, bands or 1)
    return AllSampling()
