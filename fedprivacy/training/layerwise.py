"""Local training of many clients at once where the model is a chain: layer by layer.

Each layer with weights is passed once for all clients (`fedprivacy.training.layers` and `convolutions`);
torch differentiates the layers between them (activations, pooling). Equal to a plain PyTorch
loop client by client, up to rounding. For other models see `fedprivacy.training.cohort`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.mechanisms.clipping import shares_of_norms
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.losses import CrossEntropy
from fedprivacy.sampling.batches import Batches
from fedprivacy.training.chain_gradients import is_convolutional
from fedprivacy.training.convolutions import FormedConvolution
from fedprivacy.training.layers import FactoredLinear, FormedLinear, Layer, Place, Scale, Step, rows_at
from fedprivacy.training.linear_gradients import is_linear
from fedprivacy.training.task import Index, LocalTraining, Task
from fedprivacy.training.unfolded_convolution import UnfoldedConvolution, numbers_of_patches
from fedprivacy.training.unfolding import output_size
from fedprivacy.training.weightless_layers import through

# Per second and core: floating-point operations of one large product and of many small ones, and bytes moved.
_SHARED_RATE, _OWN_RATE, _BYTES_RATE = 70e9, 12e9, 15e9
_LOT = 64  # columns that every kernel of torch sums in the same order


@dataclass(frozen=True)
class LayerwiseUpdates:
    """Updates that are not formed.

    Args:
        layers: In the order of the model's parameters.
        places: The indices of the trained clients that count, in order, on the CPU; None: all of them.
    """

    layers: Sequence[Layer]
    places: Tensor | None = None

    def clipped_total(self, clipping_norm: float | None, error: float = math.inf) -> tuple[Tensor, Tensor]:
        """As `fedprivacy.training.updates.Updates` has it.

        Norms and sums are computed in float64: a client's trained weights are float32, and in float32 the
        cancellation in its norm would differ from that in the sum.
        """
        errors = torch.stack([layer.errors() for layer in self.layers]).sum(dim=0)
        shares, broken = shares_of_norms(self._lengths(), clipping_norm, errors, error)
        if self.places is not None:
            counted = torch.zeros_like(broken)
            counted[self.places.to(broken.device)] = True
            shares = shares.masked_fill(~counted, 0.0)
        parts = [part for layer in self.layers for part in layer.total(shares)]
        return torch.cat([part.flatten() for part in parts]).cpu(), self._counted(broken.cpu())

    def norms(self) -> Tensor:
        """As `fedprivacy.training.updates.Updates` has it."""
        norms = self._lengths()
        return self._counted(norms.masked_fill(~torch.isfinite(norms), 0.0).cpu())

    def _lengths(self) -> Tensor:
        return torch.stack([layer.squares() for layer in self.layers]).sum(dim=0).sqrt()

    def stack(self) -> Tensor:
        """As `fedprivacy.training.updates.Updates` has it."""
        parts = [part for layer in self.layers for part in layer.stack()]
        return self._counted(torch.cat([part.flatten(1) for part in parts], dim=1).cpu())

    def only(self, clients: Index) -> LayerwiseUpdates:
        """As `fedprivacy.training.updates.Updates` has it: the others stay in the products, times zero."""
        places = torch.from_numpy(clients)
        return LayerwiseUpdates(self.layers, places if self.places is None else self.places[places])

    def _counted(self, values: Tensor) -> Tensor:
        return values if self.places is None else values[self.places]


def is_layerwise(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a model can be trained so: a chain whose linear layers see each record as one row."""
    if is_linear(module):
        return True
    if not is_convolutional(module):
        return False
    kinds = [type(part) for part in module]
    flat = len(kinds) - kinds[::-1].index(nn.Flatten) if nn.Flatten in kinds else 0
    images = nn.Conv2d in kinds[:flat] and nn.Linear not in kinds[:flat]
    return images and (flat == len(kinds) or is_linear(module[flat:]))


def kinds_of(module: nn.Sequential, batches: Batches, records: int) -> dict[str, str]:
    """The storage of each layer's weights, "factored" or "formed", by the layer's name.

    Args:
        module: A model that can be trained so.
        batches: Draws the batches of a client.
        records: How many a client has; all clients of a call are taken for as large (`calls.Shape`).
    """
    _, layers, _ = _parts(module)
    steps, batch = batches.steps_in(records), max(1, math.ceil(batches.mean_size(records)))
    kinds: dict[str, str] = {}
    for name, layer in layers.items():
        rows = records if not kinds else None
        factored = isinstance(layer, nn.Linear) and _factored(layer, rows, steps, batch)
        kinds[name] = "factored" if factored else "formed"
    return kinds


def numbers_of_convolutions(module: nn.Sequential, features: Sequence[int]) -> tuple[int, int, int]:
    """Counts the activations of the model's convolutions for one record, their weights, and its patches.

    Args:
        module: The model.
        features: The shape of a record.
    """
    flowing, outputs, weights, patches = torch.empty(1, *features, device="meta"), 0, 0, 0
    for part in module:
        if isinstance(part, nn.Linear):
            break
        if isinstance(part, nn.Conv2d):
            patches += numbers_of_patches(part, flowing)
            flowing = flowing.new_empty(1, part.out_channels, *output_size(part, flowing))
            outputs += flowing.numel()
            weights += part.weight.numel()
        else:
            flowing = part(flowing)
    return outputs, weights, patches


@torch.no_grad()
def train_layerwise(task: Task) -> LayerwiseUpdates:
    """Trains a chunk of clients that are each protected as a whole, or not protected."""
    chunk = _Chunk.of(task)
    for number in range(len(chunk.places)):
        chunk.step(number)
    return LayerwiseUpdates(chunk.layers)


@dataclass(frozen=True)
class _Chunk:
    """The clients of a task while they train.

    Args:
        options: The clients' optimiser.
        x: The records for batches, ready for the first layer, shape (clients, rows, *features).
        y: The labels, shape (clients, rows), or targets, shape (clients, rows, outputs).
        places: The positions of each step's batch among the rows.
        shares: The weight of each record in its batch, 0 where it is padding, shape (clients, steps, batch).
        active: For each step which clients have a batch left, 1.0 or 0.0, shape (clients, 1, 1); None: all.
        layers: With weights.
        between: The layers without weights that follow each of them.
        scale: Of the weights that were sent.
    """

    options: LocalTraining
    x: Tensor
    y: Tensor
    places: Sequence[Place]
    shares: Tensor
    active: Sequence[Tensor | None]
    layers: list[Layer]
    between: list[list[nn.Module]]
    scale: Scale

    @classmethod
    def of(cls, task: Task) -> _Chunk:
        """The clients as they begin."""
        device = task.x.device
        positions, used, _ = task.positions(secret=False)
        numbers, places = _rows(task.rows, positions, task.whole_batches)
        counted = torch.from_numpy(used).to(device)
        shares = counted.to(torch.float32)
        shares /= shares.sum(dim=2, keepdim=True).clamp_min(1.0)
        acting = np.asarray(used.any(axis=2)).T  # a row for each step
        scale = Scale(shares if task.options.weight_decay else None)
        before, weighted, between = _parts(task.module)
        rows = torch.from_numpy(numbers).to(device)
        x = task.x.index_select(0, rows.flatten())
        for part in before:
            x = part(x)
        x = x.unflatten(0, rows.shape)
        sent = unflatten(task.module, task.sent)
        assert isinstance(task.module, nn.Sequential)
        kinds = kinds_of(task.module, task.options.batches, task.most)
        layers: list[Layer] = []
        for name, layer in weighted.items():
            tensors = [sent[f"{name}.{key}"] for key, _ in layer.named_parameters()]
            if isinstance(layer, nn.Conv2d):
                kind = FormedConvolution if device.type == "cpu" else UnfoldedConvolution
                layers.append(kind(tensors, layer))
                continue
            if kinds[name] == "formed":
                layers.append(FormedLinear(tensors))
                continue
            given = not layers
            room = x if given else x.new_empty(len(x), used[0].size, layer.in_features)
            layers.append(FactoredLinear(tensors, room, scale, given=given))
        return cls(
            options=task.options,
            x=x,
            y=task.y[rows],
            places=[
                place if isinstance(place, slice) else torch.from_numpy(place).to(device) for place in places
            ],
            shares=shares,
            # The way of a client that is not idle times 1.0 has the same bits.
            active=[None if row.all() else _column(row, device) for row in acting],
            layers=layers,
            between=between,
            scale=scale,
        )

    def step(self, number: int) -> None:
        """Makes one step of all clients."""
        place, returns = self.places[number], []
        flowing = None if isinstance(self.layers[0], FactoredLinear) else rows_at(self.x, place)
        for layer, parts in zip(self.layers, self.between, strict=True):
            flowing, back_to = through(parts, layer.forward(flowing, place))
            returns.append(back_to)
        assert flowing is not None
        targets, shares = rows_at(self.y, place).flatten(0, 1), self.shares[:, number].flatten()
        classifies = isinstance(self.options.loss, CrossEntropy)
        gradient = _cross_entropy_gradient if classifies else self.options.loss.gradient
        back = gradient(flowing.flatten(0, 1), targets, shares).unflatten(0, flowing.shape[:2])
        backs: list[Tensor] = []
        for layer, back_to in zip(reversed(self.layers), reversed(returns), strict=True):
            backs.insert(0, back_to(back))
            if layer is not self.layers[0]:
                back = layer.backward(backs[0])
        options = self.options
        step = Step(
            options.learning_rate,
            options.momentum,
            options.weight_decay,
            options.proximal,
            self.active[number],
        )
        self.scale.descend(step)
        for layer, backward in zip(self.layers, backs, strict=True):
            layer.descend(backward, step)


def _column(values: NDArray[np.bool_], device: torch.device) -> Tensor:
    """The values of clients as 1.0 or 0.0, shape (clients, 1, 1)."""
    return torch.from_numpy(values.astype(np.float32)).to(device)[:, None, None]


def _cross_entropy_gradient(logits: Tensor, labels: Tensor, shares: Tensor) -> Tensor:
    """Returns cross-entropy gradients by the logits, times each record's share, shape (records, classes).

    As `CrossEntropy.gradient` within a rounding, with the classes in front: few of them make short rows,
    which torch's own kernels take four times as long for. Columns come in whole lots: torch adds up those of
    a rest in another order, and a record's gradient would reveal how many others there are.
    """
    records = len(logits)
    columns = logits.new_zeros(logits.shape[1], -(-records // _LOT) * _LOT)
    columns[:, :records] = logits.T
    columns.sub_(columns.amax(dim=0)).exp_()
    gradient = columns[:, :records]
    gradient *= shares / columns.sum(dim=0)[:records]
    gradient.scatter_add_(0, labels[None], -shares[None])
    return gradient.T.contiguous()


def _rows(records: Index, positions: Index, whole: bool) -> tuple[Index, list[slice | Index]]:
    """The records as the first layer needs them, and the positions of each step's batch among them.

    Where each record is used once, they are in the order of the batches, so that a batch is a slice; so it
    is where it holds all of them. Which it is goes by shapes alone, and not by what somebody drew.

    Args:
        records: Numbers, padded, shape (clients, records).
        positions: Among them, shape (clients, steps, batch).
        whole: Whether each batch holds all records.

    Returns:
        Numbers, shape (clients, rows); and for each step columns of them, or places in all of it.
    """
    clients, steps, batch = positions.shape
    if whole:
        return np.take_along_axis(records, positions[:, 0], axis=1), [slice(0, batch)] * steps
    if steps * batch < records.shape[1] + batch:
        ordered = np.take_along_axis(records, positions.reshape(clients, -1), axis=1)
        return ordered, [slice(begin, begin + batch) for begin in range(0, steps * batch, batch)]
    places = positions + records.shape[1] * np.arange(clients)[:, None, None]
    return records, [places[:, step].reshape(-1) for step in range(steps)]


def _parts(
    module: nn.Module,
) -> tuple[list[nn.Module], dict[str, nn.Linear | nn.Conv2d], list[list[nn.Module]]]:
    """A chain's parts: those before the first layer with weights, these layers, and what follows each."""
    before: list[nn.Module] = []
    layers: dict[str, nn.Linear | nn.Conv2d] = {}
    between: list[list[nn.Module]] = []
    for name, part in module.named_children():
        if isinstance(part, nn.Linear | nn.Conv2d):
            layers[name] = part
            between.append([])
            continue
        after = between[-1] if between else before
        if isinstance(part, nn.MaxPool2d) and after and isinstance(after[-1], nn.ReLU):
            after.insert(-1, part)  # the same numbers and gradients, and fewer of them for the ReLU
        else:
            after.append(part)
    return before, layers, between


def _factored(layer: nn.Linear, rows: int | None, steps: int, batch: int) -> bool:
    """Whether factored weights of a layer take less time, by measurements on one core.

    Args:
        layer: The layer.
        rows: Of a first layer, the number of a client's records; None for another layer.
        steps: The number of a client's steps.
        batch: The number of records in a batch.
    """
    size, ends = layer.in_features * layer.out_features, layer.in_features + layer.out_features
    every = steps * batch
    if rows is not None:
        shared = 2 * rows * size + 2 * rows * size
        cost = 3 * rows**2 * ends + 2 * every * rows * layer.out_features
    else:
        shared = 3 * 2 * every * size
        cost = 2 * every**2 * ends + 3 * every**2 * ends
    formed = 2 * (2 if rows is not None else 3) * every * size
    moved = 4 * (3 * steps + 3) * size
    return shared / _SHARED_RATE + cost / _OWN_RATE < formed / _OWN_RATE + moved / _BYTES_RATE
