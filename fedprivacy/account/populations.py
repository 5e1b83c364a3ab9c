"""The populations of an account: whether two plans are about the same clients, or records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from fedprivacy.errors import InputError

_OTHER_OWNERS = (
    "in the plan the same records have other owners than in {others}, so that a client of one may be several "
    "clients of the other, which no policy for one client covers. Use the same data.partition, or another "
    "account, whose claim then adds to this one's."
)
_UNKNOWN = {
    "client": "are about other data, and the clients {ids}",
    "example": "are about other data, and the unit is one record, which ids of clients do not identify",
}


@dataclass(frozen=True)
class PopulationIds:
    """Identifies the clients of a plan.

    Args:
        data: A digest of their data.
        ids: A digest of their ids; None where they have none.
        records: A digest of the records, whoever owns them and however they are scaled; None: unknown.
        owners: By which rule records have owners.
    """

    data: str
    ids: str | None = None
    records: str | None = None
    owners: str = ""

    def to_json(self, key: str) -> dict[str, str | None]:
        """The digests as an entry states them, under the account's key."""
        fields = vars(self).items()
        return {name: None if value is None else keyed(key, f"{name}/{value}") for name, value in fields}


class Relation(Enum):
    """How two populations are related."""

    SAME = auto()
    UNKNOWN = auto()
    OTHER_OWNERS = auto()


def relation(new: Mapping[str, Any], known: Mapping[str, Any], unit: str) -> Relation:
    """Compares two populations as entries state them.

    Args:
        new: One.
        known: The other.
        unit: The unit of privacy. Equal ids make clients equal, and never records.
    """
    if new["data"] == known["data"]:
        return Relation.SAME
    if unit != "client":
        return Relation.UNKNOWN
    if new["records"] is not None and new["records"] == known["records"] and new["owners"] != known["owners"]:
        return Relation.OTHER_OWNERS
    return Relation.SAME if new["ids"] is not None and new["ids"] == known["ids"] else Relation.UNKNOWN


def check_same(
    populations: Iterable[Mapping[str, Any]], entered: Sequence[Mapping[str, Any]], unit: str, stated: bool
) -> bool:
    """Refuses plans about other clients than those of the account, or than each other's.

    Args:
        populations: Those of the plans, as an entry states them.
        entered: Those of the account.
        unit: The unit of privacy.
        stated: Whether the submitter states that they are the same.

    Returns:
        Whether it rests on that statement.

    Raises:
        InputError: they are about several populations.
    """
    seen, rests = list(entered), False
    for new in populations:
        relations = [relation(new, known, unit) for known in seen]
        others = "earlier entries" if seen == list(entered) else "another of these plans"
        if Relation.OTHER_OWNERS in relations:
            raise InputError(_OTHER_OWNERS.format(others=others))
        if relations and Relation.SAME not in relations:
            if not stated:
                named = new["ids"] and any(known["ids"] for known in seen)
                why = _UNKNOWN[unit].format(ids="have other ids" if named else "have no ids to compare")
                raise InputError(
                    f"the plan and {others} {why}. Use another account for other persons. If each {unit} "
                    f"of one is at most one {unit} of each other, state --same-population: then all count as "
                    "one population."
                )
            rests = True
        seen.append(new)
    return rests


def keyed(key: str, text: str) -> str:
    """A digest under the account's key, so that accounts cannot be compared with each other."""
    return hashlib.blake2b(text.encode(), key=bytes.fromhex(key), digest_size=16).hexdigest()
