"""All kinds of documents: what verification needs of each, and how each begins."""

from __future__ import annotations

import pytest

from fedprivacy.documents.kinds import KINDS, read_whole
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.documents.run import RunDocument
from fedprivacy.errors import InputError
from fedprivacy.io.document_part import strict
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


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_operator_only_is_a_field_of_its_document(kind: str) -> None:
    document = KINDS[kind]
    own = [path for path in document.OPERATOR_ONLY if path not in SEEDS and not path.startswith("runs: ")]
    assert {path.partition(".")[0].removesuffix("[]") for path in own} <= set(document.model_fields)


def test_a_damaged_document_of_the_terminal_is_refused_with_its_path_and_key() -> None:
    with pytest.raises(InputError, match=r"runs/a: damaged: rounds\[0\].accuracy is not a number"):
        read_whole(RunDocument, {"path": "runs/a", "rounds": [{"accuracy": "high"}]})
