"""Texts as records: who wrote which part, and windows of tokens with the token that follows each.

A token is one character. The vocabulary is public: the scenario names it, or it is printable ASCII with the
end of a line. One read off clients' texts would be a release that no epsilon covers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

VOCABULARY = "\n" + "".join(map(chr, range(32, 127)))
OTHER = "other"  # the name of the token of all characters that are not in the vocabulary
# A line that names who speaks, after an empty line or at the beginning.
_SPEAKER = re.compile(r"(?:\A\s*|\n[ \t]*\n)[ \t]*([^\n:]{1,60}):[ \t]*(?=\n)")
_BEFORE_COLON = re.compile(r"[ \t]*([^:]+):[ \t]*(.*)")
LONGEST_NAME = 60  # as `_SPEAKER` has it
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
Parts = dict[str, str]


def by_speaker(text: str) -> Parts:
    """The speeches of each speaker, joined: each begins after an empty line, with a line "NAME:".

    What is before the first speech is nobody's.

    >>> by_speaker("A play\\n\\nANNA:\\nGood day.\\n\\nBEN:\\nWho?\\n\\nANNA:\\nI.")
    {'ANNA': 'Good day.\\nI.\\n', 'BEN': 'Who?\\n'}
    """
    names = list(_SPEAKER.finditer(text))
    ends = [*(match.start() for match in names), len(text)][1:]
    parts: dict[str, list[str]] = {}
    for match, end in zip(names, ends, strict=False):
        parts.setdefault(match[1].strip(), []).append(text[match.end() : end].strip() + "\n")
    return {name: "".join(speeches) for name, speeches in parts.items()}


def unclear_speaker(text: str) -> int | None:
    """The number of the first line that may name a speaker and is not taken so, or has another spelling.

    The words below it would be trained on as those of another author. Such a line has, before a colon, the
    name of a speaker, or capitals that begin a paragraph or fill the line, or a name that is too long.

    >>> unclear_speaker("ANNA:\\nGood day.\\n\\nBEN: Who?")
    4
    """
    names = {match[1].strip().casefold(): match[1].strip() for match in reversed([*_SPEAKER.finditer(text)])}
    after_empty = True
    for number, line in enumerate(text.split("\n"), start=1):
        if match := _BEFORE_COLON.fullmatch(line):
            name, alone = match[1].strip(), not match[2].strip()
            if after_empty and alone and len(match[1]) <= LONGEST_NAME:
                if names.get(name.casefold(), name) != name:
                    return number
            elif (
                name.casefold() in names
                or (after_empty and alone)
                or (name.isupper() and (after_empty or alone))
            ):
                return number
        after_empty = not line.strip()
    return None


def by_paragraph(text: str) -> Parts:
    """Each part between empty lines, by its number."""
    parts = _PARAGRAPH.split(text.strip())
    return {f"{number:0{len(str(len(parts)))}}": part + "\n" for number, part in enumerate(parts, start=1)}


AUTHORS: Mapping[str, Callable[[str], Parts]] = {"speakers": by_speaker, "paragraphs": by_paragraph}


def token_names(vocabulary: str) -> tuple[str, ...]:
    """The names of the tokens: characters, of those that do not print their code, and the other ones."""
    printed = (char if char.isprintable() else f"U+{ord(char):04X}" for char in vocabulary)
    return (*printed, OTHER)


def tokens_of(text: str, vocabulary: str) -> NDArray[np.int64]:
    """The tokens of a text, the places of its characters in the vocabulary, shape (characters,)."""
    places = {char: place for place, char in enumerate(vocabulary)}
    return np.array([places.get(char, len(vocabulary)) for char in text], np.int64)


def windows(tokens: NDArray[np.int64], length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Consecutive windows and at each position the token that follows; a shorter rest is left out.

    Args:
        tokens: Shape (tokens,).
        length: The positions of a window.

    Returns:
        Both of shape (windows, positions). No position is the target of two windows.
    """
    count = max(0, len(tokens) - 1) // length
    used = tokens[: count * length + 1]
    return used[:-1].reshape(count, length), used[1:].reshape(count, length)


def divided(parts: Parts, length: int, held_out: float) -> tuple[Parts, Parts]:
    """The texts to train on and those held out, the last windows of each author.

    An author without a window to train on is in neither.

    Args:
        parts: The text of each author.
        length: The positions of a window.
        held_out: The share of each author's windows that nobody trains on, rounded.
    """
    train: Parts = {}
    test: Parts = {}
    for author, text in sorted(parts.items()):
        count = max(0, len(text) - 1) // length
        if end := (count - round(count * held_out)) * length:
            train[author], test[author] = text[: end + 1], text[end:]
    return train, test


def arrays_of(train: Parts, test: Parts, vocabulary: str, length: int) -> dict[str, NDArray[Any]]:
    """The arrays of the .npz file of texts.

    Args:
        train: The text of each author to train on.
        test: The same held out.
        vocabulary: The characters that are tokens.
        length: The positions of a window.
    """
    smallest = np.min_scalar_type(len(vocabulary))
    arrays: dict[str, NDArray[Any]] = {"classes": np.array(token_names(vocabulary), dtype=str)}
    for part, texts in (("train", train), ("test", test)):
        cut = [windows(tokens_of(text, vocabulary), length) for text in texts.values()]
        none = np.empty((0, length), np.int64)
        for name, each in zip("xy", zip((none, none), *cut, strict=True), strict=True):
            arrays[f"{name}_{part}"] = np.concatenate(each).astype(smallest)
        owners = [author for author, (x, _) in zip(texts, cut, strict=True) for _ in x]
        arrays[f"user_{part}"] = np.array(owners, dtype=str)
    return arrays


def simulated_text(roles: int, speeches: int, stream: np.random.Generator) -> str:
    """A simulated play in a small grammar, in which each role has its own favourite words.

    Args:
        roles: The number of speakers.
        speeches: The speeches of each.
        stream: Draws them.
    """
    favourites = [
        {kind: _pick(words, max(2, len(words) // 2), stream) for kind, words in _WORDS.items()}
        for _ in range(roles)
    ]
    order = stream.permutation(np.repeat(np.arange(roles), speeches))
    parts = ["A simulated play: no person wrote it."]
    for role in order.tolist():
        lines = (_sentence(favourites[role], stream) for _ in range(1 + stream.integers(3)))
        parts.append(f"ROLE {role + 1}:\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


_WORDS: Mapping[str, Sequence[str]] = {
    "noun": ("king", "queen", "night", "storm", "ship", "crown", "garden", "letter", "sword", "ghost"),
    "verb": ("sees", "fears", "finds", "loves", "hides", "follows", "forgets", "calls"),
    "adjective": ("old", "pale", "gentle", "bitter", "silent", "golden", "strange", "weary"),
    "opening": ("Good my lord,", "Alas,", "Come,", "They say", "I swear", "Hark,"),
    "ending": ("tonight.", "at last.", "in the morning!", "no more.", "by the sea.", "?"),
}


def _pick(words: Sequence[str], count: int, stream: np.random.Generator) -> list[str]:
    return [words[place] for place in stream.choice(len(words), count, replace=False)]


def _sentence(words: Mapping[str, Sequence[str]], stream: np.random.Generator) -> str:
    """One sentence of the grammar: opening, subject, verb, object, ending."""

    def draw(kind: str) -> str:
        return words[kind][int(stream.integers(len(words[kind])))]

    subject, seen = (
        f"the {draw('adjective')} {draw('noun')}" if stream.random() < 0.5 else f"the {draw('noun')}"
        for _ in range(2)
    )
    ending = draw("ending")
    return f"{draw('opening')} {subject} {draw('verb')} {seen}{'' if ending == '?' else ' '}{ending}"
