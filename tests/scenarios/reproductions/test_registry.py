"""Every fast row reproduces; what is unknown, missing or different is stated, and never passed over."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedprivacy.errors import InputError, RunError
from scenarios.reproductions import registry
from scenarios.reproductions.registry import BY_NAME, FAST, ROWS, chosen, reproduce
from scenarios.reproductions.row import Measured, Place, Row

QUICK = [row for row in ROWS if row.seconds <= 5]
MIDDLE = [row for row in ROWS if 5 < row.seconds <= FAST]


def row(**changes) -> Row:
    return replace(BY_NAME["lectures-basic-composition"], **changes)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("each", QUICK, ids=lambda each: each.name)
def test_a_quick_row_reproduces(each: Row, tmp_path: Path) -> None:
    result = each.reproduce(Place(tmp_path))
    assert result["status"] == "as expected", result
    assert result["cost"]["delta"] is not None
    assert result["cost"]["unit"] in ("client", "example")
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("each", MIDDLE, ids=lambda each: each.name)
def test_a_row_of_less_than_a_minute_reproduces(each: Row, tmp_path: Path) -> None:
    assert each.reproduce(Place(tmp_path))["status"] == "as expected"


def test_names_are_unique_and_every_row_names_its_source() -> None:
    assert len(BY_NAME) == len(ROWS)
    for each in ROWS:
        assert each.claim
        assert each.source
        assert each.tolerance > 0
        assert each.seconds > 0


def test_without_names_the_fast_rows_are_chosen_and_with_all_every_one() -> None:
    assert chosen([], everything=False) == [each for each in ROWS if each.seconds <= FAST]
    assert chosen([], everything=True) == list(ROWS)
    assert [each.name for each in chosen(["nvflare-svt", "nvflare-svt"], everything=False)] == ["nvflare-svt"]


def test_an_unknown_name_and_names_beside_all_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        chosen(["flower-mesage", "nvflare-svt", "nothing"], everything=False)
    first, second = str(refused.value).splitlines()
    assert first == "flower-mesage: no such row. Did you mean flower-message?"
    assert second.startswith("nothing: no such row. Known here: ")
    with pytest.raises(InputError, match=r"--all: reproduces every row\."):
        chosen(["nvflare-svt"], everything=True)


def test_a_figure_beyond_its_tolerance_differs(tmp_path: Path) -> None:
    result = row(measure=lambda place: Measured(10.1), tolerance=0.05).reproduce(Place(tmp_path))
    assert (result["status"], result["reason"]) == ("differs", "ours is above the published figure")
    assert row(tolerance=0.05).reproduce(Place(tmp_path))["reason"] == "ours agrees with the published figure"


def test_a_row_on_other_data_has_a_status_that_is_no_agreement(tmp_path: Path) -> None:
    result = row(other_data=True).reproduce(Place(tmp_path))
    assert result["status"] == "other data"
    assert "no comparison with the published figure" in result["reason"]
    changed = row(other_data=True, measure=lambda place: Measured(11.0)).reproduce(Place(tmp_path))
    assert changed["status"] == "differs"
    others = {each.name for each in ROWS if each.other_data}
    pictures = {f"nasr-{attack}" for attack in ("passive", "ascent", "isolating", "isolating-ascent")}
    assert others == {"lira-location30", *pictures}


def test_a_row_without_its_data_says_so_and_does_not_start(tmp_path: Path) -> None:
    def measure(place: Place) -> Measured:
        raise AssertionError("started")

    here = tmp_path / "location30.npz"
    waiting = row(measure=measure, data=lambda place: place.data or here)
    result = waiting.reproduce(Place(tmp_path))
    assert (result["status"], result["ours"]) == ("skipped", None)
    assert result["reason"] == f"its data are not here: {here}. Bring the file, or name it: --data FILE"
    other = tmp_path / "other.npz"
    other.touch()
    with pytest.raises(AssertionError, match="started"):
        waiting.reproduce(Place(tmp_path, other))


def test_a_run_that_fails_is_a_row_that_failed(tmp_path: Path) -> None:
    def measure(place: Place) -> Measured:
        raise RunError("white-box: all clients failed")

    result = row(measure=measure).reproduce(Place(tmp_path))
    assert (result["status"], result["reason"]) == ("failed", "white-box: all clients failed")

    def refused(place: Place) -> Measured:
        raise InputError("data.npz: has no array x_train")

    result = row(measure=refused).reproduce(Place(tmp_path))
    assert (result["status"], result["reason"]) == ("failed", "data.npz: has no array x_train")


def test_the_document_names_the_rows_that_were_not_run(tmp_path: Path) -> None:
    started: list[str] = []
    names = ["lectures-basic-composition", "flower-message"]
    document = reproduce(chosen(names, everything=False), Place(tmp_path), started.append)
    assert started == names
    assert [each["name"] for each in document["rows"]] == names
    assert set(document["not_run"]) == {each.name for each in registry.ROWS} - set(names)
