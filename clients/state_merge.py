"""The state of a node whose messages are answered side by side, each on the state that all began with.

An engine with several processes sends a node's state along with a message, gets back what the message
changed (`changes`), and adds that to what the node's state is by then (`merged`). The state is what
`clients.app` keeps: budgets, personal models, and what went wrong in a round.
"""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from clients.personal_state import RECORD, PersonalStates
from fedprivacy.errors import Refusal
from fedprivacy.messages.faults import Faults

Counts = NDArray[np.int32]


def changes(before: RecordDict, after: RecordDict) -> RecordDict:
    """The changes of a message in a node's state.

    Args:
        before: The state that it was answered on.
        after: The state that `clients.app` left.

    Returns:
        For `merged`. Its size is that of the message, not that of the population.
    """
    changed = RecordDict()
    if "budgets" in after:
        counts, last = _budgets(after)
        was_counts, was_last = _budgets(before) if "budgets" in before else _fresh(len(counts))
        clients = np.flatnonzero((counts != was_counts) | (last != was_last))
        parts = {"counts": counts, "last": last, "was counts": was_counts, "was last": was_last}
        changed["budgets"] = ArrayRecord(
            {
                "clients": Array(clients),
                "population": Array(np.array(len(counts))),
                **{name: Array(values[clients]) for name, values in parts.items()},
            }
        )
    if RECORD in after:
        states = PersonalStates.of_record(after.array_records[RECORD])
        earlier = PersonalStates.load(before, states.rows.shape[1])
        changed[RECORD] = states.changes(earlier).record()
    if "faults" in after:
        record = after.config_records["faults"]
        old = before.config_records["faults"] if "faults" in before else None
        if record != old:
            round, faults = record["round"], Faults.of(record)
            was = Faults.of(old) if old is not None and old["round"] == round else Faults()
            changed["faults"] = ConfigRecord({"round": round, **(faults - was).values()})
    return changed


def merged(now: RecordDict, changed: RecordDict) -> RecordDict:
    """A node's state with what another message changed.

    Args:
        now: The state by now; it stays as it is.
        changed: The message's `changes`.

    Raises:
        Refusal: if a client in it has answered another message meanwhile: both were answered on one budget,
            and in one round with the same noise, so that the second must not leave the node.
    """
    state = RecordDict(dict(now.items()))
    if "budgets" in changed:
        parts = {name: array.numpy() for name, array in changed.array_records["budgets"].items()}
        clients = parts["clients"]
        held = _budgets(now) if "budgets" in now else _fresh(int(parts["population"]))
        counts, last = held[0].copy(), held[1].copy()
        # Both began with the same state, so each passed the check of its budget alone. Noise is drawn by
        # client and round: the difference of two answers of one round has none.
        met = (counts[clients] != parts["was counts"]) | (last[clients] != parts["was last"])
        if met.any():
            raise Refusal(
                f"client {clients[met][0]} is in two simultaneous requests, and answers only one of them"
            )
        counts[clients], last[clients] = parts["counts"], parts["last"]
        state["budgets"] = ArrayRecord({"counts": Array(counts), "last": Array(last)})
    if RECORD in changed:  # a server addresses each client once a round
        new_states = PersonalStates.of_record(changed.array_records[RECORD])
        states = PersonalStates.load(now, new_states.rows.shape[1])
        states.update(new_states.clients, new_states.rows)
        state[RECORD] = states.record()
    if "faults" in changed:
        new = changed.config_records["faults"]
        old = now.config_records["faults"] if "faults" in now else None
        total = Faults.of(old) if old is not None and old["round"] == new["round"] else Faults()
        state["faults"] = ConfigRecord({"round": new["round"], **(total + Faults.of(new)).values()})
    return state


def _budgets(state: RecordDict) -> tuple[Counts, Counts]:
    record = state.array_records["budgets"]
    return record["counts"].numpy(), record["last"].numpy()


def _fresh(population: int) -> tuple[Counts, Counts]:
    """As `Budgets.fresh`."""
    return np.zeros(population, np.int32), np.full(population, -1, np.int32)
