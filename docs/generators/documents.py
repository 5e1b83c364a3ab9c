"""The keys of each kind of result document, read off its JSON schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedprivacy.documents.kinds import KINDS
from fedprivacy.documents.schemas import schema_of
from generators.text import code, plain, table


def markdown() -> str:
    """Returns a heading for each kind, with its keys, its nested objects and its operator-only paths."""
    return "\n".join(line for kind in KINDS for line in _kind(kind))


def _kind(kind: str) -> Iterator[str]:
    schema = schema_of(kind)
    yield from (f"## {kind}", "", plain(schema["description"]), "")
    yield from (f"Schema: [{kind}.json](../schemas/{kind}.json).", "")
    yield from _keys(schema)
    hidden = ", ".join(map(code, schema["x-operator-only"]))
    yield from (f"Operator-only: {hidden}.", "")
    for name, definition in schema["$defs"].items():
        if "properties" in definition:
            about = str(definition.get("description", "")).partition("\n\n")[0]
            yield from (f"**{name}**: {plain(about)}", "")
            yield from _keys(definition)


def _keys(schema: dict[str, Any]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = [
        (code(key), _type(value), "yes" if key in required else "")
        for key, value in schema["properties"].items()
    ]
    return table(("key", "type", "always there"), rows) if rows else []


def _type(value: dict[str, Any]) -> str:
    if "const" in value:
        return code(value["const"])
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2]
    if "enum" in value:
        return ", ".join(map(code, value["enum"]))
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type, value["anyOf"])))
    kind = str(value.get("type", "any"))
    if kind == "array" and isinstance(value.get("items"), dict):
        return f"list of {_type(value['items'])}"
    return plain(kind)
