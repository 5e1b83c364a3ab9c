"""All kinds of documents: what verification needs of each, and how each begins."""

from __future__ import annotations

import pytest

from fedprivacy.documents.kinds import KINDS
from fedprivacy.io.part import strict
from fedprivacy.verification.verify import CHECKS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_verified_by_its_scenario(kind: str) -> None:
    assert "scenario" in strict(KINDS[kind]).model_fields


def test_every_kind_is_verified() -> None:
    assert set(CHECKS) == set(KINDS)


def test_a_document_begins_with_its_schema_kind_and_head() -> None:
    document = KINDS["run"].new(performance={}, rounds=[], scenario={}, name="n", notes=[])
    assert list(document.to_json()) == [
        *("schema", "kind", "name", "scenario", "rounds", "notes", "performance"),
    ]
