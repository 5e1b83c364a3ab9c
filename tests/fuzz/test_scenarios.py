"""Scenario files that are broken in 700 ways end in a ScenarioError, or are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from breaking import SECONDS, Tally, an_eighth_or_all, bounded, broken_bytes, fuzz
from hypothesis import given
from hypothesis import strategies as some

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario.bounds import MAX_DEPTH, MAX_ELEMENTS, MAX_KEYS
from fedprivacy.scenario.bundled import scenario_of_app
from fedprivacy.scenario.loading import load, loads
from scenarios.authoring.catalogue import ready

NEED_DATA = ('name = "npz"', 'name = "flwr-datasets"')
TEXTS = [
    text for file in ready().values() if not any(word in (text := file.read_text()) for word in NEED_DATA)
]
VALUES = some.sampled_from(
    ["1", "-1", "0", "0.5", "1e400", "inf", "nan", "true", '""', '"x"', '"\\u0000"', "[]", "[1, 2]", "[[[1]]]", "{}", "{a = 1}", "2020-01-01",
     "0x" + "f" * 40, "9" * 60, "9" * 5000, "1_000_000_000", "-0.0", "'''a'''", '"\\ud800"', "[" * 30 + "]" * 30, "1e-320", "[nan]", '["all"]']
)  # fmt: skip
LINES = some.sampled_from(
    ["[data]", "[x]", "[[compare]]", "x = 1", "a.b.c = 1", "seed = 1", "[queries.q]", "[attacks.a]", "[game]", "[compare.local]", "=", '"', "#", "\0",
     "compare.central.server.rounds = 2", "privacy.trust = 'none'", ".".join("a" * 50) + " = 1", "[" + ".".join("a" * 50) + "]"]
)  # fmt: skip


@some.composite
def broken_text(draw: Any) -> str:
    """A ready scenario with lines that are changed, taken out, repeated or put in, or with broken bytes."""
    text = draw(some.sampled_from(TEXTS))
    rows = text.split("\n")
    set_ = [at for at, row in enumerate(rows) if "=" in row and not row.startswith("#")]
    for _ in range(draw(some.integers(1, 3))):
        at = draw(some.sampled_from(set_))
        match draw(some.integers(0, 5)):
            case 0 | 1:
                rows[at] = f"{rows[at].partition('=')[0]}= {draw(VALUES)}"
            case 2:
                rows[at] = ""
            case 3:
                rows[at] = f"{rows[at]}\n{rows[draw(some.integers(0, len(rows) - 1))]}"
            case 4:
                rows[at] = f"{draw(LINES)}\n{rows[at]}"
            case _:
                rows[at] = rows[at].replace("=", draw(some.sampled_from([".b =", " x =", "", "= ="])), 1)
    text = "\n".join(rows)
    if draw(some.integers(0, 4)) == 0:
        return bytes(draw(broken_bytes(text.encode()))).decode("utf-8", "replace")
    return text


@an_eighth_or_all
def test_broken_scenarios_end_in_our_errors(part: int) -> None:
    tally = Tally()

    @fuzz(400 // part)
    @given(broken_text())
    def each(text: str) -> None:
        scenario = tally.read(loads, text)
        assert scenario is None or loads(scenario.to_toml()) == scenario

    with bounded():
        each()
    assert tally.examples >= 400 // part
    assert 0.5 < tally.refused / tally.examples < 1


@an_eighth_or_all
def test_broken_files_end_in_our_errors(part: int, tmp_path: Path) -> None:
    tally, file = Tally(), tmp_path / "broken.toml"
    whole = TEXTS[0].encode()

    @fuzz(100 // part)
    @given(broken_bytes(whole, 6))
    def each(data: bytes) -> None:
        file.write_bytes(data)
        tally.read(load, file)
        tally.read(scenario_of_app, data.decode("utf-8", "replace"))

    with bounded():
        each()
    assert tally.refused > 100 // part


BASE = 'name = "small"\n'
BOMBS = {
    "a dotted key": ".".join(["a"] * 100_000) + " = 1",
    "a dotted header": "[" + ".".join(["a"] * 100_000) + "]",
    "a dotted key with quotes": ' . '.join(["'a'"] * 50_000) + " = 1",
    "lists in lists": "x = " + "[" * 300 + "]" * 300,
    "tables in tables": "x = " + "{a = " * 300 + "1" + "}" * 300,
    "a wide number": "seed = 0x" + "F" * 500_000,
    "many digits": "seed = " + "9" * 500_000,
    "many keys": "\n".join(f"k{i} = 1" for i in range(50_000)),
    "many sections": "\n".join(f"[t{i}]" for i in range(50_000)),
    "many tables of an array": "[[t]]\n" * 100_000,
    "many elements": "x = [" + "1," * 400_000 + "]",
    "a long text": "name = '" + "a" * 900_000 + "'",
    "a long key": "k" * 900_000 + " = 1",
    "escapes": 'x = "' + "\\\\" * 400_000 + '"',
    "an open text": 'x = """' + '"' * 900_000,
    "quotes": '"' * 900_000,
    "comments": "#" * 900_000,
    "a large file": "# \n" * 2_000_000,
}  # fmt: skip


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_bounded_time_and_memory(bomb: str, tmp_path: Path) -> None:
    file = tmp_path / "bomb.toml"
    file.write_text(BOMBS[bomb] + "\n" + BASE)
    tally = Tally()
    with bounded():
        assert tally.read(load, file) is None
        assert tally.read(loads, BOMBS[bomb] + "\n" + BASE) is None
        tally.read(loads, TEXTS[0], "scenario", [f"server.rounds={BOMBS[bomb].partition('= ')[2]}"])
    assert tally.slowest < SECONDS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deep"),
        (".".join("a" * (MAX_DEPTH + 2)) + " = 1", "nested too deep"),
        ("\n".join(f"k{i} = 1" for i in range(MAX_KEYS + 1)), "more than 5,000 keys"),
        ("x = [" + "1," * (MAX_ELEMENTS + 1) + "]", "more than 50,000 elements"),
        ("seed = 0x1" + "0" * 16, "seed: a whole number of more than 64 bits"),
        (
            "[compare]\nseeds = [1, 0x1" + "0" * 20 + "]",
            r"compare.seeds\[1\]: a whole number of more than 64 bits",
        ),
    ],
)
def test_limits_are_named(text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        loads(text)


def test_what_stands_in_texts_and_comments_is_not_counted() -> None:
    inside = (
        "# "
        + "[" * 50
        + "\n"
        + 'tuning = """'
        + "[.{" * 50
        + '\n\\" """\n'
        + "description = '"
        + "a.b" * 50
        + "'\n"
    )
    whole = TEXTS[0]
    kept = "\n".join(row for row in whole.split("\n") if not row.startswith(("tuning", "description")))
    assert "description" not in kept or loads(whole)
    with pytest.raises(ScenarioError) as raised:
        loads(inside)
    assert "nested" not in str(raised.value)


def test_of_very_many_mistakes_the_first_are_shown() -> None:
    with pytest.raises(ScenarioError, match=r"\.\.\. and \d+ more mistakes") as raised:
        loads("\n".join(f"k{i} = 1" for i in range(300)))
    assert len(raised.value.problems) > 300
    assert len(str(raised.value).splitlines()) == ScenarioError.SHOWN + 1
