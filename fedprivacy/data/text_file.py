"""Texts as data of a scenario: each is made once into an .npz file of the cache folder.

That file is a copy of private data, which only its owner may read; it may be deleted at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz, storage
from fedprivacy.data.secrets import Secret, drawn_secrets, room, with_secrets
from fedprivacy.data.source import SourceError
from fedprivacy.data.texts import (
    AUTHORS,
    LONGEST_NAME,
    VOCABULARY,
    arrays_of,
    divided,
    simulated_text,
    unclear_speaker,
)
from fedprivacy.errors import Finding
from fedprivacy.io.regular_file import read_regular
from fedprivacy.randomness.streams import Streams

VERSION = 2  # of how files are made
MAX_BYTES = 2**28  # of a text
ROLES, SPEECHES = 100, 4  # of a simulated play
SECRETS = "secrets"  # the array of authors, openings and digits


@dataclass(frozen=True)
class TextSource:
    """The keys of the data section that select the records of a text.

    Args:
        path: The file; None: a simulated play.
        authors: How it is divided, one of `AUTHORS`.
        window: The characters of a record.
        vocabulary: The characters that are tokens; None: `VOCABULARY`.
        held_out: The share of each author's records to test on.
        roles: The speakers of a simulated play; None: `ROLES`.
        speeches: The speeches of each; None: `SPEECHES`.
        secrets: The number of authors with a made-up secret in their text.
        copies: How often each is there.
        seed: Draws a simulated play, and the secrets.
    """

    path: str | None
    authors: str
    window: int
    vocabulary: str | None
    held_out: float
    roles: int | None
    speeches: int | None
    secrets: int
    copies: int
    seed: int

    @classmethod
    def of(cls, keys: Mapping[str, Any]) -> Self:
        """The source that a data section names."""
        values: dict[str, Any] = {field.name: keys.get(field.name) for field in fields(cls)}
        return cls(**values)

    @property
    def tokens(self) -> str:
        """The characters that are tokens."""
        return VOCABULARY if self.vocabulary is None else self.vocabulary


def file(source: TextSource) -> str:
    """The path of the .npz file of a text, which is made if it is missing or the text has changed.

    Raises:
        SourceError: if the text cannot be read, or is too short.
        InputError: if the cache folder cannot be written.
    """
    stamp = None if source.path is None else storage.stamp_of(source.path)
    key = (VERSION, "text", astuple(source), source.tokens, stamp)
    return storage.converted(key, source.path or "the simulated play", lambda: _arrays(source))


def _arrays(source: TextSource) -> dict[str, NDArray[Any]]:
    text = _simulated(source) if source.path is None else _read(source.path)
    text = text.replace("\r\n", "\n")
    if source.authors == "speakers" and (number := unclear_speaker(text)) is not None:
        raise _wrong(
            f"line {number:,} may name a speaker, or spell a name in another way, and the words below it "
            "would be trained on as another's",
            f"Put each name, at most {LONGEST_NAME} characters and always spelled alike, and its colon on a "
            "line of its own after an empty line; where it is no name, take the colon away.",
        )
    parts = AUTHORS[source.authors](text)
    if not parts:
        raise _wrong(
            'no line names a speaker, such as "ANNA:" after an empty line',
            'Name them, or set authors = "paragraphs".',
        )
    train, test = divided(parts, source.window, source.held_out)
    if source.secrets > len(train):
        raise SourceError(
            [
                Finding(
                    ("data", "secrets"),
                    f"more than the {len(train)} authors",
                    "Each has one secret at most.",
                    str(source.secrets),
                )
            ]
        )
    secrets = drawn_secrets(list(train), source.secrets, source.seed)
    for secret in secrets:
        if (most := room(len(train[secret.author]), source.copies, source.window)) < source.copies:
            what = (
                f"in one author's text {most} copies are whole within a window of {source.window} characters"
            )
            remedy = "Take fewer copies, a longer text, or a window with more room."
            raise SourceError([Finding(("data", "copies"), what, remedy, str(source.copies))])
    lines = Streams(source.seed).stream("text/lines of secrets")
    train = with_secrets(train, secrets, source.copies, source.window, lines)
    arrays = arrays_of(train, test, source.tokens, source.window)
    rows = [(secret.author, secret.opening, secret.digits) for secret in secrets]
    arrays[SECRETS] = np.array(rows, dtype=str).reshape(-1, 3)
    for name, what in (("x_train", "train"), ("x_test", "test")):
        if not len(arrays[name]):
            raise _wrong(
                f"no author has {source.window + 1} characters or more to {what} on",
                "Take a longer text, a shorter window, or another held_out.",
            )
    return arrays


def secrets(path: str) -> list[Secret]:
    """The secrets in a text, from its .npz file."""
    rows = npz.array(path, SECRETS)
    return [Secret(*map(str, row)) for row in rows.tolist()]


def _simulated(source: TextSource) -> str:
    stream = Streams(source.seed).stream("text/play")
    return simulated_text(source.roles or ROLES, source.speeches or SPEECHES, stream)


def _read(path: str) -> str:
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise _wrong("no such file", "Check the name.") from None
    except UnicodeDecodeError as error:
        raise _wrong(f"byte {error.start:,} is no UTF-8", "Save the text in the encoding UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _wrong(f"cannot be read: {reason.rstrip('.')}", "Check the file.") from None


def _wrong(what: str, remedy: str) -> SourceError:
    return SourceError([Finding(("data", "path"), what, remedy)])
