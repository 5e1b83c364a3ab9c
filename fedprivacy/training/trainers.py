"""The implementations of DP-SGD inside the clients, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import InputError
from fedprivacy.io.install_hint import install
from fedprivacy.models.from_code import reason
from fedprivacy.training.dp_sgd import train_examples
from fedprivacy.training.task import Index

Trainer = Callable[..., tuple[Tensor, Index]]  # as `train_examples` of dp_sgd


def trainer_of(
    name: str, module: nn.Module, features: Sequence[int], classes: int, task: str = CLASSIFICATION
) -> Trainer:
    """The trainer that a scenario names, tried on its model.

    Args:
        name: "fedprivacy" or "opacus".
        module: The model that is to be trained.
        features: The shape of one record.
        classes: The number of outputs, or of tokens.
        task: What the model predicts (`fedprivacy.data.tasks`).

    Raises:
        InputError: if Opacus cannot be imported, or cannot train the model.
    """
    if name == "fedprivacy":
        return train_examples
    try:
        from fedprivacy.training import opacus_trainer
    except ImportError as error:
        raise InputError(
            f'training.trainer = "{name}": Opacus cannot be imported, {reason(error)}. '
            f"Install the extra: {install('opacus')}"
        ) from error
    opacus_trainer.check(module, features, classes, task)
    return opacus_trainer.train_examples
