"""What must hold between the keys of data that live on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.on_nodes import ON_NODES
from fedprivacy.scenario.values import Values


def sizes_are_agreed(v: Values) -> Iterator[Finding]:
    if v["data.name"] != ON_NODES:
        return
    sizes, clients = v["data.records_per_client"], v["data.clients"]
    if isinstance(sizes, list | tuple) and clients is not None and len(sizes) != clients:
        what = f"{len(sizes)} numbers for {clients} clients"
        yield Finding(("data", "records_per_client"), what, "Give one number, or one for each client.")
    if v["privacy.unit"] == "example" and not v.given("data.records_per_client"):
        what = 'missing: privacy.unit = "example" reckons with the records that each client is agreed to have'
        yield Finding(("data", "records_per_client"), what, "Add records_per_client = 1000.")


def nothing_is_public(v: Values) -> Iterator[Finding]:
    if v["data.name"] == ON_NODES and v["evaluation.on"] == "public":
        what = "the records are on nodes, and none of them is public"
        yield Finding(("evaluation", "on"), what, 'Set on = "test", with data.test.', literal("public"))


NODE_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (sizes_are_agreed, nothing_is_public)
