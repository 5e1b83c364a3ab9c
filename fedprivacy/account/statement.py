"""The statement of an account: its claim against each observer, and its entries, as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedprivacy.account.account import Account
from fedprivacy.account.assumptions import AccountAssumption, of_runs
from fedprivacy.account.entry import PlannedWork
from fedprivacy.guarantees.statement import NEIGHBOURS, printed

SEES = {
    "server": "the server, which sees each message that it receives",
    "analyst": (
        "the analyst behind a shuffler, who sees all messages in random order, and without a shuffler "
        "what the server sees"
    ),
    "participant": "another participant, who sees what clients are sent and what is published",
    "outsider": "an outsider, who sees what is published",
}
# The key of the digests; and digests of seeds, data and ids, by which a guess of these could be confirmed.
# How a run ended may depend on the data, and the claims assume that no observer learns it.
OPERATOR_ONLY = (
    *("path", "account", "entries[].populations"),
    *("entries[].plans[].digest", "entries[].plans[].outcome", "entries[].plans[].run"),
)


def statement(account: Account) -> dict[str, Any]:
    """The statement of an account.

    Args:
        account: The account.

    Returns:
        A JSON object: `policy`, `claims` for each observer, `entries` with their plans.
    """
    policy = account.policy
    return {
        "schema": 1,
        "kind": "account",
        "path": str(account.path),
        "account": account.key,
        "policy": policy.to_json(),
        "claims": [_claim(account, observer) for observer in policy.filters],
        "entries": [_entry(account, number, entry) for number, entry in account.entries.items()],
        "torn": account.lines.torn > 0,
        "operator_only": list(OPERATOR_ONLY),
    }


def rows_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the plans of a statement as the rows of a table, one for each plan."""
    for entry in document["entries"]:
        for plan in entry["plans"]:
            costs = {f"cost_{name}": cost for name, cost in plan["costs"].items()}
            fields = {key: plan[key] for key in ("name", "work", "trust", "rounds", "sampling", "state")}
            yield {"entry": entry["entry"], "time": entry["time"], **fields, **costs}


def _claim(account: Account, observer: str) -> dict[str, Any]:
    policy = account.policy
    filter_ = policy.filters[observer]
    assumptions = _assumptions(account, observer)
    return {
        "observer": observer,
        "epsilon": filter_.epsilon,
        "delta": filter_.delta,
        "order": filter_.order,
        "budget": filter_.budget,
        "remaining": account.remaining(observer),
        "full": account.is_full(observer),
        "assumptions": assumptions,
        "words": (
            f"Against {SEES[observer]}: all that enters this account has together at most epsilon = "
            f"{printed(filter_.epsilon)} at delta = {filter_.delta:g}, for "
            f"{NEIGHBOURS[policy.unit, policy.adjacency]} (unit {policy.unit}, {policy.adjacency}), "
            f"accountant {_accountant(account, observer)}; provided that {'; '.join(assumptions)}."
        ),
    }


def _accountant(account: Account, observer: str) -> str:
    filter_ = account.policy.filters[observer]
    if account.is_full(observer):
        return "PLD of the plans together, which nothing can follow"
    return f"RDP filter of order {filter_.order:g}"


def _assumptions(account: Account, observer: str) -> list[str]:
    entries = list(account.entries.values())
    of_entries = [text for _, _, part in account.parts for text in part["claims"][observer]["assumptions"]]
    together = any(len(entry["parts"]) > 1 for entry in entries)
    stated = any(entry["same_population"] for entry in entries)
    of_clients, full = account.policy.unit == "client", account.is_full(observer)
    same = AccountAssumption.SAME_CLIENTS if of_clients else AccountAssumption.SAME_RECORDS
    texts = [
        AccountAssumption.COMPLETE,
        *[AccountAssumption.ADAPTIVE] * (not full),
        *[AccountAssumption.TOGETHER] * together,
        *[same] * stated,
        AccountAssumption.BROKE_OFF,
    ]
    return [*map(str, texts), *of_runs(of_entries), *[str(AccountAssumption.LATER)] * (not full)]


def _entry(account: Account, number: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    plans = [
        {
            **{key: part[key] for key in ("name", "work", "trust", "rounds", "sampling", "digest")},
            "state": "started" if (number, at) in account.started else "entered",
            "outcome": account.ended.get((number, at), {}).get("outcome"),
            "run": account.ended.get((number, at), {}).get("run"),
            "costs": {name: _known(cost) for name, cost in account.costs[number, at].items()},
        }
        for at, part in enumerate(entry["parts"])
    ]
    return {
        "entry": number,
        "time": entry["time"],
        "same_population": entry["same_population"],
        "populations": entry["populations"],
        "plans": plans,
    }


def _known(cost: float) -> float | None:
    return None if math.isinf(cost) else cost


def would_fit(account: Account, works: Sequence[PlannedWork], same_population: bool) -> dict[str, Any]:
    """Whether plans that enter together would fit, as a document; nothing is entered.

    Args:
        account: The account.
        works: The plans.
        same_population: Whether their clients are stated to be those of the account.

    Returns:
        A JSON object: `plans`, `fits`, whether they are `entered` already, what each observer's `costs` are
        in words, the `reason` why they do not fit, and the `largest` plan that does.

    Raises:
        InputError: the policy does not cover such plans, or they are about other clients.
    """
    account.check_populations([work.population for work in works], same_population)
    waiting = len(works) == 1 and account.waiting(works[0]) is not None
    parts = [] if waiting else [work.part(account.policy, account.key) for work in works]
    account.check_cohorts(parts)
    reason = None if waiting else account.refusal(parts)
    costs = {}
    for name, filter_ in account.policy.filters.items():
        known = [part["claims"][name]["cost"] for part in parts]
        cost = "unknown" if None in known else f"{sum(known):.4g}"
        costs[name] = (
            f"it costs {cost} at order {filter_.order:g}, and {account.remaining(name):.4g} of "
            f"{filter_.budget:.4g} remain"
        )
    return {
        "schema": 1,
        "kind": "account-plan",
        "plans": [work.name for work in works],
        "fits": reason is None,
        "entered": waiting,
        "reason": reason,
        "costs": costs,
        "largest": None if reason is None else account.largest(works),
    }
