"""A pinned node's side of a secure sum by masks: each request is one step of its client.

    keys           enters the round, if its budget allows a participation
    shares         of its secrets, sealed for its peers
    inputs         checks the shares of its peers; then counts a participation, trains, clips, rounds, adds
                   its share of the noise, masks: nothing leaves the node unmasked
    consistency    signs the survivors
    opening        opens a share of each peer

The node's own plan states the sum: its bits, its survivors, its colluders. Keys of peers come from a roster
that the node's owner installed. The state of the client's round is in the node's home (`StoredClient`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec

from clients.error_filter import kind, log
from clients.fleet import Fleet
from clients.joint_training import JointTraining
from clients.node import NodeClients
from clients.owner import Owner
from clients.participation_ledger import Account, StoredBudgets
from clients.request_validation import vet_step
from clients.training_handler import answer
from clients.worker_pool import WorkerPool
from fedprivacy.errors import Refusal
from fedprivacy.mechanisms.modular import Integers
from fedprivacy.messages.faults import NO_FAULTS, Faults
from fedprivacy.messages.secure_sum import StepReply, SumRequest
from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.encoding import decoded
from fedprivacy.secure_sum.messages import Checked, DeliveredShares, KeyList, SignatureList, Survivors
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.roster import read_node_key, read_roster
from fedprivacy.secure_sum.rounds import refusal
from fedprivacy.secure_sum.stored_client import StoredClient
from fedprivacy.secure_sum.transcript import Phase, Roster

SPARE_ROUNDS, ROUNDS_PER_ANSWER = 100, 10  # that a node enters, whether they end or not


def answer_step(
    here: NodeClients, fleet: Fleet, request: SumRequest, pool: WorkerPool | JointTraining | None
) -> tuple[StepReply, Faults]:
    """Takes the requested step, or sends its reply again.

    Args:
        here: The node.
        fleet: Its clients.
        request: The server's request.
        pool: Who trains them; None: this process.

    Returns:
        The reply, and the faults of training, which are for the node alone.

    Raises:
        Refusal: The node is not pinned, or has several clients, or lacks keys; its plan does not cover the
            request, or the step does not fit the round.
        OSError: A file in the node's home cannot be written.
    """
    if here.account is None:
        raise Refusal("request for a secure sum, and the node has no plan of its own", "node-config")
    vet_step(fleet, request, here.hosts)
    keys = _keys(here.owner, fleet, here.hosts)
    most = SPARE_ROUNDS + ROUNDS_PER_ANSWER * fleet.plan.answers
    stored = StoredClient(here.account.home, request.client, here.account.locked, most)
    if request.phase is Phase.ENDED:
        stored.end(request.round_id)
        return StepReply(b""), NO_FAULTS
    steps = _Steps(here, fleet, request, pool, here.account)
    # Another run that is refused must not end the round in progress: a round that begins ends an earlier one.
    begins = request.phase is Phase.KEYS and not stored.has(request.round_id)
    if begins and not steps.budgets.allows(request.client, request.round):
        return StepReply(b"", refused=True), NO_FAULTS
    arguments = request.client, keys.own_key, keys.roster, keys.parameters, request.round_id

    def client_of(state: ClientState | None) -> Client:
        if state is None:
            return Client(*arguments, stored.rounds)
        return Client.restored(state, *arguments)

    try:
        reply = stored.answer(request.phase, request.round_id, request.form, client_of, steps.take)
    except Refusal:
        if steps.spent:  # no record affects it, so that the server may know the reason
            return StepReply(b"", refused=True), NO_FAULTS
        raise
    log(f"round {request.round}: secure sum: {request.phase.name.lower()}")
    return StepReply(reply), steps.faults


@dataclass(frozen=True)
class _Keys:
    """The keys of a node.

    Args:
        own_key: Its private key.
        roster: The public keys of all nodes.
        parameters: Of the sum that the node's plan allows.
    """

    own_key: ec.EllipticCurvePrivateKey
    roster: Roster
    parameters: Parameters


def _keys(owner: Owner, fleet: Fleet, hosts: list[int]) -> _Keys:
    """The keys with which a node takes part in secure sums.

    Raises:
        Refusal: The node has several clients, or its owner gave it no keys, or they do not fit.
    """
    shares, population = fleet.plan.shares, fleet.plan.population
    assert shares is not None  # `vet_step` has looked
    clients = np.arange(population)
    [*here] = clients[np.isin(clients % fleet.hosts, hosts)].tolist()
    if len(here) != 1:
        # The plan's survivors, colluders and shares of noise count clients. A key that signs for several of
        # them makes one node more than t colluders, or k of those who open. A node that sends their sum
        # instead has several shares of noise in one input, and n_min counts inputs.
        raise Refusal(
            f"node config: this node has {len(here)} clients, and takes part in a secure sum by masks as "
            "one: min_survivors and colluders count clients. Start a node with a key of its own for each "
            "client (federation.hosts = data.clients, num-partitions the same); colluders counts all nodes "
            "of an owner who may collude.",
            "node-config",
        )
    if owner.roster is None or owner.node_key is None:
        raise Refusal(
            "node config: the plan has noise in shares, which needs node-key = PATH of this node's private "
            "key and roster = PATH of the public keys of all nodes. Exchange the keys with the other owners.",
            "node-config",
        )
    with kind("node-config"):
        roster, own_key = read_roster(owner.roster), read_node_key(owner.node_key)
        parameters = Parameters.of_shares(shares)
    if missing := sorted(set(range(population)) - set(roster)):
        shown = ", ".join(map(str, missing[:10])) + (" and more" if len(missing) > 10 else "")
        raise Refusal(
            f"roster {owner.roster}: lacks the keys of clients {shown}. Get them from their owners.",
            "node-config",
        )
    if roster[here[0]] != own_key.public_key():
        raise Refusal(
            f"roster {owner.roster}: has another key for client {here[0]}, this node's, than node-key "
            f"{owner.node_key}. Correct partition-id, or the roster of all nodes.",
            "node-config",
        )
    return _Keys(own_key, roster, parameters)


# What the server sends for each step after the first.
_RECEIVED: Mapping[Phase, type[KeyList | DeliveredShares | Survivors | SignatureList]] = {
    Phase.SHARES: KeyList,
    Phase.INPUTS: DeliveredShares,
    Phase.CONSISTENCY: Survivors,
    Phase.OPENING: SignatureList,
}


class _Steps:
    """The steps of a client, with the messages of one request.

    Args:
        here: The node.
        fleet: Its clients.
        request: The server's request.
        pool: Who trains them.
        account: Of the participations of its client.
    """

    def __init__(
        self,
        here: NodeClients,
        fleet: Fleet,
        request: SumRequest,
        pool: WorkerPool | JointTraining | None,
        account: Account,
    ) -> None:
        self._here, self._fleet, self._request, self._pool = here, fleet, request, pool
        plan = fleet.plan
        self.budgets = StoredBudgets(account, plan.population, plan.answers)
        self.faults, self.spent = NO_FAULTS, False

    def take(self, client: Client) -> Checked:
        """Takes the requested step."""
        phase, message = self._request.phase, self._request.message
        if phase is Phase.KEYS:
            return client.advertise()
        with kind("secure-sum"):
            received = decoded(_RECEIVED[phase], message)
        match received:
            case KeyList():
                return client.share(received)
            case DeliveredShares():
                return client.mask(received, self._integers)
            case Survivors():
                return client.sign(received)
            case SignatureList():
                return client.open(received)
        raise AssertionError(phase)  # no other message has a place in `_RECEIVED`

    def _integers(self) -> Integers:
        """The client's update, clipped and rounded, with its share of noise, modulo 2^b.

        It is a participation, on disk before training begins, whether the sum is opened or not.
        """
        request = self._request
        clients = np.array([request.client], np.int64)
        willing = self.budgets.spend(clients, request.round)
        log(f"round {request.round}: answers given: {self.budgets.words(clients)}")
        if not len(willing):  # another round was quicker
            self.spent = True
            raise refusal(request.round_id, "this client has answered this round, or as often as it may.")
        reply, self.faults = answer(self._fleet, None, request.training(), self._here.hosts, self._pool)
        if not len(reply.clients):
            raise refusal(request.round_id, "this client dropped out before its input.")
        integers: Integers = reply.updates
        return integers
