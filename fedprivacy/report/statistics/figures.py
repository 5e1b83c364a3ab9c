"""Numbers and names of statistics in words: answers, intervals, errors, queries, mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.documents.answers import Bound, Query, Repeats, Row
from fedprivacy.mechanisms.categories import ORACLES
from fedprivacy.report import arm_labels, page_end, words
from fedprivacy.statistics.comparison import SHARES

SIMULATION_ONLY = "simulation only"
UNKNOWN = "cannot be told"
KINDS_OF_QUERY = {
    "mean-of-bits": "the share of the clients that say yes",
    "count": "how many clients say yes",
    "mean": "the mean of a number between two public bounds",
    "histogram": "how many clients are in each category",
    "share-by-group": "the share of yes within each group",
    "quantile": "quantiles, to within a public grid",
    "most-common": "the category that most clients are in",
    "best-price": "the price of a public list that earns most",
}
LISTED = 8  # entries of a setting that a line shows
# The action of a client or the server, by trust model and mechanism.
DOES = {
    ("local", "randomized-response"): "each client tells its answer as a bit, or by chance the opposite",
    ("local", "laplace"): "each client adds noise to its own number",
    ("shuffled", "randomized-response"): "each client tells its answer as a bit, or by chance the opposite",
    **{(trust, oracle.name): oracle.procedure for oracle in ORACLES for trust in ("local", "shuffled")},
    ("central", "laplace"): "the server adds noise to each exact total",
    ("central", "discrete-laplace"): "the server adds whole numbers as noise to each exact total",
    ("central", "exponential-mechanism"): "the server chooses by chance, good candidates far more likely",
    ("central", "noisy-max"): "the server adds noise to each score and names only the best",
    ("central", "permute-and-flip"): "the server adds noise to each score and names only the best",
}


def value(kind: str, number: float | None, digits: int = 4, decimals: int = 9) -> str:
    """An estimate or a true value: a share in percent, to a number of decimals, anything else as it is.

    >>> value("mean-of-bits", 0.60019), value("histogram", 12345.6), value("count", None)
    ('60.02 %', '12,346', '—')
    """
    if number is None:
        return "—"
    if kind in SHARES:
        return f"{words.number(round(100 * number, decimals), digits)} %"
    return words.number(number, digits)


def cut(kind: str, ends: tuple[float, float] | None) -> tuple[float, float] | None:
    """An interval, that of a share cut at 0 and 1, which costs no privacy: it is post-processing.

    >>> cut("mean-of-bits", (0.34, 1.1)), cut("count", (-2.0, 5.0))
    ((0.34, 1.0), (-2.0, 5.0))
    """
    if ends is None or kind not in SHARES:
        return ends
    low, high = (min(1.0, max(0.0, end)) for end in ends)
    return low, high


def interval(kind: str, ends: tuple[float, float] | None, decimals: int = 9) -> str:
    """Both ends of an interval.

    >>> interval("count", (3.0, 5.0)), interval("count", None), interval("mean-of-bits", (0.337, 1.1), 0)
    ('3 to 5', '—', '34 % to 100 %')
    """
    ends = cut(kind, ends)
    return "—" if ends is None else " to ".join(value(kind, end, decimals=decimals) for end in ends)


def fitting(kind: str, ends: tuple[float, float] | None) -> int:
    """The decimals of a share in percent that its interval leaves: two digits of half its width.

    >>> fitting("mean-of-bits", (0.34, 1.1)), fitting("mean-of-bits", (0.574, 0.612)), fitting("count", None)
    (0, 1, 9)
    """
    if ends is None or kind not in SHARES or not ends[1] > ends[0]:
        return 9
    return max(0, 1 - math.floor(math.log10(50 * (ends[1] - ends[0]))))


def estimate(kind: str, row: Row) -> str:
    """An estimate, or the statement that noise hides it."""
    return UNKNOWN if row.estimate is None else value(kind, row.estimate)


def error(number: float | None, kind: str = "") -> str:
    """An error in three digits, that of a share in percentage points.

    >>> error(0.00371), error(0.00371, "mean-of-bits")
    ('0.00371', '0.371 points')
    """
    if number is None or kind not in SHARES:
        return words.number(number, 3)
    return f"{words.number(100 * number, 3)} points"


def unclear(query: Repeats | None) -> bool:
    """Whether the repeats are too few to tell the mean error: its interval reaches half of it, or more."""
    ends = query.error.interval if query is not None and query.error is not None else None
    mean = query.error.mean if query is not None and query.error is not None else None
    return ends is not None and mean is not None and (ends[1] - ends[0]) / 2 > mean / 2


def percent(share: float | None) -> str:
    """A share of the repeats.

    >>> percent(0.975), percent(None)
    ('97.5 %', '—')
    """
    return "—" if share is None else f"{words.number(100 * share, 3)} %"


def query_label(kind: str) -> str:
    """The description of a query."""
    return KINDS_OF_QUERY.get(kind, kind)


def settings(query: Any, leave_out: Sequence[str] = ()) -> str:
    """The settings of a query on one line, of long lists only the beginning."""
    if not isinstance(query, Mapping):
        return ""
    short = {
        key: _short(entry)
        for key, entry in query.items()
        if key not in ("kind", "local", "central", *leave_out) and (key, entry) != ("weight", 1.0)
    }
    return page_end.flat(short)


def _short(entry: Any) -> Any:
    if isinstance(entry, float):
        return f"{entry:,.10g}"  # a probability near 1 is not 1
    if not isinstance(entry, (list, tuple)) or len(entry) <= LISTED:
        return entry
    return f"{', '.join(map(page_end.plain, entry[:LISTED]))} and {len(entry) - LISTED:,} more"


def noise(query: Query | Repeats) -> str:
    """The mechanism of a query with how much noise it has."""
    if query.mechanism is None:
        return "exact"
    title, text = arm_labels.mechanism(query.mechanism), query.noise or ""
    if text.lower().startswith(title.lower()):
        return words.capital(text)
    return f"{title}, {text}" if text else title


def mechanism(query: Query | Repeats, trust: str) -> str:
    """The mechanism of a query, its noise, and a description."""
    does = DOES.get((trust, query.mechanism or ""))
    return f"{words.capital(noise(query))}." + (f" {words.capital(does)}." if does else "")


def promise(bound: Bound | None) -> str:
    """The error bound of a mechanism."""
    if bound is None:
        return "—"
    odds = "" if bound.probability is None else f", with probability {chance(bound.probability)}"
    return f"{words.capital(bound.what)}: at most {words.number(bound.at_most)}{odds}"


def chance(probability: float) -> str:
    """The probability of a bound, rounded down so that only 1 reads as certain.

    >>> chance(0.95), chance(0.9999546)
    ('95 %', '99.9954 %')
    """
    return f"{math.floor(probability * 1e6 + 1e-6) / 1e4:.6g} %"


def chosen(kind: str, choice: Any) -> str:
    """A choice, or one number: a category by its name, a price as it is."""
    return choice if isinstance(choice, str) else value(kind, choice)


def worth(score: float | None, scored: str | None) -> str:
    """The value of a choice, with its unit.

    >>> worth(9120.0, "revenue"), worth(None, None)
    ('9,120 (revenue)', '—')
    """
    return words.number(score) + (f" ({scored})" if scored and score is not None else "")
