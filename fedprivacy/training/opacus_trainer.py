"""DP-SGD inside the clients by Opacus: the same mechanism as `fedprivacy.training.dp_sgd`.

Each client trains through `opacus.PrivacyEngine.make_private`: Opacus computes the records' gradients, clips
them, adds the noise and divides by the mean size of a batch. The batches are drawn by the plan's own sampler,
and not by Opacus' Poisson sampler, whose rate is always one over a whole number. So both trainers draw
alike, and the draw that the accountant assumes is the draw that is made. Opacus' accountant gets its rate.

The noise is torch's: normal numbers made from a Mersenne Twister that no other client or round has. Its
whole state is drawn from the client's stream of the run (`fedprivacy.randomness.streams`), since torch
would seed it with 32 bits, which among a million clients and rounds some would share. All is computed in
float64: in float32 torch draws nothing beyond 5.77 standard deviations, and over many steps the missing
tail adds up to a usual delta.
Anyone who knows the seed of the run knows the noise.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector
from torch.utils.data import DataLoader, TensorDataset

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import flat_weights, unflatten
from fedprivacy.models.from_code import reason
from fedprivacy.models.lora import LoraLinear
from fedprivacy.models.losses import trial_loss, trial_records
from fedprivacy.models.partial_training import trained_parameters
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import PoissonBatches, ShuffledBatches
from fedprivacy.training import dp_sgd
from fedprivacy.training.opacus_gradients import form_gradients, gradients_of, keep_images_in_order
from fedprivacy.training.task import Index, LocalTraining, Task

MOST_NUMBERS = 2**25  # of records' gradients at once: 256 MB
_RECORDS = 4
_STATE_WORDS = slice(24, 24 + 8 * 624)  # where torch keeps the words of its Mersenne Twister, in bytes


def train_examples(
    task: Task, clipping_norm: float | None, noise: Gaussian | None, *, blank: bool = False
) -> tuple[Tensor, Index]:
    """The updates of a chunk of clients that train by DP-SGD, one after the other.

    Args:
        As `fedprivacy.training.dp_sgd.train_examples` has them.

    Returns:
        As there: updates, float64, shape (clients, parameters); and how many gradients of each client counted
        as zero, shape (clients,), since they were not finite or could not be computed.
    """
    options, clients, sizes = task.options, task.clients, task.agreed
    index, used, steps = task.batches(secret=True)
    used &= not blank
    data, start = TensorDataset(task.x, task.y), torch.from_numpy(task.weights).double()
    private = _copy_of(task.module)
    updates = torch.zeros((len(clients), len(start)), dtype=torch.float64)
    zeroed = np.zeros(len(clients), dtype=np.int64)
    for row, (client, size) in enumerate(zip(clients.tolist(), sizes.tolist(), strict=True)):
        drawn = [index[row, step][used[row, step]] for step in range(steps[row])]
        # Without a generator of its own a loader draws from torch's, a seed for workers that it has not.
        loader = DataLoader(data, batch_size=None, sampler=drawn, generator=torch.Generator())
        _start_at(start, private)
        with _without_answered_warnings():
            sgd = torch.optim.SGD(
                trained_parameters(private).values(),
                options.learning_rate,
                momentum=options.momentum,
                weight_decay=options.weight_decay,
            )
            engine = PrivacyEngine()
            private, optimizer, loader = engine.make_private(
                module=private,
                optimizer=sgd,
                data_loader=loader,
                noise_multiplier=0.0 if noise is None else noise.noise_multiplier,
                max_grad_norm=sys.float_info.max if clipping_norm is None else clipping_norm,
                # `drawn` is the sample, by our own streams: Opacus' sampler would draw another one than the
                # plan states, and another one when a run is repeated.
                poisson_sampling=False,
                noise_generator=generator_of(task.streams.noise("opacus", round=task.round, member=client)),
            )
            # Opacus takes both from the loader, as if it were a pass over all records.
            optimizer.expected_batch_size = options.batches.mean_size(size)
            if isinstance(options.batches, PoissonBatches):
                rate = options.batches.rate_of(size)
                optimizer.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=rate))
            else:  # its accountant knows Poisson batches alone
                optimizer.step_hook = None
            updates[row], zeroed[row] = _train(private, optimizer, loader, start, options)
    return updates, zeroed


def _copy_of(module: nn.Module) -> nn.Module:
    copied = copy.deepcopy(module).double().train()
    keep_images_in_order(copied)
    return copied


def _train(
    private: GradSampleModule,
    optimizer: DPOptimizer,
    loader: DataLoader,
    start: Tensor,
    options: LocalTraining,
) -> tuple[Tensor, int]:
    """One client's update, float64, shape (parameters,), and the number of gradients that counted as zero."""
    parameters = list(trained_parameters(private).values())
    if options.proximal:  # the proximal term follows the noise, like weight decay
        sent = [parameter.detach().clone() for parameter in parameters]

        def pull(*_: object) -> None:
            for parameter, origin in zip(parameters, sent, strict=True):
                assert parameter.grad is not None
                parameter.grad.add_(parameter.detach() - origin, alpha=options.proximal)

        optimizer.original_optimizer.register_step_pre_hook(pull)
    most = max(1, MOST_NUMBERS // len(start))
    total, zeroed = torch.zeros_like(start), 0
    for inputs, labels in loader:
        pieces = list(zip(inputs.split(most), labels.split(most), strict=True))
        for number, (some, sizes) in enumerate(pieces, start=1):
            optimizer.zero_grad()
            zeroed += form_gradients(private, some.double(), sizes, options.loss)
            optimizer.signal_skip_step(number < len(pieces))  # the noise comes with the last piece
            optimizer.step()
        if options.projection is not None:
            _project(parameters, options.projection)
        if options.averaging:
            total += parameters_to_vector(parameters).detach() - start
    way = parameters_to_vector(parameters).detach() - start
    return total / len(loader) if options.averaging else way, zeroed


@torch.no_grad()
def _project(parameters: Sequence[nn.Parameter], radius: float) -> None:
    """Moves the weights to the nearest ones within a ball around zero."""
    norm = torch.linalg.vector_norm(parameters_to_vector(parameters))
    if norm > radius:
        for parameter in parameters:
            parameter.mul_(radius / norm)


@torch.no_grad()
def _start_at(weights: Tensor, private: nn.Module) -> None:
    for name, value in unflatten(private, weights).items():
        private.get_parameter(name).copy_(value)


def generator_of(stream: np.random.Generator) -> torch.Generator:
    """A generator of torch's whose whole state is drawn from a stream.

    Raises:
        RuntimeError: if this torch keeps the state of its generators in another way than the known one.
    """
    generator = torch.Generator().manual_seed(1)
    state = generator.get_state().numpy()
    words = state[_STATE_WORDS].view(np.uint64)
    if words[:2].tolist() != [1, 1812433254]:  # how a Mersenne Twister is seeded with 1
        raise RuntimeError(f"torch {torch.__version__} keeps the state of its generators in an unknown way")
    words[:] = stream.integers(2**32, size=len(words), dtype=np.uint64)
    return generator.set_state(torch.from_numpy(state))


@contextmanager
def _without_answered_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        # The README states that all noise here is simulation-grade.
        warnings.filterwarnings("ignore", message="Secure RNG turned off")
        # Opacus hooks the first layer too, whose inputs are data.
        warnings.filterwarnings("ignore", message="Full backward hook is firing when gradients")
        yield


def check(module: nn.Module, features: Sequence[int], classes: int, predicted: str = CLASSIFICATION) -> None:
    """Tests Opacus on a model with a few synthetic records, before any client trains.

    Args:
        module: The model.
        features: The shape of one record.
        classes: The number of outputs, or of tokens.
        predicted: The task of the model (`fedprivacy.data.tasks`).

    Raises:
        InputError: if Opacus refuses the model, or gets other gradients than `dp_sgd` does, by torch's own.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, LoraLinear) and any(p.requires_grad for p in layer.parameters(recurse=False)):
            raise InputError(
                _refused(
                    f'Opacus takes no layer within a trained one, and "{name}" has an adapter within: leave '
                    "its weight and bias out of model.trainable"
                )
            )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = trial_records(_RECORDS, features, classes, predicted)
    loss = trial_loss(predicted, classes)
    y = loss.example_targets(x, classes)
    records = [np.arange(1), np.arange(1, _RECORDS)]
    options = LocalTraining(ShuffledBatches(1), learning_rate=1.0, loss=loss)
    task = Task(module, flat_weights(module), x, y, records, np.arange(2), options, Streams(0), round=0)
    try:
        updates, _ = train_examples(task, 0.1, None)
        with _without_answered_warnings():
            # In training a client continues if this raises, so an unsupported model must be found here.
            gradients_of(GradSampleModule(_copy_of(module)), x.double(), y, loss)
    except Exception as error:
        raise InputError(
            _refused(f"Opacus, which computes in float64 here, raises {_reason(error)}")
        ) from error
    expected, _ = dp_sgd.train_examples(task, 0.1, None)
    if not torch.allclose(updates, expected, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise InputError(_refused("Opacus gets wrong gradients of its records: torch.func gets others"))


def _refused(what: str) -> str:
    return (
        f'training.trainer = "opacus": the model cannot be trained by it: {what}. '
        'Change the model, or use trainer = "fedprivacy".'
    )


def _reason(error: Exception) -> str:
    """The text of an Opacus error, which may hold a list of others."""
    inner = error.args[0] if error.args else None
    return "; ".join(map(reason, inner)) if isinstance(inner, list) and inner else reason(error)
