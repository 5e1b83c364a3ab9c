"""The data section of a scenario whose records are on the nodes, and the rules between its keys.

It is the part that all parties agree on. No record is named here: each owner gives its own node a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fedprivacy.scenario.base import Section

ON_NODES = "on-nodes"


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= 10**9


def _whole(what: str, most: int = 10**9) -> Any:
    def validated(value: Any) -> int | tuple[int, ...]:
        numbers = value if isinstance(value, list | tuple) else [value]
        if not numbers or len(numbers) > most or not all(_is_whole(number, 1) for number in numbers):
            raise PydanticCustomError("whole", what)
        return tuple(value) if isinstance(value, list | tuple) else value

    return BeforeValidator(validated)


def _classes(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, list | tuple):
        named = all(isinstance(label, str) and label for label in value)
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
