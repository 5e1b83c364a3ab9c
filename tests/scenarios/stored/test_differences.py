"""Two stored results beside each other; guarantees on other terms are not compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from scenarios.stored.differences import difference


def verdict(stored: dict[str, Path], first: str, second: str, observer: str = "outsider") -> str:
    return difference(stored[first], stored[second])["guarantees"][observer]["verdict"]


def test_settings_that_differ(stored: dict[str, Path]) -> None:
    document = difference(stored["plain"], stored["weaker"])
    assert document["settings"] == {"privacy.epsilon": [2.0, 8.0]}
    assert document["results"]["kind"] == ["run", "run"]


def test_a_smaller_epsilon_on_the_same_terms_is_stronger(stored: dict[str, Path]) -> None:
    assert verdict(stored, "plain", "weaker") == "the first is stronger"
    assert verdict(stored, "weaker", "plain") == "the second is stronger"
    assert verdict(stored, "plain", "again") == "the same epsilon"


@pytest.mark.parametrize(("other", "term"), [("other-delta", "delta"), ("other-adjacency", "adjacency")])
def test_an_equal_epsilon_on_other_terms_is_not_compared(
    stored: dict[str, Path], other: str, term: str
) -> None:
    text = verdict(stored, "plain", other)
    assert "not comparable" in text
    assert term in text


def test_results_without_a_guarantee(stored: dict[str, Path]) -> None:
    assert verdict(stored, "plain", "none") == "a guarantee in the first alone"
    assert verdict(stored, "none", "none") == "no guarantee in either"
    assert verdict(stored, "plain", "weaker", "server") == "no guarantee in either"
    assert "each of its cells" in verdict(stored, "plain", "compare")


def test_a_seed_is_not_shown(stored: dict[str, Path]) -> None:
    document = difference(stored["plain"], stored["again"])
    assert document["settings"] == dict.fromkeys(["seed", "compare.seeds"], ["differs, not shown"] * 2)
    assert "77" not in json.dumps(document["settings"])


def test_a_record_that_contradicts_itself_is_refused(stored: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(stored["plain"], tmp_path / "changed"))
    document = json.loads((path / "run.json").read_text())
    for each in document["privacy"]["guarantees"]:
        each["epsilon"] = None if each["epsilon"] is None else 0.1
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"run\.json"):
        difference(path, stored["plain"])
    with pytest.raises(InputError):
        difference(stored["plain"], tmp_path)
