"""What a secure sum costs: the time and bytes of each phase, with clients killed in between.

    python -m benchmarks.secure_sum

All clients run one after the other in this process, on one thread. Times are of the processor, so that other
processes do not change them much; one of all clients, divided by those that answered, is what a client needs.
A killed client answers in no later phase. Each sum is compared with that of the survivors' integers.
`docs/secure-sum.md` states these figures.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np
import typer
from cryptography.hazmat.primitives.asymmetric import ec
from rich.console import Console
from rich.table import Table

from fedprivacy.errors import RunError
from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.rounds import Rounds
from fedprivacy.secure_sum.server import Server, VoidRound

ROUND = "benchmark"
PHASES = ("keys", "shares", "inputs", "consistency", "opening")
KILLED = ((0, 0, 0, 0), (10, 10, 10, 0), (0, 30, 0, 0), (0, 31, 0, 0))  # percent, as in `MeasuredRound`
Message = TypeVar("Message")
Result = TypeVar("Result")


@dataclass
class Row:
    """One phase.

    Args:
        phase: Its name.
        answered: How many clients answered.
        clients: Processor seconds of all of them together.
        server: Processor seconds of the server.
        sent: Bytes of the last client's message, without framing.
    """

    phase: str
    answered: int
    clients: float = 0.0
    server: float = 0.0
    sent: int = 0


class MeasuredRound:
    """A round whose clients are killed at random between phases.

    Args:
        parameters: Of the sum.
        killed: Percent of the clients that are killed after each phase but the last.
    """

    def __init__(self, parameters: Parameters, killed: Sequence[int]) -> None:
        self.rows: list[Row] = []
        self.void = ""
        self._alive = list(range(parameters.clients))
        counts = (round(percent * parameters.clients / 100) for percent in killed)
        self._killed = dict(zip(PHASES[1:], counts, strict=True))
        try:
            self._run(parameters)
        except VoidRound as error:
            self.void = str(error)

    def _phase(
        self,
        answer: Callable[[int], Message],
        add: Callable[[Message], None],
        end: Callable[[], Result],
        size: Callable[[Message], int],
    ) -> Result:
        """Runs the next phase, for the clients that remain."""
        phase = PHASES[len(self.rows)]
        for _ in range(self._killed.get(phase, 0)):
            self._alive.pop(secrets.randbelow(len(self._alive)))
        row = Row(phase, len(self._alive))
        self.rows.append(row)
        for client in self._alive:
            start = time.process_time()
            message = answer(client)
            middle = time.process_time()
            add(message)
            row.clients += middle - start
            row.server += time.process_time() - middle
            row.sent = size(message)
        start = time.process_time()
        result = end()
        row.server += time.process_time() - start
        return result

    def _run(self, parameters: Parameters) -> None:
        node_keys = [ec.generate_private_key(ec.SECP384R1()) for _ in self._alive]
        roster = {client: key.public_key() for client, key in enumerate(node_keys)}
        server = Server(roster, parameters, ROUND)
        clients = [
            Client(each, key, roster, parameters, ROUND, Rounds()) for each, key in enumerate(node_keys)
        ]
        words = np.frombuffer(secrets.token_bytes(4 * parameters.dimension * len(clients)), "<u4")
        integers = (words.reshape(len(clients), -1) % 2**parameters.bits).astype(np.int64)

        keys = self._phase(
            lambda each: clients[each].advertise(),
            server.add_keys,
            server.key_list,
            lambda message: len(message.sealing_key + message.mask_key + message.signature),
        )
        shares = self._phase(
            lambda each: clients[each].share(keys),
            server.add_shares,
            server.deliveries,
            lambda message: len(message.commitment) + sum(map(len, message.sealed.values())),
        )
        survivors = self._phase(
            lambda each: clients[each].mask(shares[each], lambda: integers[each]),
            server.add_input,
            server.survivors,
            lambda message: len(message.packed),
        )
        signatures = self._phase(
            lambda each: clients[each].sign(survivors),
            server.add_signature,
            server.signatures,
            lambda message: len(message.signature),
        )
        total = self._phase(
            lambda each: clients[each].open(signatures),
            server.add_opening,
            server.total,
            lambda message: sum(map(len, (*message.seeds.values(), *message.mask_keys.values()))),
        )
        expected = integers[list(survivors.clients)].sum(axis=0) % 2**parameters.bits
        if not np.array_equal(total, expected):
            raise RunError("benchmark: the secure sum is wrong. Report this error.")


def main(
    clients: Annotated[int, typer.Option(help="Clients with keys.")] = 100,
    dimension: Annotated[int, typer.Option(help="Coordinates of a message.")] = 100_000,
    bits: Annotated[int, typer.Option(help="Bits of a coordinate.")] = 16,
) -> None:
    """Prints a table for each round; 70 % must survive, and 5 % may collude."""
    colluders = clients // 20
    parameters = Parameters(
        dimension, bits, clients, math.ceil(0.7 * clients), colluders, (clients + colluders) // 2 + 1
    )
    for killed in KILLED:
        measured = MeasuredRound(parameters, killed)
        table = Table("phase", "clients", "each client", "all clients", "server", "bytes from a client")
        for row in measured.rows:
            table.add_row(
                row.phase,
                str(row.answered),
                f"{1e3 * row.clients / row.answered:.1f} ms",
                f"{row.clients:.2f} s",
                f"{row.server:.2f} s",
                f"{row.sent:,}",
            )
        cases = zip(killed, PHASES, strict=False)
        after = ", ".join(f"{percent} % killed after {phase}" for percent, phase in cases if percent)
        table.title = f"{after or 'nobody killed'}: {measured.void or 'the sum is right'}"
        Console(width=110).print(table)


if __name__ == "__main__":
    typer.run(main)
