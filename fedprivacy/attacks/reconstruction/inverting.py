"""Rebuilds records by inverting gradients: cosine and total variation (Geiping et al. 2020).

"Inverting gradients: how easy is it to break privacy in federated learning?". Pictures are sought whose
simulated local training gives an update in the direction of the observed one, by Adam on the sign of the
gradient. The attacker knows the model, the local steps and the labels of all records but one, whose label it
infers from the update's last biases (`label_of`; of a single record Zhao, Mopuri and Bilen 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedprivacy.data.images import square_image
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import unflatten

NO_LABELS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class LocalSteps:
    """The local training that an update came from: steps of plain SGD over all records at once.

    Args:
        steps: Their number.
        learning_rate: Of each.
    """

    steps: int = 1
    learning_rate: float = 1.0

    def update(self, module: nn.Module, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The update that records give, differentiable by them, shape (parameters,)."""
        at = weights if weights.requires_grad else weights.clone().requires_grad_(True)
        start = at
        for _ in range(self.steps):
            logits = functional_call(module, unflatten(module, at), x)
            loss = nn.functional.cross_entropy(logits, y)
            [gradient] = torch.autograd.grad(loss, at, create_graph=True)
            at = at - self.learning_rate * gradient
        return at - start


@dataclass(frozen=True)
class Inversion:
    """The settings of the search.

    Args:
        steps: Steps of Adam.
        rate: Their learning rate, a tenth of it after 3/8, 5/8 and 7/8 of the steps.
        variation: The weight of the total variation, beside a cosine distance of 0 to 2.
        low: The least value of a pixel.
        high: The largest value of a pixel.
    """

    steps: int = 600
    rate: float = 0.1
    variation: float = 1e-2
    low: float = 0.0
    high: float = 1.0

    def rebuild(
        self,
        module: nn.Module,
        weights: Tensor,
        observed: Tensor,
        labels: Tensor,
        features: tuple[int, ...],
        local: LocalSteps,
        stream: np.random.Generator,
    ) -> NDArray[np.float64]:
        """The records that an update was made of, shape (records, pixels).

        Args:
            module: The model; its trained weights are not read.
            weights: The weights that training began with, float32, shape (parameters,).
            observed: The update, shape (parameters,).
            labels: The labels, int64, shape (records,).
            features: The shape of a record.
            local: The local training.
            stream: Draws the pictures to start from.

        Raises:
            InputError: records are no square images.
        """
        image = square_image(features)
        if image is None:
            raise InputError(
                f"records of the shape {features} are no square images, whose total variation is small. "
                'Take method = "analytic" or "informed".'
            )
        channels, side = image
        drawn = stream.uniform(self.low, self.high, (len(labels), *features)).astype(np.float32)
        x = torch.from_numpy(drawn).requires_grad_(True)
        adam = torch.optim.Adam([x], lr=self.rate)
        milestones = [self.steps * eighths // 8 for eighths in (3, 5, 7)]
        schedule = torch.optim.lr_scheduler.MultiStepLR(adam, milestones, gamma=0.1)
        cosine = _cosine_distance(observed)
        for _ in range(self.steps):
            gap = cosine(local.update(module, weights, x, labels))
            loss = gap + self.variation * total_variation(x.reshape(-1, side, side, channels))
            [gradient] = torch.autograd.grad(loss, x)
            x.grad = gradient.sign()
            adam.step()
            schedule.step()
            with torch.no_grad():
                x.clamp_(self.low, self.high)
        return x.detach().flatten(1).double().numpy()


def _cosine_distance(observed: Tensor) -> Callable[[Tensor], Tensor]:
    direction = observed.float() / observed.float().norm().clamp_min(1e-30)
    return lambda update: 1 - (update @ direction) / update.norm().clamp_min(1e-30)


def total_variation(images: Tensor) -> Tensor:
    """The mean absolute difference of neighbouring pixels; images of shape (images, side, side, channels)."""
    across = (images[:, :, 1:] - images[:, :, :-1]).abs().mean()
    return across + (images[:, 1:] - images[:, :-1]).abs().mean()


def check_last_biases(module: nn.Module, classes: int) -> None:
    """Refuses a model whose update does not end with the biases of the classes, which `label_of` reads.

    Raises:
        InputError: its last parameter is another, or frozen.
    """
    name, last = list(module.named_parameters())[-1]
    if last.requires_grad and last.shape == (classes,):
        return
    raise InputError(
        f'model: method = "inverting" infers a label from the biases of the {classes} classes, and the last '
        f"parameter, {name}, is {'frozen' if not last.requires_grad else 'no such bias'}. Train the last "
        "layer with its bias."
    )


def label_of(update: NDArray[np.float64], classes: int, others: NDArray[np.int64] = NO_LABELS) -> int:
    """The unknown label of a record: with it the classes' biases rise as they did in the update.

    The bias of a class rises by how many records have it, less how many the model expects: of a model that
    knows nothing, the same number of each. Clipping and the learning rate scale all biases alike.

    Args:
        update: Weights after training minus weights before; the bias of the classes comes last.
        classes: The number of classes.
        others: The labels of the other records that the client trained on, shape (others,).
    """
    counted = np.bincount(others, minlength=classes) - (len(others) + 1) / classes
    expected = counted + np.eye(classes)
    return int((expected @ update[-classes:] / np.linalg.norm(expected, axis=1)).argmax())
