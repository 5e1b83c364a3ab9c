"""A stored audit held against its ledgers and guesses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.accounting.ledger import OBSERVERS
from fedprivacy.attacks.audit_record import assessed_again
from fedprivacy.errors import InputError
from fedprivacy.records.audited_runs import check_runs
from fedprivacy.records.differences import brief
from fedprivacy.sameness import same


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of an audit, as it may be shown.

    Raises:
        InputError: a claim, what is proved of it or a verdict does not follow from its ledger and guesses.
    """
    check_runs(document, where)
    _check_audit(document, where)
    return document


def _check_audit(document: Mapping[str, Any], where: str) -> None:
    """That each claim, what is proved of it and the verdict follow from its ledger and the guesses."""
    refuted = False
    if sorted(one["observer"] for one in document["observers"]) != sorted(OBSERVERS):
        raise InputError(f"{where}: observers: are not {', '.join(OBSERVERS)}: audit again.")
    for number, one in enumerate(document["observers"]):
        if one["ledger"] >= len(document["ledgers"]):
            raise InputError(f"{where}: observers[{number}].ledger: there is no such ledger. Audit again.")
        if (one["one_run"] is None) != (document["audited"]["method"] == "canary-clients"):
            raise InputError(f"{where}: observers[{number}].one_run: does not fit the method: audit again.")
        try:
            again = assessed_again(document, number)
        except ValueError as error:
            raise InputError(f"{where}: {error}. The record was changed: audit again.") from error
        for part, found in again.items():
            if not same(one[part], found):
                raise InputError(
                    f"{where}: observers[{number}].{part}: says {brief(one[part])}, its ledger, guesses and "
                    f"scores imply {brief(found)}. The record was changed: audit again."
                )
        refuted = refuted or again["verdict"]["holds"] is False
    if document["refuted"] is not refuted:
        raise InputError(f"{where}: refuted: says {document['refuted']}, its verdicts do not: audit again.")
