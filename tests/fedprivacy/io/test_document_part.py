"""One class is read in two ways: leniently for a page, and strictly where an epsilon is recomputed from it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from fedprivacy.io.document_part import CHECKED, IF_THERE, Checked, Number, Part, strict


class Inner(Part):
    epsilon: Annotated[float | None, Checked(Number | None)] = Field(None, ge=0)
    words: str | None = None


class Outer(Part):
    inner: Annotated[tuple[Inner, ...], CHECKED] = ()
    few: Annotated[tuple[Inner, ...], Checked(Annotated[list[Inner], Field(max_length=1)])] = ()
    one_or_none: Annotated[Inner | None, IF_THERE] = None
    label: Annotated[str | None, CHECKED] = Field(None, alias="class")
    page: int = 0


WHOLE: dict[str, Any] = {"inner": [{"epsilon": 1.0}], "few": [], "class": "a"}


def test_a_whole_piece_is_read_both_ways() -> None:
    strict(Outer).model_validate({**WHOLE, "page": "no number of the page's"})
    assert Outer.model_validate(WHOLE).inner[0].epsilon == 1.0


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"inner": [{}]}, ("inner", 0, "epsilon")),
        ({"inner": [{"epsilon": "1"}]}, ("inner", 0, "epsilon")),
        ({"inner": [{"epsilon": float("inf")}]}, ("inner", 0, "epsilon")),
        ({"few": [{"epsilon": 1.0}] * 2}, ("few",)),
        ({"one_or_none": {}}, ("one_or_none", "epsilon")),
        ({"class": 1}, ("class",)),
    ],
)
def test_verification_is_strict_where_the_page_is_not(change: dict[str, Any], at: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        strict(Outer).model_validate({**WHOLE, **change})
    [error] = refused.value.errors()
    assert error["loc"][: len(at)] == at


def test_limits_of_the_page_are_not_those_of_verification() -> None:
    """It compares an impossible epsilon with the recomputed one, and names both."""
    strict(Inner).model_validate({"epsilon": -1.0})
    with pytest.raises(ValidationError):
        Inner.model_validate({"epsilon": -1.0})


def test_what_is_written_has_the_fields_that_were_set_in_their_order() -> None:
    piece = Outer.new(page=3, label=None, inner=[Inner.new(words="w", epsilon=float("nan"))])
    written = piece.to_json()
    assert list(written) == ["inner", "class", "page"]
    assert list(written["inner"][0]) == ["epsilon", "words"]


def test_a_figure_that_a_page_refuses_is_written_all_the_same() -> None:
    assert Inner.new(epsilon=-1.0).to_json() == {"epsilon": -1.0}


def test_a_field_that_is_not_declared_is_a_mistake_of_the_writer() -> None:
    with pytest.raises(TypeError, match="Inner has no field epsilom"):
        Inner.new(epsilom=1.0)
