"""The server of a private ERM study: queries silos over a grid, and writes the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedprivacy.erm.protocol import SiloReply, SiloRequest
from fedprivacy.erm.study.document import OnCell, study
from fedprivacy.erm.study.lots import Lot, SiloReplies, SiloStudy
from fedprivacy.erm.study.people import Records
from fedprivacy.errors import FedPrivacyError
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.messages.faults import REASON
from fedprivacy.messages.protocol import parts_of
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.erm import ErmScenario
from server.aggregation import NO_ANSWER, by_turn
from server.hosts import Dealing, deal_hosts
from server.messages import request_to
from server.sampling import Chunk, chunks, one_per_node

MESSAGE = "query.estimate"
ABOVE = 1 + 1e-9  # of a length that was rounded


def serve(
    grid: Grid,
    scenario: ErmScenario,
    people: Records,
    directory: RunDirectory,
    streams: Streams,
    *,
    stated: Stated | None = None,
    for_operator: bool = False,
    command: str = "",
    on_cell: OnCell | None = None,
    on_begin: Callable[[], object] = lambda: None,
) -> None:
    """Runs a study whose silos answer over a grid; however it ends, the record states its progress.

    Args:
        grid: Flower's way to the nodes.
        scenario: The study's scenario.
        people: Its records, of which a simulation knows the exact minimum.
        directory: Where the study is written.
        streams: Those of the study, on this side.
        stated: The submitter's statements about remote nodes; None: there are none.
        for_operator: As of `study`.
        command: The command that reproduces it, for the record.
        on_cell: Called with each cell's result.
        on_begin: Called once the record is there, before any node is spoken to.

    Raises:
        RunError: if a host has no node, no silo answers, or a minimum was not found.
    """
    silos = SilosOnGrid(grid, SiloStudy(scenario, people, streams))

    def begin() -> None:
        on_begin()
        silos.deal()

    study(
        scenario,
        people,
        directory,
        streams=streams,
        request=silos,
        dealing=lambda: None if silos.dealing is None else silos.dealing.to_json(),
        stated=stated,
        for_operator=for_operator,
        command=command,
        on_cell=on_cell,
        on_begin=begin,
    )


@dataclass
class SilosOnGrid:
    """Asks the silos of a study over a grid: a `LotCall`.

    Args:
        grid: Flower's way to the nodes.
        side: The server's own knowledge of the study.
    """

    grid: Grid
    side: SiloStudy
    dealing: Dealing | None = None

    def deal(self) -> Dealing | None:
        """Finds the node of each host, if silos participate.

        Raises:
            RunError: a host has none.
        """
        if self.dealing is None and self.side.lots:
            self.dealing = deal_hosts(self.grid, self.side.scenario.federation.hosts)
        return self.dealing

    def __call__(self, lot: Lot, step: int, thetas: NDArray[np.float64]) -> SiloReplies:
        """The answers of a lot's silos at a step, in the order of the silos, whatever their nodes."""
        dealing = self.deal()
        assert dealing is not None  # there is a lot
        federation = self.side.scenario.federation
        requested = list(chunks(np.arange(lot.silos), hosts=federation.hosts, size=lot.silos))
        step_results = SiloReplies(np.zeros((lot.count, lot.silos, thetas.shape[1])), 0)
        in_order = by_turn(self._replies(dealing, requested, lot, step, thetas))
        reply = next(in_order, None)
        present, why = 0, None
        for number, chunk in enumerate(requested):
            if reply is None or reply[0] != number:
                why = why or (dealing.fault(chunk.host) or NO_ANSWER)[1]
                continue
            try:
                silos, rows = self._accepted(reply[1], lot, chunk, thetas.shape[1])
                step_results.rows[:, silos] = rows.transpose(1, 0, 2)
                present += len(silos)
                if len(silos) < len(chunk.clients):
                    why = why or "a silo refused: it answers each step once, in the study's order"
            except FedPrivacyError as error:
                why = why or str(error)[:REASON]
            reply = next(in_order, None)
        return SiloReplies(step_results.rows, present, why)

    def _accepted(
        self, message: Message, lot: Lot, chunk: Chunk, dimension: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The silos of a reply, and their rows.

        Raises:
            FedPrivacyError: it is an error, no answer, or one that no honest silo gives.
        """
        if message.has_error():
            raise FedPrivacyError(message.error.reason or f"Flower error {message.error.code}")
        reply = SiloReply.of(*parts_of(message), requested=chunk.clients, shape=(lot.count, dimension))
        federated = self.side.federated(lot)
        if federated.trust == "central":  # exact sums, of gradients that are bounded
            longest = self.side.longest(lot)[reply.silos]
            if (np.linalg.norm(reply.rows, axis=2) > ABOVE * longest[:, None]).any():
                raise FedPrivacyError("not an answer of silos: a sum longer than that of its records can be")
        return reply.silos, reply.rows

    def _replies(
        self,
        dealing: Dealing,
        chunks_requested: Sequence[Chunk],
        lot: Lot,
        step: int,
        thetas: NDArray[np.float64],
    ) -> Iterator[Message]:
        """The replies of a step. A node gets its next message when it has answered the last.

        A silo counts its own answers.
        """
        plan, timeout = self.side.plan(lot), self.side.scenario.federation.timeout
        for wave in one_per_node(chunks_requested, dealing.nodes):
            messages = (
                request_to(
                    dealing.nodes[chunk.host],
                    MESSAGE,
                    f"{lot.number}/{step}/{place}",
                    *SiloRequest(lot.number, step, chunk.host, chunk.clients, thetas, plan).parts(),
                )
                for place, chunk in wave
            )
            yield from self.grid.send_and_receive(messages, timeout=timeout)
