"""Work whose documents are the operator's alone: its private releases are charged to an account.

Audits, attacks and private estimates compute with records without noise too: a rehearsal that is subtracted,
scores of true records, the exact minimum. No event covers that. So the claim of the account assumes that the
operator alone sees it, and nothing is claimed against the server, whose side of the apps computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fedprivacy.account.assumptions import AccountAssumption
from fedprivacy.account.entry import Ledgers, PlannedWork


def as_operators(work: PlannedWork, name: str, reason: str) -> PlannedWork:
    """The work as one whose documents are the operator's, with a guarantee against all but the server."""

    def changed(give: Callable[[int], Ledgers] | None) -> Callable[[int], Ledgers] | None:
        return None if give is None else lambda count: _without_server(give(count), reason)

    return replace(
        work,
        work=name,
        ledgers=_without_server(work.ledgers, reason),
        first=changed(work.first),
        ledgers_of_settings=changed(work.ledgers_of_settings),
    )


def _without_server(ledgers: Ledgers, reason: str) -> Ledgers:
    def of_ledger(ledger: Any) -> dict[str, Any]:
        claims = [
            {**claim, "event": None, "assumptions": [reason]}
            if claim["observer"] == "server"
            else {**claim, "assumptions": [*claim["assumptions"], str(AccountAssumption.OPERATOR_ALONE)]}
            for claim in ledger["claims"]
        ]
        groups = {"groups": [of_ledger(group) for group in ledger["groups"]]} if "groups" in ledger else {}
        return {**ledger, "claims": claims, **groups}

    return tuple(of_ledger(ledger) for ledger in ledgers)
