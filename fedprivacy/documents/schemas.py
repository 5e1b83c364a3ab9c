"""JSON schemas of the result documents, for programs that read `run.json`.

`python -m fedprivacy.documents.schemas FOLDER` writes a file for each kind; the repository has them in
docs/schemas.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.documents.kinds import KINDS
from fedprivacy.documents.redaction import ALWAYS_OPERATOR_ONLY


def schema_of(kind: str) -> dict[str, Any]:
    """Returns the JSON schema (draft 2020-12) of a kind of document.

    Its `x-operator-only` lists the paths that are outside every guarantee: `rounds[].cohort` means that key
    of each element of `rounds`. Keys that it does not name may appear in documents of this version.

    Args:
        kind: One of `KINDS`.
    """
    cls = KINDS[kind]
    schema = cls.model_json_schema(by_alias=True, mode="validation")
    head = {"schema": {"const": SCHEMA}, "kind": {"const": kind}}
    summary = (cls.__doc__ or "").strip().partition("\n")[0]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"fedprivacy {kind} document",
        "description": summary,
        "type": "object",
        "required": ["schema", "kind", "name", "status", "scenario"],
        "properties": {**head, **schema["properties"]},
        "x-operator-only": list(dict.fromkeys([*cls.OPERATOR_ONLY, *ALWAYS_OPERATOR_ONLY])),
        "$defs": schema.get("$defs", {}),
    }


def write(folder: Path) -> list[Path]:
    """Writes the schema of each kind to `folder/KIND.json`, and returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in KINDS:
        path = folder / f"{kind}.json"
        path.write_text(json.dumps(schema_of(kind), indent=2) + "\n", encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
