"""What a secure sum costs: the time of each phase and the bytes of each client, with clients killed in between.

    python -m benchmarks.secure_sum

All clients run one after the other in this process, so a time divided by the clients that answered is what one
client waits for its own work. A killed client answers no later phase. Each sum is compared with that of the
survivors' integers. `docs/secure-sum.md` states these figures.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Annotated

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

PHASES = ("keys", "shares", "inputs", "consistency", "opening")
ROUND = "benchmark"


class Timer:
    """The seconds of clients and of the server in each phase."""

    def __init__(self) -> None:
        self.clients = dict.fromkeys(PHASES, 0.0)
        self.server = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def measure(self, seconds: dict[str, float], phase: str) -> Iterator[None]:
        """Adds the time of a block."""
        start = time.perf_counter()
        yield
        seconds[phase] += time.perf_counter() - start


class Measured:
    """A measured round.

    Args:
        parameters: Of the sum.
        killed: How many clients stop after keys, shares, inputs and consistency.
    """

    def __init__(self, parameters: Parameters, killed: Collection[int]) -> None:
        self.timer = Timer()
        self.counts: dict[str, int] = {}  # of clients that answered
        self.sent: dict[str, int] = {}  # bytes of one client
        self.void = ""
        self._parameters = parameters
        self._alive = list(range(parameters.clients))
        self._killed = dict(zip(PHASES[1:], killed, strict=True))
        try:
            self._run()
        except VoidRound as error:
            self.void = str(error)

    def _start(self, phase: str) -> list[int]:
        """The clients that answer in a phase; random ones were killed before it."""
        for _ in range(self._killed.get(phase, 0)):
            self._alive.pop(secrets.randbelow(len(self._alive)))
        self.counts[phase] = len(self._alive)
        return self._alive

    def _run(self) -> None:
        parameters, timer = self._parameters, self.timer
        node_keys = [ec.generate_private_key(ec.SECP384R1()) for _ in self._alive]
        roster = {client: key.public_key() for client, key in enumerate(node_keys)}
        server = Server(roster, parameters, ROUND)
        clients = [
            Client(each, key, roster, parameters, ROUND, Rounds()) for each, key in enumerate(node_keys)
        ]
        words = np.frombuffer(secrets.token_bytes(4 * parameters.dimension * len(clients)), "<u4")
        integers = (words.reshape(len(clients), -1) % 2**parameters.bits).astype(np.int64)

        for client in self._start("keys"):
            with timer.measure(timer.clients, "keys"):
                keys = clients[client].advertise()
            with timer.measure(timer.server, "keys"):
                server.add_keys(keys)
        with timer.measure(timer.server, "keys"):
            key_list = server.key_list()
        self.sent["keys"] = len(keys.sealing_key + keys.mask_key + keys.signature)

        for client in self._start("shares"):
            with timer.measure(timer.clients, "shares"):
                shares = clients[client].share(key_list)
            with timer.measure(timer.server, "shares"):
                server.add_shares(shares)
        with timer.measure(timer.server, "shares"):
            deliveries = server.deliveries()
        self.sent["shares"] = len(shares.commitment) + sum(map(len, shares.sealed.values()))

        for client in self._start("inputs"):
            with timer.measure(timer.clients, "inputs"):
                masked = clients[client].mask(deliveries[client], integers[client])
            with timer.measure(timer.server, "inputs"):
                server.add_input(masked)
        with timer.measure(timer.server, "inputs"):
            survivors = server.survivors()
        self.sent["inputs"] = len(masked.packed)

        for client in self._start("consistency"):
            with timer.measure(timer.clients, "consistency"):
                signature = clients[client].sign(survivors)
            with timer.measure(timer.server, "consistency"):
                server.add_signature(signature)
        with timer.measure(timer.server, "consistency"):
            signatures = server.signatures()
        self.sent["consistency"] = len(signature.signature)

        for client in self._start("opening"):
            with timer.measure(timer.clients, "opening"):
                opening = clients[client].open(signatures)
            with timer.measure(timer.server, "opening"):
                server.add_opening(opening)
        with timer.measure(timer.server, "opening"):
            total = server.total()
        self.sent["opening"] = sum(map(len, (*opening.seeds.values(), *opening.mask_keys.values())))

        expected = integers[list(survivors.clients)].sum(axis=0) % 2**parameters.bits
        if not np.array_equal(total, expected):
            raise RunError("benchmark: the secure sum is wrong. Report this error.")


def main(
    clients: Annotated[int, typer.Option(help="Clients with keys.")] = 100,
    dimension: Annotated[int, typer.Option(help="Coordinates of a message.")] = 100_000,
    bits: Annotated[int, typer.Option(help="Bits of a coordinate.")] = 16,
    survivors: Annotated[int, typer.Option(help="The fewest clients in a sum.")] = 70,
    colluders: Annotated[int, typer.Option(help="The most clients that collude.")] = 5,
    threshold: Annotated[int, typer.Option(help="Clients that open a secret together.")] = 53,
    killed: Annotated[
        str, typer.Option(help="Clients killed after keys, shares, inputs, consistency; rounds by ';'.")
    ] = "0,0,0,0; 10,10,10,0; 0,30,0,0; 0,31,0,0",
) -> None:
    """Prints a table for each round."""
    parameters = Parameters(dimension, bits, clients, survivors, colluders, threshold)
    for kills in killed.split(";"):
        measured = Measured(parameters, [int(count) for count in kills.split(",")])
        table = Table("phase", "clients", "each client", "all clients", "server", "bytes from a client")
        for phase, count in measured.counts.items():
            seconds = measured.timer.clients[phase]
            table.add_row(
                phase,
                str(count),
                f"{1e3 * seconds / count:.1f} ms",
                f"{seconds:.2f} s",
                f"{measured.timer.server[phase]:.2f} s",
                f"{measured.sent[phase]:,}" if phase in measured.sent else "",
            )
        table.title = f"killed {kills.strip()}: {measured.void or 'the sum is right'}"
        Console(width=110).print(table)


if __name__ == "__main__":
    typer.run(main)
