"""Names of runs: a path as it is, a name in the default folder, and candidates for a name that is neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from scenarios.stored.run_names import run_directory


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `runs` with five runs and a folder that is none."""
    monkeypatch.chdir(tmp_path)
    for name in ("1-digits", "2-digits", "3-digits", "4-digits", "5-hospitals"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "scenario.toml").touch()
    (tmp_path / "runs" / "6-digits-notes").mkdir()
    return Path("runs")


def test_a_path_stays_as_it_is_and_a_name_is_looked_up(runs: Path, tmp_path: Path) -> None:
    assert run_directory("1-digits", runs) == runs / "1-digits"
    assert run_directory("1-digits/", runs) == runs / "1-digits"
    for path in ("runs/1-digits", "runs/nowhere", "elsewhere/1-digits", str(tmp_path / "1-digits"), "."):
        assert run_directory(path, runs) == Path(path)
    Path("1-digits").mkdir()  # what is here comes first
    assert run_directory("1-digits", runs) == Path("1-digits")
    Path("broken").symlink_to("nowhere")
    assert run_directory("broken", runs) == Path("broken")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("digits", "Did you mean 4-digits or 3-digits or 2-digits?"),
        ("hospitals", "Did you mean 5-hospitals?"),
        ("5-hospitls", "Did you mean 5-hospitals?"),
        ("zebra", "Name a run: `fedprivacy list` lists them."),
        ("x" * 5000, "Name a run: `fedprivacy list` lists them."),
    ],
)
def test_the_error_names_candidates_the_newest_first(runs: Path, name: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        run_directory(name, runs)
    assert str(caught.value) == f"{name}: no such run, here or in runs. {remedy}"


def test_names_steer_no_terminal(runs: Path) -> None:
    (runs / "7-evil\x1b[2J").mkdir()
    (runs / "7-evil\x1b[2J" / "scenario.toml").touch()
    for name in ("evil", "evil\x1b[2", "evil\0"):
        with pytest.raises(InputError) as caught:
            run_directory(name, runs)
        assert str(caught.value).isprintable()


def test_without_any_run_the_error_names_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There are no runs yet: `fedprivacy run digits` makes one"):
        run_directory("digits", tmp_path / "runs")
