"""The adversary of adversarial regularisation: each client's network separates members from others.

As h in Nasr, Shokri and Houmansadr 2018 it sees the classifier's output for a record, and the record's label.
It is one perceptron over both, smaller than theirs, and also gets the log-probability of the label, which a
larger network would learn to compute. All clients' networks are one computation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

WIDTHS = (64, 32)
LEARNING_RATE = 1e-3  # of Adam, as in the paper
_LEAST = -30.0  # least log-probability: a smaller one would dominate the gradient


class InferenceNetworks:
    """One network for each client of a chunk; nothing of one reaches another.

    Args:
        classes: Outputs of the classifier.
        streams: Draw the weights of each client's network, in the order of the clients.
        device: Where they are.
    """

    def __init__(self, classes: int, streams: Iterable[np.random.Generator], device: torch.device) -> None:
        sizes = (2 * classes + 1, *WIDTHS, 1)
        drawn = [
            [stream.standard_normal((a, b), np.float32) * math.sqrt(2 / a) for a, b in pairwise(sizes)]
            for stream in streams
        ]
        self.classes = classes
        self._weights = [
            torch.from_numpy(np.stack(layer)).to(device).requires_grad_(True)
            for layer in zip(*drawn, strict=True)
        ]
        self._biases = [
            torch.zeros(len(drawn), 1, size, device=device, requires_grad=True) for size in sizes[1:]
        ]
        # Adam takes each number by itself, so that clients stay apart.
        self._optimizer = torch.optim.Adam([*self._weights, *self._biases], lr=LEARNING_RATE, fused=True)

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        """The membership logits of records, shape (clients, records).

        Args:
            logits: The classifier's, shape (clients, records, classes).
            y: Labels, shape (clients, records).
        """
        logs = logits.log_softmax(dim=2)
        own_label = logs.gather(2, y[..., None]).clamp_min(_LEAST)
        flowing = torch.cat(
            [logs.exp(), nn.functional.one_hot(y, self.classes).to(logs.dtype), own_label], dim=2
        )
        for number, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            flowing = torch.baddbmm(bias, flowing if number == 0 else flowing.relu(), weight)
        return flowing[..., 0]

    def learn(self, logits: Tensor, y: Tensor) -> None:
        """One step up the gain: 1/2 E log h(member) + 1/2 E log(1 - h(reference)).

        Args:
            logits: The classifier's, as a call has them, of members and then of as many references.
            y: Their labels.
        """
        self._optimizer.zero_grad()
        regularisation = self(logits, y)
        half = regularisation.shape[1] // 2
        sides = torch.cat([-regularisation[:, :half], regularisation[:, half:]], dim=1)
        nn.functional.softplus(sides).mean(dim=1).sum().backward()
        self._optimizer.step()
