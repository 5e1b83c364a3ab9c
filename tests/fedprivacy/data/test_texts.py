"""Texts as records: who wrote which part, public tokens, windows, and what is held out."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.texts import (
    OTHER,
    VOCABULARY,
    arrays_of,
    by_paragraph,
    by_speaker,
    divided,
    simulated_text,
    token_names,
    tokens_of,
    unclear_speaker,
    windows,
)

PLAY = """The title

 ANNA:
Good day.
It is late: go.

BEN:
  Who is there?

Nobody answers.

ANNA:
I.
"""


def test_speeches_of_a_speaker_are_joined_and_the_title_is_nobodys() -> None:
    assert by_speaker(PLAY) == {
        "ANNA": "Good day.\nIt is late: go.\nI.\n",
        "BEN": "Who is there?\n\nNobody answers.\n",
    }
    assert by_speaker("No speaker: here\n") == {}
    assert by_speaker("ANNA:\n\nBEN:\nWho?") == {"ANNA": "\n", "BEN": "Who?\n"}


def test_paragraphs_are_authors_by_number() -> None:
    parts = by_paragraph("one\nand more\n\n\n \ntwo\n" + "\n\nx" * 8)
    assert list(parts)[:2] == ["01", "02"]
    assert list(parts.values())[:2] == ["one\nand more\n", "two\n"]
    assert len(parts) == 10


def test_characters_that_are_not_in_the_vocabulary_are_one_token() -> None:
    assert len(VOCABULARY) == 96
    tokens = tokens_of("A\né~ü", VOCABULARY)
    assert tokens.tolist() == [VOCABULARY.index("A"), 0, 96, 95, 96]
    names = token_names(VOCABULARY)
    assert (names[0], names[1], names[-1]) == ("U+000A", " ", OTHER)
    assert len(set(names)) == 97


def test_windows_follow_each_other_and_each_position_is_a_target_once() -> None:
    x, y = windows(np.arange(12), 4)
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert y.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert windows(np.arange(4), 4)[0].shape == (0, 4)
    assert windows(np.arange(0), 4)[0].shape == (0, 4)


def test_the_last_windows_of_each_author_are_held_out() -> None:
    parts = {"B": "x" * 41, "A": "ab" * 10 + "a", "C": "abcd", "D": "abcde"}
    arrays = arrays_of(*divided(parts, 4, 0.2), "abx", 4)
    assert arrays["user_train"].tolist() == ["A"] * 4 + ["B"] * 8 + ["D"]
    assert arrays["user_test"].tolist() == ["A"] + ["B"] * 2
    assert arrays["x_test"][0].tolist() == [0, 1, 0, 1]
    assert arrays["y_test"][0].tolist() == [1, 0, 1, 0]
    assert arrays["x_train"][-1].tolist() == [0, 1, 3, 3]  # of "abcde", c, d and e are no tokens
    assert arrays["classes"].tolist() == ["a", "b", "x", OTHER]
    # Another author's text changes no record of these.
    other = arrays_of(*divided({**parts, "B": "y" * 50}, 4, 0.2), "abx", 4)
    assert np.array_equal(other["x_train"][:4], arrays["x_train"][:4])
    assert np.array_equal(other["classes"], arrays["classes"])


def test_a_simulated_play_has_its_roles_and_its_own_grammar() -> None:
    text = simulated_text(5, 3, np.random.default_rng(0))
    parts = by_speaker(text)
    assert sorted(parts) == [f"ROLE {number}" for number in range(1, 6)]
    assert all(set(part) <= set(VOCABULARY) for part in parts.values())
    assert all(line[-1] in ".!?" for part in parts.values() for line in part.splitlines())
    assert text == simulated_text(5, 3, np.random.default_rng(0))
    assert text != simulated_text(5, 3, np.random.default_rng(1))


def test_the_first_speech_may_follow_an_empty_line_at_the_beginning() -> None:
    assert by_speaker("\nANNA:\nGood day.\n\nBEN:\nWho?\n") == {"ANNA": "Good day.\n", "BEN": "Who?\n"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("ANNA:\nGood day.\n\nBEN: Who is there?\n\nBEN:\nIt is me.", 4),
        ("ANNA:\nGood day.\nBEN:\nWho is there?", 3),
        ("ANNA:\nGood day.\n\nAnna:\nIt is late.", 4),
        ("ANNA:\nGood day.\n\nCLARA: Go.", 4),
        ("Anna:\nGood day.\nAnna: It is late.", 3),
        (f"ANNA:\nGood day.\n\n{'B' * 61}:\nWho?", 4),
        ("ANNA:\nGood day. He said: go.\nAt 10:30, that is:\nnow.\n\nBEN:\nWho?", None),
        ("\n\nANNA:\nGood day.\n\n BEN :\n\nANNA:\nI.", None),
    ],
)
def test_a_line_that_may_name_a_speaker_and_is_not_taken_so_is_reported(
    text: str, number: int | None
) -> None:
    assert unclear_speaker(text) == number
    if number is None:
        assert set(by_speaker(text)) <= {"ANNA", "BEN"}


def test_a_simulated_play_names_its_speakers_clearly() -> None:
    assert unclear_speaker(simulated_text(5, 3, np.random.default_rng(0))) is None
