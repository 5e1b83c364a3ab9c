"""The gradients of single records as Opacus forms them, whatever one record does to the model.

A record that makes the model raise counts as zero, and so does one whose gradient is not finite: the steps go
on with the others. If such a record made the client fail, it would take all other records out of the sum, and
the noise is made to hide one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from opacus import GradSampleModule
from torch import Tensor, nn

from fedprivacy.models.losses import Loss
from fedprivacy.training.clipped_gradients import by_themselves


def keep_images_in_order(module: nn.Module) -> None:
    """Has two-dimensional convolutions get their inputs in torch's ordinary order in memory.

    Opacus unfolds what goes into a convolution as if it lay in that order, and gets other gradients where it
    does not: where images have their channels last, or come from a convolution of such images.

    Args:
        module: A module that Opacus has no hooks on yet.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            # `contiguous` would keep other strides along sides of length 1, which padding then makes longer.
            layer.register_forward_pre_hook(
                lambda _, given: (given[0].clone(memory_format=torch.contiguous_format), *given[1:])
            )


def form_gradients(private: GradSampleModule, x: Tensor, y: Tensor, loss: Loss) -> int:
    """Forms the gradients of records, which the next step of Opacus' optimizer clips and sums.

    Args:
        private: The model with Opacus' hooks, to (batch, classes) logits, each record by itself.
        x: Records, in the precision of the weights, shape (batch, *features).
        y: Labels, int64, shape (batch,), or targets, float32, shape (batch, outputs).
        loss: The loss of a record.

    Returns:
        How many records count as zero, since they make the module raise or their gradients are not finite. It
        depends on the data: operator-only.
    """
    raising = 0
    try:
        samples = gradients_of(private, x, y, loss)
    except Exception:
        samples, raising = _without_raising(private, x, y, loss)
    return raising + _zero_broken(samples)


def gradients_of(private: GradSampleModule, x: Tensor, y: Tensor, loss: Loss) -> list[Tensor]:
    """The gradients of records, which Opacus' hooks leave at the weights too.

    Args:
        As `form_gradients` has them.

    Returns:
        For each weight that is trained a tensor of shape (batch, *shape of the weight).

    Raises:
        Exception: whatever the module or Opacus raises; nothing is left of the records then.
    """
    private.set_grad_sample_to_none()
    weights = _trained(private)
    if not len(y):  # some models fail on an empty batch
        return _given(private, [weight.new_zeros((0, *weight.shape)) for weight in weights])
    try:
        loss.check(y)
        loss.losses(private(x), y).mean().backward()
        samples = [weight.grad_sample for weight in weights]  # type: ignore[attr-defined]
        if any(not isinstance(sample, Tensor) for sample in samples):
            raise ValueError("Opacus has no gradients of single records by some of the weights")
    except Exception:
        _forget(private)
        raise
    return samples


def _without_raising(private: GradSampleModule, x: Tensor, y: Tensor, loss: Loss) -> tuple[list[Tensor], int]:
    """Returns gradients after an exception, without the records that raise, and their number.

    The others are taken together once more; one by one only where that raises too.
    """

    def gradient(record: int) -> list[Tensor]:
        return gradients_of(private, x[record : record + 1], y[record : record + 1], loss)

    alone = dict(by_themselves(range(len(y)), gradient))
    raising = len(y) - len(alone)
    if raising:
        rest = torch.tensor(list(alone), dtype=torch.int64)
        try:
            return gradients_of(private, x[rest], y[rest], loss), raising
        except Exception:
            pass  # nothing but one by one is left
    return _given(private, [torch.cat(parts) for parts in zip(*alone.values(), strict=True)]), raising


def _trained(private: GradSampleModule) -> list[nn.Parameter]:
    return [weight for weight in private.parameters() if weight.requires_grad]


def _given(private: GradSampleModule, samples: list[Tensor]) -> list[Tensor]:
    """Leaves these gradients at the weights, as the hooks do."""
    for weight, sample in zip(_trained(private), samples, strict=True):
        weight.grad_sample = sample  # type: ignore[attr-defined]
    return samples


def _forget(private: GradSampleModule) -> None:
    """Takes away what Opacus' hooks keep between a pass forward and the end of the pass back.

    Opacus would count and use it in the next pass, whatever records that has.
    """
    for layer in private.modules():
        for attribute in ("activations", "max_batch_len"):
            layer.__dict__.pop(attribute, None)
    for weight in private.parameters():
        weight.__dict__.pop("_current_grad_sample", None)
        weight._forward_counter = 0


def _zero_broken(samples: Sequence[Tensor]) -> int:
    """Makes zero of the gradients of a record, one for each parameter, where one is not finite.

    Opacus would add them to the sum as they are.
    """
    finite = torch.stack([sample.isfinite().flatten(1).all(1) for sample in samples]).all(0)
    if not finite.all():
        for sample in samples:
            sample[~finite] = 0.0
    return int((~finite).sum())
