"""One training request on a node: check the plan, spend the budgets, train, clip and noise, reply.

Under local and distributed trust the server is the adversary, so that a reply may depend on data only through
what is clipped and noised: a client that fails answers with zero and its noise, like any other, and what went
wrong stays on the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.chunk_training import ChunkTrainer, client_chunks
from clients.fleet import Budgets, Fleet
from clients.joint_training import JointTraining
from clients.personal_state import PersonalStates
from clients.personal_training import copies_of
from clients.privacy import sum_noise, sum_share
from clients.worker_pool import WorkerPool
from fedprivacy.errors import InputError, Refusal
from fedprivacy.mechanisms.modular import ModularSum
from fedprivacy.mechanisms.summation import RunningSum
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import TrainReply, TrainRequest, check_clients
from fedprivacy.training.personalisation import Ditto

Ids = NDArray[np.int64]


def answer(
    fleet: Fleet,
    budgets: Budgets | None,
    request: TrainRequest,
    hosts: Sequence[int] = (0,),
    pool: WorkerPool | JointTraining | None = None,
    states: PersonalStates | None = None,
) -> tuple[TrainReply, Faults]:
    """Serves a request as the clients' own plan allows.

    Args:
        fleet: The clients of this node.
        budgets: Their remaining participations, or None where the plan limits nobody.
        request: The server's request.
        hosts: The logical hosts that live on this node.
        pool: Who trains them; None: this process.
        states: What they keep for their personal models, which is updated; None where they keep nothing.

    Returns:
        The reply, and the faults that it leaves out: under local trust those are for the node alone.

    Raises:
        Refusal: if the server requests another plan than the clients agreed to, or single
            messages where the plan draws noise for sums only, or in shares.
        InputError: if the request names clients that do not exist or live elsewhere, or has another model,
            or a clipping norm where the plan's does not change, or none where it does.
    """
    reason = fleet.plan.refusal(request.plan)
    if reason:
        raise Refusal(reason)
    # One draw for a sum covers no single message of it.
    if request.observe == "each" and fleet.plan.trust == "local" and fleet.plan.noise_draw == "sum":
        raise Refusal("request for single messages, but the plan draws noise for sums only")
    shares = fleet.plan.shares
    if request.observe == "each" and shares is not None:
        raise Refusal("request for single messages, but the plan has noise in shares, for secure sums only")
    fleet.plan.for_round(request.clipping_norm)
    clients = request.clients
    check_clients(clients, request.host, hosts, fleet.hosts, fleet.plan.population)
    if len(request.weights) != fleet.parameters:
        raise InputError(f"the model has {fleet.parameters} weights, {len(request.weights)} were sent")
    present = fleet.present(clients, request.round)
    # Who drops out does not answer, and its budget is not spent; nothing is claimed from that.
    willing = present if budgets is None else budgets.spend(present, request.round)
    parameters, each = fleet.plan.answer_length(len(request.weights)), request.observe == "each"
    rows, row = np.zeros((len(willing), parameters) if each else 0), 0
    total: RunningSum | ModularSum = RunningSum(parameters)
    if shares is not None:  # modular sums, which no order of addition changes
        total = ModularSum(parameters, shares.bits)
    answered: list[Ids] = []
    personal: list[PersonalStates] = []
    failed: set[int] = set()
    dropped = Faults({"dropped": len(clients) - len(present)})
    faults, cut = dropped, client_chunks(fleet, willing, request.observe)
    here = map(ChunkTrainer(fleet, request, states=states).train, cut)
    for part in here if pool is None else pool.train(fleet, request, cut, states):
        if each:
            rows[row : row + len(part.clients)] = part.private
        else:
            total.add(part.private)
        row += len(part.clients)
        answered.append(part.clients)
        if part.personal is not None:
            personal.append(part.personal)
        faults += part.faults
        failed |= part.failures.keys()
    if states is not None and isinstance(fleet.personal, Ditto):
        # After all updates are formed, so that no copy that fails or is slow takes an update along.
        trained = np.setdiff1d(willing, list(failed))
        pieces = client_chunks(fleet, trained, request.observe, beside=True)
        copies = copies_of(fleet, request, pieces, pool, states)
        personal = [part.personal for part in copies if part.personal is not None]
    if states is not None and personal:
        clients_of_parts = np.concatenate([part.clients for part in personal])
        states.update(clients_of_parts, np.concatenate([part.rows for part in personal]))
    ids = np.concatenate([np.zeros(0, np.int64), *answered])
    order = np.argsort(ids)
    ids = ids[order]  # independent of which worker finished first
    private: NDArray[Any]
    if each:
        private = rows[order]
    elif isinstance(total, ModularSum):
        total.add(sum_share(ids, fleet.plan, fleet.streams, round=request.round))
        private = total.total
    else:
        private = total.total + sum_noise(parameters, ids, fleet.plan, fleet.streams, round=request.round)
    # Which client failed depends on its records, and no noise covers the count: a server that is the
    # adversary learns of drop-outs alone.
    counted = dropped if fleet.plan.distrusts_server else faults
    return TrainReply(private, ids, len(present) - len(willing), counted), faults - counted
