"""A malicious participant: a Flower mod around its own client; the honest code does not know it.

It sees the global models that it is sent, and uploads what it likes. Other clients of the same node are
left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message
from flwr.clientapp.typing import ClientAppCallable
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.game import Ids
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Sight
from fedprivacy.messages.protocol import parts_of


@dataclass
class Participant:
    """The attacker's client.

    Args:
        attacker: Its id; it has a message to itself.
        share: By what the sum of all answers is multiplied when the global model moves: the learning rate
            of the server over what it divides them by.
        see: Takes each observation.
        probe: Asks the model about all targets.
        ascent: How the loss is raised; None: never.
        boost: By what an ascent is multiplied to survive averaging.
        most: The norm that the server takes from one client (`server.reply_validation.longest`): a longer
            upload is scaled down to it, since it would be thrown away. None: any.
    """

    attacker: int
    share: float
    see: Callable[[Sight], None]
    probe: Probe
    ascent: Ascent | None = None
    boost: float = 1.0
    most: float | None = None
    climbing: Ids | None = None
    watched: Ids | None = None
    round: int = 0
    _before: Tensor | None = None
    _isolated_sum: Tensor | None = None

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """Looks at what the last round has made of the global model, and answers this round.

        `climbing` names the targets whose loss is raised in this round; `watched` those of the last one,
        or None where all are judged, and `round` its number, which its observation bears.
        """
        arrays, _ = parts_of(message) if message.metadata.message_type == "train" else ({}, {})
        if len(arrays.get("clients", ())) != 1 or arrays["clients"][0] != self.attacker:
            return call_next(message, context)
        weights = torch.from_numpy(arrays["weights"].copy())
        if self._before is not None and self._isolated_sum is not None:
            others = weights - self._before - self.share * self._isolated_sum
            self.see(Sight(self._before, others, torch.empty(0, len(weights)), self.watched, self.round))
        self.forget()
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        answered, _ = parts_of(reply)
        if self.climbing is not None and self.ascent is not None:
            raised = self.ascent.climb(self.probe.at(self.climbing), weights)
            upload = (self.boost * (raised - weights)).double().numpy()
            return forged(reply, arrays["clients"], upload, self.most)
        # After an honest answer, the global model's step minus this client's own share is the share of all
        # others: the view of the local attacker of Nasr, Shokri and Houmansadr 2019.
        self._before = weights
        rows = torch.from_numpy(answered["updates"].astype(np.float32)).reshape(-1, len(weights))
        self._isolated_sum = rows.sum(dim=0)
        return reply

    def forget(self) -> None:
        """Looks away from what the round under way makes of the global model."""
        self._before = self._isolated_sum = None


def forged(reply: Message, clients: Ids, upload: NDArray[np.float64], most: float | None = None) -> Message:
    """The honest reply of one client with another update in its place.

    Args:
        reply: The honest reply.
        clients: The client's id, shape (1,).
        upload: The update, shape (parameters,).
        most: The norm that the server takes; a longer update is scaled down to it. None: any.
    """
    if most is not None:  # the server discards a longer upload, and the attack with it
        upload = upload * (most / max(most, float(np.linalg.norm(upload))))
    answered, _ = parts_of(reply)
    shape = (1, -1) if answered["updates"].ndim == 2 else (-1,)
    content = {"updates": Array(upload.reshape(shape)), "clients": Array(clients)}
    reply.content.array_records["arrays"] = ArrayRecord(content)
    reply.content.config_records["values"]["refused"] = 0  # its budget binds honest code alone
    return reply
