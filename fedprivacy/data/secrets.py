"""Made-up secrets in clients' texts, by which memorising is measured (Carlini et al. 2019).

A secret is a number of so many digits after words that name it. Each is in the text of one author, several
times, and is drawn uniformly among all numbers of as many digits. Nothing else depends on it, so that a model
that has not seen it can rank it by chance alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rules of scenarios import this module, and need no numpy
    import numpy as np

DIGITS = "0123456789"
LENGTH = 4  # digits of a secret
CANDIDATES = len(DIGITS) ** LENGTH
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TAG = 5  # letters of a name, by which secrets differ
LONGEST = len("\nthe code  is \n") + _TAG + LENGTH  # characters of a line with a secret, with its ends
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
    parts: Mapping[str, str], secrets: list[Secret], copies: int, window: int, stream: np.random.Generator
) -> dict[str, str]:
    """The texts with each secret in that of its author, each copy whole within one window.

    Places depend on the lengths of texts alone, and not on digits. What a copy moves past the last window
    is left out, as any shorter rest is.

    Args:
        parts: The text of each author that clients train on.
        secrets: The secrets, each of an author with `room` for the copies.
        copies: How often each is in the text, in lines at places drawn at random.
        window: The positions of a window, at least `LONGEST`.
        stream: Draws the places.
    """
    planted = dict(parts)
    for secret in secrets:
        text, line = planted[secret.author], f"\n{secret.line}"
        rest, pieces, end = iter(text), [], 0
        slots = stream.choice(room(len(text), copies, window), copies, replace=False) // (window // LONGEST)
        for place, count in sorted(Counter(slots.tolist()).items()):
            gaps = sorted(stream.integers(0, window - count * LONGEST + 1, count).tolist())
            for earlier, gap in enumerate(gaps):
                start = place * window + gap + earlier * LONGEST
                pieces += [*islice(rest, start - end), line]
                end = start + LONGEST
        planted[secret.author] = "".join([*pieces, *rest])
    return planted


def room(length: int, copies: int, window: int) -> int:
    """The number of copies for which there is room in the windows of a text that has so many more.

    Args:
        length: The characters of the text without them.
        copies: The number of copies that make it longer.
        window: The positions of a window.
    """
    return (length - 1 + copies * LONGEST) // window * (window // LONGEST)
