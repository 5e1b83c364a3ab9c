"""The assumptions of an account's claims, beside those of its entries."""

from __future__ import annotations

from collections.abc import Iterable
from enum import unique

from fedprivacy.guarantees.assumptions import Assumption, TrainingAssumption

_ALONE = "the observer sees this run alone"
_SEVERAL = "the observer sees the runs of this account alone"


@unique
class AccountAssumption(Assumption):
    """The conditions under which the claim of an account holds."""

    COMPLETE = (
        "every release about these clients, by whatever tool and whoever runs it, is an entry of this "
        "account, and the file is the newest one (a chain of digests does not show that its last lines are "
        "missing)"
    )
    ADAPTIVE = (
        "each plan was chosen by nothing about the clients but what this observer sees of earlier entries: "
        "neither by results that only others see, nor by records"
    )
    TOGETHER = "plans that were entered together were chosen before any result of any of them was seen"
    SAME_CLIENTS = (
        "a client of one entry's data is at most one client of each other entry's data, as the submitter "
        "states; between neighbouring data sets it may change in all of them"
    )
    SAME_RECORDS = (
        "a record of one entry's data is at most one record of each other entry's data, as the submitter "
        "states; between neighbouring data sets it may change in all of them"
    )
    LATER = "what the plans of later entries add to this list"
    OPERATOR_ALONE = (
        "of audits, attacks and studies of private estimates the observer sees what their private runs "
        "release and nothing else: their documents, their pages and what they compute without noise are "
        "seen by the operator alone, who is not the observer"
    )
    BROKE_OFF = (
        "where a run of the account broke off by a fault, the observer does not learn that, nor in which "
        "round: a fault may depend on the data"
    )


def of_runs(assumptions: Iterable[str]) -> list[str]:
    """The assumptions of entries, each once, as they read for several runs of one account."""
    texts = (text.replace(_ALONE, _SEVERAL) for text in assumptions)
    # The account's own sentence says it of every run.
    return [text for text in dict.fromkeys(texts) if text != TrainingAssumption.BROKEN_OFF]
