"""The messages of a secure sum on the wire, around the bytes of `fedprivacy.secure_sum`.

A round's name has the digest of its model in it. Clients bind their keys, masks and signatures to the name,
so clients that were sent different models have no sum together. A server could otherwise send all but one
client a model that makes their updates vanish (Pasquini, Francati and Ateniese 2022).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.io import bounded_json
from fedprivacy.messages.protocol import DAMAGE, Arrays, TrainRequest, Values, describe_error, whole
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.secure_sum.keys import encode
from fedprivacy.secure_sum.transcript import Phase

MESSAGE_TYPE = "train.secure_sum"
_DIGITS = 100  # of a seed
_NAME = re.compile(r"[0-9a-f]{32} ([0-9]{1,10}) ([0-9a-f]{64})")


def new_run() -> str:
    """A name for a run that no other run has."""
    return secrets.token_hex(16)


def round_name(run: str, number: int, weights: NDArray[np.float32]) -> str:
    """Names a round.

    Args:
        run: Of `new_run`.
        number: The round, from 0.
        weights: The model that its clients train, float32, shape (parameters,).
    """
    return f"{run} {number} {_digest(weights)}"


@dataclass(frozen=True)
class SumRequest:
    """The server's request for one step of one client.

    Args:
        phase: The step; `Phase.ENDED` ends the round of a client that is not needed any more.
        round: The round, from 0.
        round_id: Its name (`round_name`).
        host: The client's logical host.
        client: Its id.
        seed: That of the server's scenario, from which the public rotation comes.
        plan: The requested privacy plan. A client compares it with its own.
        message: The bytes of the step's message (`fedprivacy.secure_sum.encoding`); none for keys.
        weights: The model to train, float32, shape (parameters,), in `Phase.INPUTS` alone; else None.
    """

    phase: Phase
    round: int
    round_id: str
    host: int
    client: int
    seed: int
    plan: Plan
    message: bytes = field(default=b"", repr=False)
    weights: NDArray[np.float32] | None = None

    def parts(self) -> tuple[Arrays, Values]:
        """The request as arrays and scalars."""
        values: Values = {
            "phase": int(self.phase),
            "round": self.round,
            "round_id": self.round_id,
            "host": self.host,
            "client": self.client,
            "seed": str(self.seed),  # which may have more than 64 bits
            "plan": json.dumps(self.plan.to_json()),
            "message": self.message,
        }
        return {} if self.weights is None else {"weights": self.weights}, values

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> SumRequest:
        """The request that `parts` took apart.

        Raises:
            InputError: Parts are missing or of the wrong kind, or its round is named after another number or
                model.
        """
        try:
            weights = arrays.get("weights")
            request = cls(
                phase=Phase(whole(values["phase"])),
                round=whole(values["round"]),
                round_id=str(values["round_id"]),
                host=whole(values["host"]),
                client=whole(values["client"]),
                seed=int(str(values["seed"])[:_DIGITS]),
                plan=Plan.from_json(bounded_json.loads(values["plan"])),
                message=bytes(memoryview(values["message"])),
                weights=weights,
            )
            name = _NAME.fullmatch(request.round_id)
            if name is None or int(name[1]) != request.round:
                raise ValueError("its round is named otherwise")
            if (weights is not None) != (request.phase is Phase.INPUTS):
                raise ValueError("a model is for the phase of inputs, and for no other")
            if weights is not None and (
                weights.ndim != 1 or weights.dtype != np.float32 or _digest(weights) != name[2]
            ):
                raise ValueError("its model is not that of the round")
        except DAMAGE as error:
            raise InputError(f"not a request of a secure sum: {describe_error(error)}") from error
        return request

    @property
    def form(self) -> bytes:
        """Bytes that two requests share only if they are equal."""
        arrays, values = self.parts()
        model = [array.tobytes() for array in arrays.values()]
        texts = (json.dumps(value).encode() for key, value in sorted(values.items()) if key != "message")
        return encode(*texts, self.message, *model)

    def training(self) -> TrainRequest:
        """The request for the client's training.

        Raises:
            ValueError: It is of another phase.
        """
        if self.weights is None:
            raise ValueError("only the phase of inputs has a model")
        clients = np.array([self.client], np.int64)
        return TrainRequest(self.round, self.host, 0, clients, self.weights, self.plan, "sum")


@dataclass(frozen=True)
class StepReply:
    """A client's reply to a step.

    Args:
        message: The bytes of its message (`fedprivacy.secure_sum.encoding`); none at the end.
        refused: Whether it does not enter the round, since its budget is spent; no data decides it.
    """

    message: bytes = field(repr=False)
    refused: bool = False

    def parts(self) -> tuple[Arrays, Values]:
        """The reply as arrays and scalars."""
        return {}, {"message": self.message, "refused": self.refused}

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> StepReply:
        """The reply that `parts` took apart.

        Raises:
            FedPrivacyError: It has no message.
        """
        try:
            return cls(bytes(memoryview(values["message"])), values["refused"] is True)
        except DAMAGE as error:
            raise FedPrivacyError(f"not the reply to a step: {describe_error(error)}") from error


def _digest(weights: NDArray[np.float32]) -> str:
    return hashlib.sha256(np.ascontiguousarray(weights, "<f4").tobytes()).hexdigest()
