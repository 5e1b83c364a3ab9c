"""What acts on a terminal is written out; what is read stays as it is."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fedprivacy.io.escape import first_line, on_one_line, printable


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("step", [37, 1])
def test_every_character_that_acts_is_written_out_and_no_other(step: int) -> None:
    for number in [*range(0x500), *range(0x500, sys.maxunicode + 1, step)]:
        letter = chr(number)
        acts = (
            unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            and letter not in "\t\n"
        )
        if acts:
            assert printable(letter) == letter.encode("unicode_escape").decode()
        elif letter not in "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5":
            assert printable(letter) == letter


@settings(max_examples=200, derandomize=True)
@given(some.text())
def test_escaping_twice_is_escaping_once(text: str) -> None:
    once = printable(text)
    assert printable(once) == once
    assert "\n" not in on_one_line(text) + first_line(text)


def test_the_usual_texts_stay() -> None:
    for text in ("größe, 数据, naïve; 95\u00a0%", "a\tb\nc", "ε ≤ 2 × 10⁻⁵", "👍"):
        assert printable(text) == text
    assert printable("\u202e\u2066\u200b\u00ad\ufeff\x9b") == "\\u202e\\u2066\\u200b\\xad\\ufeff\\x9b"
