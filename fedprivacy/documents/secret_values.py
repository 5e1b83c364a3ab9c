"""Values that no public copy reveals: fields with certain names, and file paths of the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

# Removed at any depth. The time and the memory of a computation depend on the cohorts.
NAMES = frozenset(
    {
        *("seed", "seeds", "command", "noise_key", "scenario_digest"),
        *("seconds", "clients_per_second", "peak_memory_mb"),
    }
)
WITHHELD = "(operator-only)"
MOST = 200  # fields that are listed, and values that are removed from texts
_PATH = re.compile(r"~?/[^\n]*|~|[A-Za-z]:[\\/][^\n]*")
_PATH_IN_TEXT = re.compile(r"(?<![\w.:/~\\<-])~?(?:/[^\s/'\",;:()\[\]<>]+){2,}")
_SEED_IN_TEXT = re.compile(
    r"\b(seeds?\s*[\s=:]\s*)[\[(]?\d+(?:(?:, ?| and | to | - )\d+)*[\])]?", re.IGNORECASE
)
_LEAST = 7  # characters of a value that is removed from texts: a shorter one is in many texts by chance


def is_secret(name: str, value: Any) -> bool:
    """Whether a field is removed for its name: a seed, key, command, time or memory.

    >>> is_secret("seeds", [1, 2]), is_secret("seeds", 2)  # which ones; how many
    (True, False)
    """
    last = name.rpartition(".")[2]
    several = last != "seeds" or isinstance(value, list | tuple)  # else their number
    return last in NAMES and several and not isinstance(value, Mapping)


def secret_values(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The path and value of each field that is removed for its name, or is a file path of the machine."""
    for path, name, value in _fields(document, ""):
        if is_secret(name, value) or (isinstance(value, str) and is_local(value)):
            yield path, value


def is_local(text: str) -> bool:
    """Whether a text is an absolute path of a file.

    >>> [is_local(text) for text in ("/home/me/x.npz", "data/x.npz", "and/or")]
    [True, False, False]
    """
    return len(text) > 1 and _PATH.fullmatch(text) is not None


def secret_paths(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of `secret_values`, each once; at most `MOST`."""
    known = dict.fromkeys(path for path, _ in islice(secret_values(document), 100 * MOST))
    return tuple(known)[:MOST]


def _fields(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """The path, name and value of each field of tables at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{path}.{name}" if path else str(name)
            yield below, str(name), inner
            yield from _fields(inner, below)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _fields(inner, f"{path}[]")


def cleaner(secrets: Iterable[Any]) -> Callable[[str], str]:
    """Returns a function that removes from a text the values that it quotes.

    Of an absolute path it leaves the last name, and after the word "seed" it replaces numbers.

    Args:
        secrets: The values, and lists of them. Only texts and whole numbers are looked for.

    >>> cleaner([1234567])("Of /home/me/x.npz: 1234567, seeds 1 and 2.")
    'Of x.npz: (operator-only), seeds (operator-only).'
    """
    single = (each for value in secrets for each in (value if isinstance(value, list | tuple) else [value]))
    texts = (str(each) for each in single if isinstance(each, str | int))
    known = islice(dict.fromkeys(text for text in texts if len(text) >= _LEAST), MOST)
    quoted = sorted(known, key=len, reverse=True)
    literal = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in quoted)) if quoted else None

    def clean(text: str) -> str:
        if is_local(text):
            return _last_name(text)
        if literal is not None:
            text = literal.sub(lambda match: _last_name(match[0]) if is_local(match[0]) else WITHHELD, text)
        return _SEED_IN_TEXT.sub(rf"\1{WITHHELD}", _PATH_IN_TEXT.sub(lambda m: _last_name(m[0]), text))

    return clean


def _last_name(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def cleaned(value: Any, clean: Callable[[str], str], *, blank: bool = False) -> Any:
    """A copy of a value without the fields that are removed for their names, and with clean texts.

    Args:
        value: Tables, lists and plain values.
        clean: As `cleaner` returns it.
        blank: Whether such a field is None and not removed.
    """
    if isinstance(value, Mapping):
        return {
            name: None if is_secret(name, inner) else cleaned(inner, clean, blank=blank)
            for name, inner in value.items()
            if blank or not is_secret(name, inner)
        }
    if isinstance(value, list | tuple):
        return [cleaned(inner, clean, blank=blank) for inner in value]
    return clean(value) if isinstance(value, str) else value
