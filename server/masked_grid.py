"""The secure sum by masks as a grid: of a round's requests the server's code gets the sum alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from fedprivacy.errors import InputError, RunError
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.messages.protocol import SumReply, TrainRequest, parts_of
from fedprivacy.messages.secure_sum import new_run, round_name
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.transcript import Roster
from server.masked_sum import MaskedRound, Place
from server.secure_sum import SecureSum


@dataclass(frozen=True)
class Masks:
    """The public values that a server needs for sums under masks.

    Args:
        roster: The node keys of all clients.
        shares: The plan's mechanism.
        parameters: Of the sum.
        seed: Of the public rotation.
    """

    roster: Roster
    shares: NoiseShares
    parameters: Parameters
    seed: int

    @classmethod
    def of(cls, roster: Roster, shares: NoiseShares, clients: int, hosts: int, seed: int) -> Masks:
        """The values for a plan with noise in shares.

        Args:
            roster: The node keys of all clients.
            shares: The plan's mechanism.
            clients: The number of clients.
            hosts: The number of logical hosts.
            seed: Of the scenario.

        Raises:
            InputError: Masks cannot have this sum, or the roster lacks a client, or a host has several.
        """
        if hosts != clients:
            raise InputError(
                f"federation.hosts = {hosts}: a secure sum by masks counts nodes as clients, and there are "
                f"{clients} clients. Set hosts to as many, and start a node with a key of its own for each."
            )
        if missing := sorted(set(range(clients)) - set(roster)):
            shown = ", ".join(map(str, missing[:10])) + (" and more" if len(missing) > 10 else "")
            raise InputError(f"roster: lacks the keys of clients {shown}. Add a line for each client.")
        return cls(roster, shares, Parameters.of_shares(shares), seed)


class MaskedSum(SecureSum):
    """A grid that replies to the training requests of a round with their clients' sum, under masks.

    Args:
        grid: The real grid.
        masks: The public values.
    """

    def __init__(self, grid: Grid, masks: Masks) -> None:
        super().__init__(grid, masks.shares)
        self._masks, self._run_name = masks, new_run()

    def _summed(
        self, first: Message, rest: Iterator[Message], timeout: float | None
    ) -> tuple[SumReply, Message]:
        places: dict[int, Place] = {}
        training, last = TrainRequest.of(*parts_of(first)), first
        for message in chain([first], rest):
            request = TrainRequest.of(*parts_of(message))
            [client] = request.clients.tolist()
            places[client] = Place(message.metadata.dst_node_id, request.host)
            if not np.array_equal(training.weights, request.weights):
                raise RunError("the requests of a round have different models, which have no sum under masks")
            last = message
        training = replace(training, clients=training.clients[:0])
        number, masks = training.round, self._masks
        total = MaskedRound(
            self._grid,
            places,
            masks.roster,
            masks.parameters,
            training,
            masks.seed,
            round_name(self._run_name, number, training.weights),
            timeout,
        ).total()
        reply = SumReply(total.integers, len(total.survivors), total.refused, total.faults, total.reason)
        return reply, last
