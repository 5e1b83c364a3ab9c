"""The clients of a node: their data, their training, and their remaining budgets.

Everything that protects a client (the plan, agreed record counts, time limits) comes from the clients' own
scenario and never from a message. Calls are shaped by the plan and a client's own size, so that no client
affects another's bits (`fedprivacy.training.calls`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from clients.personal_state import check_memory
from clients.record_inputs import RecordInputs
from fedprivacy.attacks.canaries import Canaries
from fedprivacy.data.tasks import NAMED
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.layer_clipping import LayerClipping
from fedprivacy.models.losses import loss_of
from fedprivacy.models.partial_training import trained_size
from fedprivacy.models.sequences import SEQUENCES
from fedprivacy.plan.from_scenario import batches_of, check_sizes, layers_of, plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.reference_data import check_references
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.training import Training
from fedprivacy.training.cohort import has_grouped_convolutions, numbers_held, train_cohort, way_of
from fedprivacy.training.cuda import ordered_kernels, prepare_cuda
from fedprivacy.training.dp_sgd import clipped_gradients, train_examples
from fedprivacy.training.features import Features, split
from fedprivacy.training.layerwise import is_layerwise
from fedprivacy.training.model_spec import ModelSpec, model_of
from fedprivacy.training.personalisation import MODES, Ditto, Personalisation
from fedprivacy.training.task import Adversarial, LocalTraining, Shape, Task, size_classes
from fedprivacy.training.trainers import Trainer, trainer_of
from fedprivacy.training.updates import Stack, Updates

Ids = NDArray[np.int64]

_EQUAL_SIZES = ("one-per-example", "iid", "fixed-records", "by-label")  # up to one record
_ROOMS = (16, 64, 256)  # clients in a call at most
# Bytes of a call. What a core's cache holds: measured, a quarter or four times are slower. A GPU needs many
# clients at once, because its time is that of launching kernels.
_AT_ONCE = {"cpu": 16 * 2**20, "cuda": 2**32}


@dataclass(frozen=True)
class Fleet:
    """The clients' side of a scenario: their own plan, data, model and random streams.

    Nothing here comes from a message, so a malicious server can neither weaken a client's privacy nor set a
    time limit that reveals slow clients (`client_timeout`, else `timeout`: the seconds of a worker process).
    `sizes` are the agreed record counts of the clients, shape (population,); a game may add or remove
    records. Weights by these counts (`by_records`) reveal nothing more about records: the counts are public,
    and the noise is in an update by then. In an audit the last clients are `canaries`, which send planted
    updates. `dense`: whether places of calls are seldom empty. `alone`: whether a call trains one client.
    `apart`: a client that is in no call with others. `layers`: how updates are clipped by layer, before they
    are clipped as a whole. `module` is all that a client trains, its personal part included.
    """

    plan: Plan
    people: Population
    model: ModelSpec
    module: nn.Module
    sizes: Ids
    training: LocalTraining
    by_records: bool
    streams: Streams
    hosts: int
    trainer: Trainer = train_examples
    device: str = "cpu"
    client_timeout: float | None = None
    timeout: float = math.inf
    dropout: float = 0.0
    canaries: Canaries | None = None
    dense: bool = False
    alone: bool = False
    apart: int | None = None
    personal: Personalisation | None = None
    layers: LayerClipping | None = None
    record_inputs: RecordInputs = None  # type: ignore[assignment]  # of the records and the module

    def __post_init__(self) -> None:
        inputs, records = self.record_inputs, self.people.dataset.x
        if inputs is None or not inputs.are_of(records, self.module, self.device):
            inputs = RecordInputs(records, self.module, self.device, int(self.sizes.sum()))
            object.__setattr__(self, "record_inputs", inputs)

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        people: Population | None = None,
        plan: Plan | None = None,
        *,
        sizes: Ids | None = None,
        allow_code: bool = False,
    ) -> Fleet:
        """The fleet of a scenario.

        Args:
            scenario: The agreed scenario.
            people: Replaces the data that the scenario names.
            plan: The scenario's plan, where it has been calibrated before.
            sizes: The records that each client is agreed to have; None: as many as it has.
            allow_code: Whether the scenario may run code (`--allow-code`).

        Raises:
            InputError: if there is no such device, the scenario's model cannot be made, or not for this data,
                or not trained as configured, or the plan is made for other clients, or no public record is
                left to a defence that reads them.
        """
        if scenario.training.device == "cuda":
            prepare_cuda()
        people = people or population(scenario.data)
        check_references(scenario, people)
        data, model = people.dataset, model_of(scenario, people, allow_code=allow_code)
        options, module = scenario.training, model.of_client(model.build(0))
        personal = None if options.personal is None else MODES[options.personal].of(options, model, module)
        plan = plan or plan_of(scenario, model)
        _check_frozen(plan, model)
        sizes = people.partition.sizes if sizes is None else sizes
        check_sizes(plan, sizes)
        if personal is not None:
            check_memory(plan.population, personal.size)
        return cls(
            plan=plan,
            people=people,
            model=model,
            module=module,
            sizes=sizes,
            training=LocalTraining(
                # Draw and accounting share one object: the plan has the batches if they are accounted for.
                batches=plan.batches or batches_of(scenario),
                learning_rate=options.learning_rate,
                momentum=options.momentum,
                weight_decay=options.weight_decay,
                proximal=options.proximal,
                projection=options.projection,
                averaging=options.averaging,
                loss=loss_of(data.task, options.loss, options.huber_threshold),
                adversarial=_adversarial(options),
            ),
            by_records=options.weighting == "records",
            streams=run_streams(scenario, people, model.code),
            hosts=scenario.federation.hosts,
            trainer=trainer_of(options.trainer, module, people.features, data.classes, data.task),
            device=options.device,
            client_timeout=scenario.federation.client_timeout,
            timeout=scenario.federation.timeout,
            dropout=scenario.federation.dropout,
            dense=_dense(scenario, plan),
            layers=layers_of(scenario.privacy, module),
            alone=_alone(scenario, plan, split(module, people.features, int(sizes.sum()))[1]),
            personal=personal,
        )

    @property
    def x(self) -> torch.Tensor:
        """All records, float32, shape (records, *features), on the CPU without a copy."""
        return self.record_inputs.x

    @cached_property
    def y(self) -> torch.Tensor:
        """All labels, int64, shape (records,), or targets, shape (records, targets); no copy on the CPU."""
        return torch.from_numpy(self.people.dataset.y).to(self.device)

    @property
    def head(self) -> nn.Module:
        """The part of the model that trains on features: all of it, but for a frozen encoder in front."""
        return self.record_inputs.parts[1]

    @property
    def features(self) -> Features | None:
        """The features of all records, None where no frozen encoder is in front of the model."""
        return self.record_inputs.features

    def inputs(self, records: Sequence[Ids]) -> torch.Tensor:
        """The inputs of the head for all records, of which those of some clients are ready.

        Args:
            records: The record numbers of each of these clients.
        """
        if self.training.adversarial is not None:
            records = [*records, self.people.references]
        return self.record_inputs.ready(records)

    @property
    def _input_shape(self) -> tuple[int, ...]:
        return self.people.features if self.features is None else self.features.shape

    @cached_property
    def parameters(self) -> int:
        """The number of the weights that are trained together: the length of an update."""
        return trained_size(self.module if not self.model.personal else self.model.build(0))

    @property
    def way(self) -> str:
        """The way of training, in words."""
        size = self._places(self._records, formed=False)
        calls = f"calls of {size} client{'' if size == 1 else 's'} of mean size"
        if self.plan.unit == "example":
            return f"DP-SGD on single records{self._on_features}, {calls}"
        if self.training.adversarial is not None:
            return (
                f"by adversarial regularisation, vectorised over clients{self._on_features}, {calls}, "
                f"on {self.device}"
            )
        way = way_of(self.head, self.training.batches, self._records, apart=bool(self.model.personal))
        copies = "; copies of the model beside, vectorised over clients" * isinstance(self.personal, Ditto)
        return f"{way}{self._on_features}, {calls}, on {self.device}{copies}"

    @property
    def _on_features(self) -> str:
        return "" if self.features is None else ", on features of a frozen encoder"

    def piece_size(self, records: int | None = None, *, formed: bool = False) -> int:
        """The number of clients trained at once, such that their data fit a processor's cache, or a GPU.

        Args:
            records: Of the largest of them, to whose size all are padded; None: of the mean client.
            formed: Whether each update is formed, as it is too where each gets noise of its own.
        """
        records, batches = records or self._records, self.training.batches
        held = numbers_held(self.head, self._input_shape, batches, records, self.device)
        if formed or self.plan.unit == "example" or self.plan.noise_draw == "client" or self.plan.shares:
            held += 4 * self.parameters
        if self.training.adversarial is not None:  # its weights, where they began, and their gradients
            held += 3 * self.parameters
        if self.model.personal:
            held += 5 * trained_size(self.module)
        return int(np.clip(_AT_ONCE[self.device] // (4 * held), 1, 1024))

    def classes(self, clients: Ids) -> Ids:
        """The size class of each client by the records that it is agreed to have, or has, shape (clients,).

        With unit "example" a class has room for one record more than agreed, so an added record moves no
        client to another class.
        """
        room, owners = int(self.plan.unit == "example"), self.people.partition.clients
        agreed = self.sizes[clients] + room
        most = np.where(clients < owners, self._counts[np.minimum(clients, owners - 1)], 0)
        return size_classes(np.maximum(agreed, most))

    @cached_property
    def _counts(self) -> Ids:
        return self.people.partition.sizes

    def shape(self, records: int, *, formed: bool = False, beside: bool = False) -> Shape:
        """The shape of the calls that train a size class, by the plan alone.

        Args:
            records: The bound of the class.
            formed: As `piece_size` has it.
            beside: Whether personal models are trained beside the updates.
        """
        if (shape := self._shapes.get((records, formed, beside))) is None:
            places = self._places_beside(records) if beside else self._places(records, formed)
            shape = Shape.of(self.training.batches, records, places)
            self._shapes[records, formed, beside] = shape
        return shape

    @cached_property
    def _shapes(self) -> dict[tuple[int, bool, bool], Shape]:
        """The shapes of calls so far: finding one takes longer than a small client's training."""
        return {}

    def places(self, clients: Ids, shape: Shape) -> Ids:
        """The clients' places in calls of a shape, by their ids alone, shape (clients,).

        Consecutive ids, also of one host among several, have different places, so few calls contain them.
        """
        if self.apart is not None:  # all others take part, so that their calls are full
            return (clients - (clients > self.apart)) % shape.places
        return (clients + clients // shape.places) % shape.places

    def _places(self, records: int, formed: bool) -> int:
        """The number of clients of a size class in one call; depends on the plan and the class alone.

        The number of clients is public, and the same in neighbouring data sets. It counts to the next power
        of four, so that few clients do not train in calls that are almost empty.
        """
        if self.plan.unit == "example" and self.trainer is not train_examples:
            return 1  # Opacus takes clients one after the other
        # Clients' texts are work enough for a call each, which plain autograd does faster than `vmap`.
        if self.alone or isinstance(self.module, SEQUENCES):
            return 1
        most, grouped = self._most_places, self._grouped
        # The more places, the more are empty; groups of convolutions gain little by more than two. Measured.
        share = 1 if self.dense else 8 if grouped else 4
        return int(np.clip(self.piece_size(records, formed=formed) // share, 1 + grouped, most))

    def _places_beside(self, records: int) -> int:
        """As `_places`, for models beside the updates, whatever messages the updates are in."""
        if isinstance(self.module, SEQUENCES):
            return 1
        held = numbers_held(self.head, self._input_shape, self.training.batches, records, self.device)
        held += 5 * trained_size(self.module)
        return int(np.clip(_AT_ONCE[self.device] // (16 * held), 1, self._most_places))

    @property
    def _most_places(self) -> int:
        rooms = _ROOMS if self.device == "cpu" else (*_ROOMS, 4 * _ROOMS[-1])
        return next((room for room in rooms if room >= self.plan.population), rooms[-1])

    @property
    def _grouped(self) -> bool:
        """Whether clients train as groups of convolutions; one alone would take half as long again."""
        by_layer = self.plan.unit == "client" and self.training.adversarial is None
        by_layer = by_layer and not self.model.personal
        return by_layer and has_grouped_convolutions(self.head)

    def check_labels(self, records: Sequence[Ids]) -> None:
        """Looks for labels that would end the use of a GPU for this whole process; a CPU's kernels raise.

        Args:
            records: The record numbers of each client of a call.

        Raises:
            IndexError: there is such a label.
        """
        if self.device == "cpu" or self.people.dataset.task not in NAMED:
            return
        labels, classes = self.people.dataset.y[np.concatenate(records)], self.people.dataset.classes
        if len(wrong := labels[(labels < 0) | (labels >= classes)]):
            raise IndexError(f"label {wrong[0]} is out of range: there are {classes} classes")

    def train(self, task: Task) -> tuple[Updates, Ids]:
        """Trains the clients of a call.

        Returns:
            Updates, which with unit "example" under local trust are private already; and how many gradients
            of records counted as zero, shape (clients,).
        """
        plan = self.plan
        if plan.unit == "client":
            return self.train_beside(task)
        if plan.trust == "central":
            sums, zeroed = clipped_gradients(task, plan.clipping_norm)
            return Stack(sums), zeroed
        updates, zeroed = self.trainer(task, plan.clipping_norm, plan.step_noise)
        return Stack(updates), zeroed

    def train_beside(self, task: Task) -> tuple[Updates, Ids]:
        """Trains models of clients by plain SGD; nothing of it is sent."""
        if self.device == "cuda":
            with ordered_kernels():
                return train_cohort(task), np.zeros(len(task.clients), np.int64)
        return train_cohort(task), np.zeros(len(task.clients), np.int64)

    @property
    def _records(self) -> int:
        """The agreed mean number of records of a client."""
        return max(1, round(self.sizes.mean()))

    def weights(self, clients: Ids) -> torch.Tensor:
        """The weight of each client's update, float64, shape (clients, 1); its mean over all clients is 1."""
        shares = self.sizes / self.sizes.mean() if self.by_records else np.ones(len(self.sizes))
        return torch.from_numpy(shares[clients])[:, None]

    def present(self, clients: Ids, round: int) -> Ids:
        """Removes the clients that drop out of a round: one coin each, always with the same result."""
        if not self.dropout:
            return clients
        coins = self.streams.streams("dropout", clients.tolist(), round=round)
        return clients[np.array([coin.random() >= self.dropout for coin in coins], dtype=np.bool_)]

    def hosts_of(self, node_config: Mapping[str, object]) -> list[int]:
        """The logical hosts that a node serves."""
        return hosts_here(self.hosts, node_config)


def _check_frozen(plan: Plan, model: ModelSpec) -> None:
    """Refuses a plan with another frozen part of the model than there is here.

    Raises:
        InputError: it was made of other weights.
    """
    here, agreed = model.frozen, plan.frozen
    if here == agreed:
        return
    texts = ["no frozen weights" if part is None else part.identity for part in (here, agreed)]
    raise InputError(
        f"model: its frozen weights are not those of the plan (here: {texts[0]}; in the plan: {texts[1]}). "
        "Use the same model on every machine."
    )


def _dense(scenario: Scenario, plan: Plan) -> bool:
    """Whether larger calls have few empty places, by the scenario and the plan alone.

    They have where clients are of one size, all are in each round, and a message has consecutive ids that
    fill a call. `sampling.name = "all"` has them for any hosts and messages.
    """
    if getattr(scenario.data, "partition", "by-user") not in _EQUAL_SIZES:
        return False
    sampler, population, federation = plan.sampler, plan.population, scenario.federation
    if isinstance(sampler, AllSampling):
        return True
    everybody = sampler.expected_cohort(population) >= population
    return everybody and federation.hosts == 1 and federation.chunk_size >= min(population, _ROOMS[-1])


def _alone(scenario: Scenario, plan: Plan, module: nn.Module) -> bool:
    """Whether each message is for one client, as where a server attacks: other places stay empty.

    Not where a single client is trained without `vmap`, or by one group of convolutions, in another order of
    operations: there the cut of a cohort into messages would change bits.
    """
    federation = scenario.federation
    if min(federation.chunk_size, -(-plan.population // federation.hosts)) > 1:
        return False
    if scenario.training.personal == "partial":
        return False
    by_layer = is_layerwise(module) and not has_grouped_convolutions(module)
    return plan.unit == "example" or (scenario.training.adversarial is None and by_layer)


def _adversarial(options: Training) -> Adversarial | None:
    """The settings of clients' inference networks; None without them."""
    if options.adversarial is None:
        return None
    return Adversarial(options.adversarial, options.adversarial_steps, options.adversarial_first)


def hosts_here(hosts: int, node_config: Mapping[str, object]) -> list[int]:
    """The logical hosts that a node serves: those h with h mod num-partitions = partition-id.

    Raises:
        InputError: if there is no such partition: another node would serve its hosts too.
    """
    given = [node_config.get(key, usual) for key, usual in (("num-partitions", 1), ("partition-id", 0))]
    try:
        nodes, node = (int(str(value)) for value in given)
    except ValueError:
        nodes, node = 0, 0
    if not 0 <= node < nodes:
        raise InputError(
            f"node config: num-partitions = {given[0]}, partition-id = {given[1]}: nodes are numbered from 0 "
            "to num-partitions - 1."
        )
    return list(range(node, hosts, nodes))


class Budgets:
    """The participations of each client, with its last round.

    A client answers a round once, and later rounds only: a second answer to one round would reuse
    that round's noise. Refusing is the client's own act, whoever sends the request.

    Args:
        counts: Answers so far, int32, shape (population,).
        last: The last round answered, -1 for none, int32, shape (population,).
        cap: Answers allowed.
    """

    def __init__(self, counts: NDArray[np.int32], last: NDArray[np.int32], cap: int) -> None:
        self.counts, self.last, self.cap = counts, last, cap

    @classmethod
    def fresh(cls, population: int, cap: int) -> Budgets:
        """Nobody has answered yet."""
        return cls(np.zeros(population, np.int32), np.full(population, -1, np.int32), cap)

    def words(self, clients: Ids) -> str:
        """The most answers of any of these clients, and the limit, in words."""
        return f"{int(self.counts[clients].max(initial=0))} of {self.cap}"

    def spend(self, clients: Ids, round: int) -> Ids:
        """Charges the clients that may answer this round, and returns their ids."""
        # `last < round` refuses a server that repeats a round, or goes back to an earlier one, with another
        # model: from a seeded stream the noise would be the same, and would cancel in the difference.
        willing = clients[(self.counts[clients] < self.cap) & (self.last[clients] < round)]
        self.counts[willing] += 1
        self.last[willing] = round
        return willing
