"""The exposure of secrets in a model of texts (Carlini et al. 2019, "The secret sharer").

See `fedprivacy.attacks.exposure_bound` for its bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.attacks.exposure_bound import bound_of_ledger, chance_exposure, exposure
from fedprivacy.data.secrets import CANDIDATES, DIGITS, Secret
from fedprivacy.data.tasks import NEXT_TOKEN
from fedprivacy.data.text_file import TextSource, secrets
from fedprivacy.data.texts import tokens_of
from fedprivacy.documents.quality import Exposure
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.prediction import chunks_of
from fedprivacy.scenario.data import TextFile


def stated_exposure(
    module: nn.Module, weights: NDArray[np.float32], options: TextFile, ledger: Mapping[str, Any]
) -> dict[str, Any]:
    """`Exposure` of the secrets in the texts of a run, as JSON.

    Args:
        module: The run's model; its own trained weights are not read.
        weights: The final ones, flat, shape (parameters,).
        options: The texts, at least one with a secret.
        ledger: As `bound_of_ledger` has it.
    """
    source = TextSource.of(dict(options))
    bits = exposures(module, weights, secrets(options.file), source.tokens, options.window)
    bound = bound_of_ledger(ledger, CANDIDATES)
    return Exposure.new(
        copies=options.copies,
        candidates=CANDIDATES,
        bits=bits,
        mean=math.fsum(bits) / len(bits),
        chance=chance_exposure(CANDIDATES),
        bound=None if bound is None else bound.to_json(),
    ).to_json()


def exposures(
    module: nn.Module,
    weights: NDArray[np.float32],
    hidden: Sequence[Secret],
    vocabulary: str,
    window: int,
) -> list[float]:
    """The exposure of each secret among all numbers of as many digits, in bits.

    Args:
        module: A causal model from tokens to the logits of the next one; its weights are not read.
        weights: The flat weights, shape (parameters,).
        hidden: The secrets.
        vocabulary: The characters that are tokens.
        window: The positions of a text that the model reads.
    """
    parameters = unflatten(module, torch.from_numpy(weights))

    def digits_after(texts: Sequence[str]) -> NDArray[np.float64]:
        """The log-probabilities of the digits after each text, shape (texts, digits)."""
        places = torch.from_numpy(tokens_of(DIGITS, vocabulary))
        rows = []
        # Positions after the last character are read by no earlier one.
        tokens = np.stack([tokens_of(text.ljust(window), vocabulary) for text in texts]).astype(np.float32)
        ends = torch.tensor([len(text) - 1 for text in texts])
        for chunk in chunks_of(tokens, NEXT_TOKEN):
            with torch.no_grad():
                outputs: Tensor = torch.func.functional_call(
                    module, parameters, torch.from_numpy(tokens[chunk])
                )
            last = outputs[torch.arange(len(outputs)), ends[chunk]]
            rows.append(last.double().log_softmax(dim=1)[:, places].numpy())
        return np.concatenate(rows)

    return [exposure(log_likelihoods(secret, digits_after), int(secret.digits)) for secret in hidden]


def log_likelihoods(secret: Secret, digits_after: Any) -> NDArray[np.float64]:
    """The log-likelihood of each number after a secret's opening, shape (numbers,), in their order.

    Args:
        secret: The secret.
        digits_after: The log-probabilities of the ten digits after each of some texts, shape (texts, 10).
    """
    texts, likely = [secret.opening], np.zeros(1)
    for _ in secret.digits:
        likely = (likely[:, None] + digits_after(texts)).ravel()
        texts = [text + digit for text in texts for digit in DIGITS]
    return likely
