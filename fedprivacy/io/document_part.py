"""Pieces of stored documents: one class for the fields of pages and of verification.

A field is read in two ways. The page is lenient: a field may be missing, and its number may be written as
text that is one. Verification recomputes epsilons from a file that anybody may have edited, so it is strict:
the fields marked `Checked` have to be there, of exactly their type, within limits on their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model

from fedprivacy.io.validation import Fields

# An accountant answers for each claim and each group, which takes up to seconds: hence the limits on lists.
Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Raw = Any  # a field that no page shows: it is verified and written as it is
Texts = Annotated[list[str], Field(min_length=1, max_length=100)]


class Part(BaseModel):
    """A piece of a document: unnamed fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
    FIRST: ClassVar[tuple[str, ...]] = ()  # fields that an error of verification names before others

    @classmethod
    def new(cls, **fields: Any) -> Self:
        """Makes a piece to be written, of which only the names of the fields are checked.

        A run that has finished must reach its record even where a page would refuse one of its figures.

        Args:
            fields: The written values, by the names of the fields; a piece may be given as JSON.

        Raises:
            TypeError: a name is that of no field.
        """
        if unknown := fields.keys() - cls.model_fields.keys():
            raise TypeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        return cast(Self, cls.model_construct(**fields))

    def to_json(self) -> dict[str, Any]:
        """Returns the fields that were set as a JSON object, in the order of their declarations."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)


@dataclass(frozen=True)
class Checked:
    """Marks a field that verification needs, in the field's `Annotated`.

    Args:
        kind: The strict type; None: that of the field itself, with lists in place of tuples.
        optional: Whether a document may lack the field.
    """

    kind: Any = None
    optional: bool = False


CHECKED = Checked()
IF_THERE = Checked(optional=True)


@cache
def strict(kind: type[Part]) -> type[Fields]:
    """The fields of a piece that verification needs, with strict types.

    Args:
        kind: The class of the piece.
    """
    fields: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        mark = next((entry for entry in field.metadata if isinstance(entry, Checked)), None)
        if mark is not None:
            annotation = field.annotation if mark.kind is None else mark.kind
            fields[field.alias or name] = (_strict(annotation), *([None] if mark.optional else [...]))
    first = {name: fields.pop(name) for name in kind.FIRST if name in fields}
    return create_model(kind.__name__, __base__=Fields, **{**first, **fields})


def _strict(annotation: Any) -> Any:
    """A type in which each `Part` is its strict form, and each tuple the list that JSON has."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *metadata = arguments
        return Annotated[(_strict(inner), *metadata)]
    if origin in (Union, UnionType):
        return reduce(or_, map(_strict, arguments))
    if origin is tuple:
        return list[_strict(arguments[0])]  # type: ignore[misc]
    if origin in (list, dict):
        of: Callable[[Any], Any] = origin.__class_getitem__
        return of(tuple(map(_strict, arguments)) if origin is dict else _strict(arguments[0]))
    return strict(annotation) if isinstance(annotation, type) and issubclass(annotation, Part) else annotation
