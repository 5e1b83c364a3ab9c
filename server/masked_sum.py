"""Drives the rounds of a secure sum by masks over a grid: who does not answer a phase has dropped out.

    keys           -> the keys of all that answered
    shares         -> for each the shares that its peers sealed for it
    inputs         -> the survivors; the request has the model, and each node trains before it masks
    consistency    -> the signatures of the survivors
    opening        -> the sum of the survivors' integers modulo 2^b

A round is void if too few clients remain in a phase, or their shares do not fit: nothing is released then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

from fedprivacy.errors import FedPrivacyError
from fedprivacy.io.escape import first_line
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.messages.faults import NO_FAULTS, REASON, Faults
from fedprivacy.messages.protocol import TrainRequest, parts_of
from fedprivacy.messages.secure_sum import MESSAGE_TYPE, StepReply, SumRequest
from fedprivacy.secure_sum import messages
from fedprivacy.secure_sum.encoding import decoded, encoded
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.server import RejectedMessage, Server, VoidRound
from fedprivacy.secure_sum.transcript import Phase, Roster
from server.aggregation import NO_ANSWER, message_number
from server.messages import request_to

logger = logging.getLogger(__name__)

END_TIMEOUT = 10.0  # seconds to wait until clients have removed the secrets of a round
FromClient = TypeVar(
    "FromClient",
    messages.AdvertisedKeys,
    messages.SealedShares,
    messages.MaskedInput,
    messages.SurvivorSignature,
    messages.OpenedShares,
)


@dataclass(frozen=True)
class Total:
    """What a round gives.

    Args:
        integers: The sum of the survivors' integers modulo 2^b, int64, shape (d,); None: the round is void.
        survivors: The clients in it, sorted; of a void round those that answered last, or sent inputs.
        refused: How many clients refused before or at their input, since their budget is spent.
        faults: Of the clients that dropped out before their input, by kind.
        reason: Why it is void; None if it is not.
    """

    integers: Integers | None
    survivors: tuple[int, ...] = ()
    refused: int = 0
    faults: Faults = NO_FAULTS
    reason: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a client is.

    Args:
        node: Its Flower node.
        host: Its logical host.
    """

    node: int
    host: int


class MaskedRound:
    """One round.

    Args:
        grid: Flower's way to the nodes.
        places: Of each client that is requested, by client.
        roster: The node keys of all clients.
        parameters: Of the sum.
        training: The request for training; each client's has its own `clients` and `host`.
        seed: Of the public rotation.
        round_id: The round's name (`fedprivacy.messages.secure_sum.round_name`).
        timeout: Seconds to wait for the replies of each phase; None: without limit.
    """

    def __init__(
        self,
        grid: Grid,
        places: Mapping[int, Place],
        roster: Roster,
        parameters: Parameters,
        training: TrainRequest,
        seed: int,
        round_id: str,
        timeout: float | None,
    ) -> None:
        self._grid, self._places, self._timeout = grid, places, timeout
        self._training, self._seed, self._round_id = training, seed, round_id
        self._server = Server(roster, parameters, round_id)
        self._secret: set[int] = set()  # clients that have secrets of the round
        self._present: tuple[int, ...] = ()
        self._faults, self._refused = NO_FAULTS, 0

    def total(self) -> Total:
        """Runs all phases; a void round has no sum, and the reason."""
        try:
            integers = self._run()
        except VoidRound as error:
            logger.warning("%s", error)
            return Total(None, self._present, self._refused, self._faults, error.reason)
        finally:
            self._end()
        return Total(integers, self._present, self._refused, self._faults)

    def _run(self) -> Integers:
        server = self._server
        entered = self._phase(
            Phase.KEYS, dict.fromkeys(self._places, b""), messages.AdvertisedKeys, server.add_keys
        )
        keys = encoded(server.key_list())
        self._phase(Phase.SHARES, dict.fromkeys(entered, keys), messages.SealedShares, server.add_shares)
        deliveries = {client: encoded(message) for client, message in server.deliveries().items()}
        summed = self._phase(Phase.INPUTS, deliveries, messages.MaskedInput, server.add_input)
        survivors = encoded(server.survivors())
        signed = self._phase(
            Phase.CONSISTENCY,
            dict.fromkeys(summed, survivors),
            messages.SurvivorSignature,
            server.add_signature,
        )
        signatures = encoded(server.signatures())
        self._phase(
            Phase.OPENING, dict.fromkeys(signed, signatures), messages.OpenedShares, server.add_opening
        )
        return server.total()

    def _phase(
        self,
        phase: Phase,
        requests: Mapping[int, bytes],
        kind: type[FromClient],
        add: Callable[[FromClient], None],
    ) -> list[int]:
        """Runs a phase.

        Args:
            phase: The phase.
            requests: The message for each client that is still in the round.
            kind: The class of their replies.
            add: Takes a reply.

        Returns:
            The clients whose replies were taken, sorted.
        """
        clients = sorted(requests)
        taken: set[int] = set()
        refused: set[int] = set()
        reasons: dict[int, tuple[str, str]] = {}
        if phase is Phase.KEYS:  # also those whose reply is lost
            self._secret.update(clients)
        sent = self._requests(phase, ((client, requests[client]) for client in clients))
        for reply in self._grid.send_and_receive(sent, timeout=self._timeout):
            number = message_number(reply)
            if (
                not 0 <= number < len(clients)
                or (client := clients[number]) in taken | refused | reasons.keys()
            ):
                continue  # it answers no request, or one again
            if reply.has_error():
                reason = reply.error.reason or f"Flower error {reply.error.code}"
                reasons[client] = "node_error", reason
                continue
            try:
                step = StepReply.of(*parts_of(reply))
                if step.refused and phase <= Phase.INPUTS:
                    refused.add(client)
                    continue
                message = decoded(kind, step.message)
                # Inputs and shares are not signed, so that a node could send those of another client.
                if message.sender != client:
                    raise RejectedMessage(f"client {client} sent the message of client {message.sender}")
                add(message)
            except FedPrivacyError as error:
                reasons[client] = "reply_shape", str(error)
                continue
            taken.add(client)
            if phase is Phase.OPENING:
                self._secret.discard(client)
        self._refused += len(refused)
        self._secret -= refused
        for client in sorted(set(clients) - taken - refused):
            fault, reason = reasons.get(client, NO_ANSWER)
            text = f"client {client}, {phase.name.lower()}: {reason}"
            # A client whose input arrived is in the sum, whatever becomes of it.
            if phase <= Phase.INPUTS:
                self._faults += Faults({fault: 1}, text[:REASON])
            else:
                logger.info("%s", first_line(text))
        if phase <= Phase.INPUTS:
            self._present = tuple(sorted(taken))
        return sorted(taken)

    def _requests(self, phase: Phase, requests: Iterable[tuple[int, bytes]]) -> Iterator[Message]:
        """Numbered requests, made one at a time."""
        for number, (client, message) in enumerate(requests):
            request = SumRequest(
                phase=phase,
                round=self._training.round,
                round_id=self._round_id,
                host=self._places[client].host,
                client=client,
                seed=self._seed,
                plan=self._training.plan,
                message=message,
                weights=self._training.weights if phase is Phase.INPUTS else None,
            )
            group = f"{self._training.round}-{phase.name.lower()}/{number}"
            yield request_to(self._places[client].node, MESSAGE_TYPE, group, *request.parts())

    def _end(self) -> None:
        """Lets clients that will not open remove their secrets; a newer round removes them too."""
        if self._secret:
            sent = self._requests(Phase.ENDED, ((client, b"") for client in sorted(self._secret)))
            for _ in self._grid.send_and_receive(sent, timeout=END_TIMEOUT):
                pass
