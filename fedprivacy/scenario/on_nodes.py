"""The data section of a scenario whose records live on the nodes, and what must hold between its keys.

It says what all parties agree on. No record is named here: each owner gives its own node a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.base import Section

if TYPE_CHECKING:
    from fedprivacy.scenario.checks import Values

ON_NODES = "on-nodes"


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= 10**9


def _whole(what: str, most: int = 10**9) -> Any:
    def validated(value: Any) -> int | tuple[int, ...]:
        numbers = value if isinstance(value, list | tuple) else [value]
        if not numbers or len(numbers) > most or not all(_is_whole(one, 1) for one in numbers):
            raise PydanticCustomError("whole", what)
        return tuple(value) if isinstance(value, list | tuple) else value

    return BeforeValidator(validated)


def _classes(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, list | tuple):
        named = all(isinstance(one, str) and one for one in value)
        good = named and 2 <= len(set(value)) == len(value)
    else:
        good = _is_whole(value, 2) and value <= 10**6
    if not good:
        raise PydanticCustomError("classes", "must be the number of classes, or a list of different names")
    return tuple(value) if isinstance(value, list | tuple) else value


Shape = Annotated[
    int | tuple[int, ...],
    _whole("must be a number of columns, or a list with the shape of a record", most=8),
]
Classes = Annotated[int | tuple[str, ...], BeforeValidator(_classes)]
Sizes = Annotated[
    int | tuple[int, ...], _whole("must be a whole number from 1, or a list with one for each client")
]


class OnNodes(Section):
    """Records that stay on the nodes of their owners, each of which gives its node a path (docs/nodes.md)."""

    name: Literal["on-nodes"]
    features: Shape = Field(
        description="The shape of a record: a number of columns, or a list such as [28, 28].", examples=[20]
    )
    classes: Classes = Field(
        description="The number of classes, or a list of their names, in the order of the labels.",
        examples=[2],
    )
    clients: int = Field(
        ge=1,
        le=10**9,
        description="The number of clients; with as many federation.hosts each node is one.",
        examples=[4],
    )
    records_per_client: Sizes | None = Field(
        None,
        description="The records that each client is agreed to have, one number or a list with one for each; "
        'needed with privacy.unit = "example".',
        examples=[1000],
    )
    test: str | None = Field(
        None,
        min_length=1,
        description="An .npz file at the server with x_test and y_test, public held-out records; without it "
        "nothing is known of the model's accuracy.",
        examples=["public.npz"],
    )

    @property
    def population(self) -> int:
        """The number of clients."""
        return self.clients

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a record."""
        return shape_of(self.features)

    @property
    def class_count(self) -> int:
        """The number of classes."""
        return self.classes if isinstance(self.classes, int) else len(self.classes)


def shape_of(features: int | Sequence[int]) -> tuple[int, ...]:
    """The shape of a record whose `features` are a number of columns or a shape."""
    return (features,) if isinstance(features, int) else tuple(features)


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
