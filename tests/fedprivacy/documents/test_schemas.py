"""The schemas in docs are those of the documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedprivacy.documents.kinds import KINDS
from fedprivacy.documents.schemas import schema_of, write

DOCS = Path(__file__).parents[3] / "docs"


def test_the_stored_schemas_are_those_of_today(tmp_path: Path) -> None:
    for path in write(tmp_path):
        stored = DOCS / "schemas" / path.name
        again = "python -m fedprivacy.documents.schemas docs/schemas"
        assert stored.read_text() == path.read_text(), f"{stored} is old. Write it again: {again}"
    assert {path.stem for path in (DOCS / "schemas").iterdir()} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_valid_and_marks_what_is_for_the_operator_alone(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {"seed", "command", "error"} <= set(schema["x-operator-only"])
    assert json.loads(json.dumps(schema)) == schema


def test_the_page_links_each_schema() -> None:
    page = (DOCS / "documents.md").read_text()
    assert all(f"schemas/{kind}.json" in page for kind in KINDS)
