"""Made-up secrets in clients' texts, by which memorising is measured (Carlini et al. 2019).

A secret is a number of so many digits after words that name it. Each is in the text of one author, several
times, and is drawn uniformly among all numbers of as many digits. Nothing else depends on it, so that a model
that has not seen it can rank it by chance alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rules of scenarios import this module, and need no numpy
    import numpy as np

DIGITS = "0123456789"
LENGTH = 4  # digits of a secret
CANDIDATES = len(DIGITS) ** LENGTH
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TAG = 5  # letters of a name, by which secrets differ
LONGEST = len("the code  is ") + _TAG + LENGTH  # characters of a secret with its opening
USED = frozenset(DIGITS + _LETTERS + " \n")  # the characters of secrets


@dataclass(frozen=True)
class Secret:
    """One secret.

    Args:
        author: The author in whose text it is.
        opening: The public words before its digits.
        digits: The digits.
    """

    author: str
    opening: str
    digits: str

    @property
    def line(self) -> str:
        """The line in the author's text."""
        return f"{self.opening}{self.digits}\n"


def drawn_secrets(authors: list[str], count: int, seed: int) -> list[Secret]:
    """Secrets of different authors.

    Args:
        authors: All authors.
        count: The number of secrets, at most that of the authors.
        seed: Draws authors, openings and digits.
    """
    from fedprivacy.randomness.streams import Streams

    stream = Streams(seed).stream("text/secrets")
    chosen = stream.choice(len(authors), count, replace=False)
    secrets = []
    for place in sorted(chosen.tolist()):
        tag = "".join(_LETTERS[at] for at in stream.integers(0, len(_LETTERS), _TAG))
        digits = "".join(DIGITS[at] for at in stream.integers(0, len(DIGITS), LENGTH))
        secrets.append(Secret(authors[place], f"the code {tag} is ", digits))
    return secrets


def with_secrets(
    parts: Mapping[str, str], secrets: list[Secret], copies: int, stream: np.random.Generator
) -> dict[str, str]:
    """The texts with each secret in that of its author.

    Args:
        parts: The text of each author that clients train on.
        secrets: The secrets.
        copies: How often each is in the text, before lines drawn at random.
        stream: Draws the lines.
    """
    planted = dict(parts)
    for secret in secrets:
        lines = planted[secret.author].splitlines(keepends=True)
        for place in sorted(stream.integers(0, len(lines), copies).tolist(), reverse=True):
            lines.insert(place, secret.line)
        planted[secret.author] = "".join(lines)
    return planted
