"""Edits every value of a stored record, one at a time, and holds what is printed to what it was before.

A record states its facts more than once: scenario, plan, ledger and guarantees follow from each other. So an edit
of any single value is either refused, or it changes nothing that is printed as a guarantee. What this cannot show:
whoever rewrites a whole record consistently gets a consistent page. Nothing is signed.

To hold another kind of document to it:

    folder = Path(run_something_small(...)["path"])          # a real run, session-scoped
    tally = hold(folder, show_something, results={"answers": "what was measured, with noise"}, every=every)
    assert tally.refused > 1000 // every

with `@a_tenth_or_all` above the test, whose parameter is `every`: each run of the tests has a tenth of the edits.

`hold` edits run.json; `files` names others below the folder that the page depends on. `show` is what the terminal
prints. `results` are ids of sections of the page that hold measured results and no guarantee, each with its reason:
all other text of a page counts as a guarantee. `measured` are places of a document that hold measured results all over
a page: an edit there may change the page, but none of its `PROMISES` and nothing in the JSON that is a guarantee. Texts that may stand for each other (observers, units, ...) are in
`ALIKE`: add those of your kind. A refusal has the form "FILE: KEY: PROBLEM. REMEDY."
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from fedprivacy.documents.kinds import read as page_of
from fedprivacy.errors import InputError
from fedprivacy.report import render
from fedprivacy.verification.verify import checked_document

Route = tuple[str | int, ...]  # from the root of a document to a value
Show = Callable[[Mapping[str, Any]], None]
LONG = 12
GONE = object()  # instead of a value: its key is deleted


# With each tenth edit a test is in every run, with all edits it is exhaustive.
a_tenth_or_all = pytest.mark.parametrize(
    "every", [pytest.param(10, id="a tenth"), pytest.param(1, id="all", marks=pytest.mark.exhaustive)]
)
# Each stands for another of its line, so that an edit leaves a text that its field may have.
ALIKE: tuple[tuple[str, ...], ...] = (
    ("server", "participant", "outsider"),
    ("none", "central", "local"),
    ("client", "example"),
    ("replace-one", "add-remove", "zero-out"),
    ("running", "finished", "interrupted", "failed"),
    ("all", "poisson", "fixed", "separated"),
    ("gaussian", "privunit", "sqkr", "sign-bits", "clip-only", "gaussian-banded"),
    ("analytic Gaussian", "PLD", "RDP", "optimal composition", "basic composition"),
    ("training", "statistics", "estimate"),
    ("simulation-grade randomness", "operating system's entropy"),
    ("GaussianDpEvent", "LaplaceDpEvent", "NoOpDpEvent", "NonPrivateDpEvent"),
    ("PoissonSampledDpEvent", "SampledWithoutReplacementDpEvent"),
    ("public", "exponential", "random-stopping"),
    ("geometric", "logarithmic", "poisson"),
    ("run", "compare", "tune", "statistics"),
)
# A table's columns, and words of a sentence, that are measured: how good a model is, and how long it took.
_MEASURED = r"Accuracy|Loss|Mean|Interval|Each seed|Points|95 % interval|accuracy on the public split"
_CELL = re.compile(rf'<td role="cell" data-label="(?:{_MEASURED})".*?</td>', re.DOTALL)
_TILE = re.compile(r"<div><dt>(?:Accuracy|Loss)</dt>.*?</div>", re.DOTALL)
_STATUS = re.compile(r'<p class="status stopped">.*?</p>', re.DOTALL)  # how far a run came that broke off
_DRAWN = re.compile(r"<svg.*?</svg>", re.DOTALL)
_EVALUATIONS = re.compile(r"<caption[^>]*>Evaluations on.*?</table>", re.DOTALL)
_AXIS = re.compile(
    r" The axis of accuracy begins at .*?, not at 0\.| Accuracy on held-out records: -?(?:[\d.]+\s*%|—)\."
    r"|(?:[:,] no| This model is no| No)[a-z ]+ most frequent class\.?"
    r"| Naming the most frequent class every time is right for [\d.]+\s*% of held-out records\."
    r"|(?:[-\d.]+\s*%|#|—) accuracy of the choice from [\d,]+ candidates (?:The choice from [\d,]+ candidates is right "
    r"on .{1,20}? of held-out records|One of [\d,]+ candidates was chosen)|(?:—|[-\d.]+\s*%) accuracy of the choice"
)
_QUALITY = re.compile(
    r"The model is (?:right on .*? of the [a-z -]+|no[a-z ]+ most frequent class \(.*?\))(?=;)"
    r"|(?:-?\d+(?:\.\d+)?\s*%|—)(?= accuracy on the )"
    r"|-?\d+(?:\.\d+)?\s*%|accuracy (?:not a finite number|not shown|-?[\d.]+(?:\s*%)?)|loss (?:not a finite number|-?[\d.]+)"
    r"|-?[\d.]+ s, -?[\d,.]+ MB|report: .*/report.html"
    r"|After [\d,]+ rounds the model reaches .*? on the [a-z -]+|No round was evaluated"
)
# Sections of any page that promise nothing; of the settings [privacy] and [sampling] are what a plan follows from.
RESULTS = {
    "learning": "accuracy by round",
    "classes": "accuracy by class",
    "groups": "accuracy by group of held-out records, and by held-out user",
    "measures": "what else was measured of the final model",
    "held-out": "errors of a regression on test records",
    "candidates": "what else a budget would have bought; what ran is in the settings and in each guarantee",
    "performance": "how long it took",
    "reproduce": "where it is, its versions, and the scenario that was asked for",
    "operator-only": "counts and commands outside every claim",
}
# Below any of these names the JSON of a document is a guarantee, or what a guarantee is accounted from.
GUARANTEED = frozenset(
    {
        *("epsilon", "delta", "unit", "adjacency", "observer", "observers", "sampling", "accountant", "trust"),
        *("assumptions", "mechanism", "noise", "noise_multiplier", "clipping_norm", "guarantee", "guarantees"),
        *("per_client", "ledger", "ledgers", "plan", "plans", "words", "population", "max_participations"),
        *("batches", "records_per_client", "bound", "bounds", "verdict", "one_run", "claims", "event", "naive"),
        *("notes", "randomness", "kind", "finding", "shuffled"),
    }
)  # fmt: skip
# Sections that hold nothing but guarantees and what they are of.
PROMISES = ("guarantees", "shuffled", "audited")


@dataclass(frozen=True)
class Edit:
    """One value of a document replaced by another, or its key deleted (`GONE`)."""

    route: Route
    value: Any

    def __str__(self) -> str:
        shown = "deleted" if self.value is GONE else f"= {json.dumps(self.value)[:80]}"
        return f"{place(self.route)} {shown}"


@dataclass
class Tally:
    """How many edits were refused, and which changed nothing that is guaranteed."""

    refused: int = 0
    unchanged: list[Edit] = field(default_factory=list)

    @property
    def edits(self) -> int:
        return self.refused + len(self.unchanged)


def place(route: Route) -> str:
    """`cells[0].guarantees[1].epsilon`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in route).lstrip(".")


def edits(document: Any, route: Route = (), seen: set[Any] | None = None) -> Iterator[Edit]:
    """Several edits of every value of a document, the containers too; one of each that is as in a row before.

    `rounds[1].cohort` is as `rounds[0].cohort`, if both are numbers.
    """
    seen = set() if seen is None else seen
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _new(route, [Edit((*route, key), GONE)], (key, GONE), seen)
            yield from edits(value, (*route, key), seen)
        return
    values = _lists(document) if isinstance(document, list) else _others(document)
    yield from _new(route, [Edit(route, other) for other in values], type(document), seen)
    if isinstance(document, list):
        for index, value in _some(document):
            yield from edits(value, (*route, index), seen)


def _new(route: Route, changes: list[Edit], kind: Any, seen: set[Any]) -> list[Edit]:
    """All edits of a value, or one if a value of its kind at its place was edited in another row."""
    place = (tuple("" if isinstance(part, int) else part for part in route), kind)
    if place in seen:
        return changes[:1]
    seen.add(place)
    return changes


def _some(values: list[Any]) -> Iterable[tuple[int, Any]]:
    """The elements of a list; of a long list of numbers, or of such lists, both ends: nothing tells others apart."""
    found = list(enumerate(values))
    return (
        [*found[:2], found[-1]] if len(found) > LONG and isinstance(values[0], int | float | list) else found
    )


def _lists(value: list[Any]) -> list[list[Any]]:
    """A list without its first or last element, with one twice, empty, and with two swapped."""
    found = [value[1:], value[:-1], [*value[:1], *value], [*value, *value[-1:]], [], value[::-1]]
    return _other_than(value, found)


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        near = [value // 2, value + 1] if isinstance(value, int) else [value * 0.5]
        return _other_than(value, [*near, value * 100, None, -value])
    if value is None:
        return [0.5, 0, 1, True, "central"]
    found: list[Any] = [other for alike in ALIKE if value in alike for other in alike]
    found += [*_number_in(value), "", None]
    return _other_than(value, found)


def _number_in(text: str) -> list[str]:
    """A text with the last of its numbers a tenth: "at most epsilon = 4.846" becomes 0.4846."""
    return [
        re.sub(
            r"\d+(\.\d+)?(?!.*\d)", lambda found: f"{float(found[0]) / 10:g}", text, count=1, flags=re.DOTALL
        )
    ]


def _other_than(value: Any, found: Iterable[Any]) -> list[Any]:
    """Those that differ from a value, each once; 1 and 1.0 and true are not the same text."""
    texts = {json.dumps(value)}
    return [one for one in found if not (json.dumps(one) in texts or texts.add(json.dumps(one)))]


def edited(document: Any, changes: Sequence[Edit]) -> Any:
    """A document with edits; what no edit leads through is shared with the original."""
    for change in changes:
        document = _with(document, change.route, change.value)
    return document


def _with(holder: Any, route: Route, value: Any) -> Any:
    if not route:
        return value
    new = holder.copy()
    first, *rest = route
    if rest:
        new[first] = _with(holder[first], tuple(rest), value)
    elif value is GONE:
        del new[first]
    else:
        new[first] = value
    return new


@contextmanager
def words_alone() -> Iterator[None]:
    """Pictures of pages hold their words and no shapes meanwhile: only the words are compared, and shapes are slow."""

    def write(figure: Figure, file: TextIO, **_: Any) -> None:
        for axes in figure.axes:
            axes.get_xticklabels(), axes.get_yticklabels()  # these come to be only now
        shown = (text.get_text() for text in figure.findobj(Text) if text.get_visible())
        file.write(f"<svg>{''.join(f'<text>{html.escape(words)}</text>' for words in shown if words)}</svg>")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", write)
        yield


def printed(
    document: Mapping[str, Any], show: Show | None = None, results: Mapping[str, str] = RESULTS
) -> dict[str, Any]:
    """All that a page, a terminal and `--json` print of a document that is a guarantee, or may be read as one.

    Everything counts that is not named here: measured accuracies and times, and the sections in `results`.

    Args:
        document: As the check gives it.
        show: What prints it to a terminal.
        results: Ids of sections of the page without a guarantee, with the reason.
    """
    page = render(document)
    for section in results:
        heading = r"(?:<summary><h2>[^<]*</h2></summary>\s*)?"
        page = re.sub(rf'{heading}<section id="{section}".*?</section>', "", page, flags=re.DOTALL)
    drawings = [_plain(drawn) for drawn in _DRAWN.findall(page) if "psilon" in drawn]
    words = _DRAWN.sub("", page.partition("<main>")[2])
    for measured in (_EVALUATIONS, _CELL, _TILE, _STATUS):
        words = measured.sub("", words)
    terminal = io.StringIO()
    if show is not None:
        with redirect_stdout(terminal):
            show(document)
    return {
        "page": _plain(words),
        "drawings": drawings,
        "terminal": _QUALITY.sub("#", _AXIS.sub("", terminal.getvalue())),
        "json": list(_guaranteed(document)),
    }


def promised(document: Mapping[str, Any]) -> dict[str, Any]:
    """All that a page has in `PROMISES`, and the JSON of a document that is a guarantee."""
    page = render(document)
    found = (re.findall(rf'<section id="{name}".*?</section>', page, flags=re.DOTALL) for name in PROMISES)
    return {
        "page": [_plain(_DRAWN.sub("", one)) for each in found for one in each],
        "json": [*_guaranteed(document)],
    }


def _plain(markup: str) -> str:
    text = re.sub(r"<style.*?</style>|<[^>]*>", " ", markup, flags=re.DOTALL)
    return _QUALITY.sub("#", _AXIS.sub("", re.sub(r"\s+", " ", html.unescape(text))))


def _guaranteed(value: Any, route: Route = (), inside: bool = False) -> Iterator[tuple[str, Any]]:
    """The leaves of a document below a name of `GUARANTEED`, the scenario's own text aside.

    Of a round there is only its clipping norm, which noisy counts chose: noise is guaranteed in units of it. How
    many guesses were right is measured: what they prove is a leaf of its own.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if (*route, key) not in (("scenario",), ("rounds",)) and key not in ("candidates", "right"):
                yield from _guaranteed(inner, (*route, key), inside or key in GUARANTEED)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _guaranteed(inner, (*route, index), inside)
    elif inside:
        yield place(route), value


class Holder:
    """A record on disk that is edited, and read again by the door that every command goes through."""

    def __init__(self, folder: Path, file: str, show: Show | None, results: Mapping[str, str]) -> None:
        self.folder, self.file = folder, folder / file
        self.show, self.results = show, results
        self.text = self.file.read_text()
        self.document = json.loads(self.text)
        checked = checked_document(folder)
        self.whole, self.promised = printed(checked, show, results), promised(checked)

    def read(self, changes: Sequence[Edit]) -> dict[str, Any] | InputError:
        """The checked document with edits, or why it is refused."""
        self.file.unlink()  # else some file systems wait for the disk at every edit
        self.file.write_text(json.dumps(edited(self.document, changes)))
        try:
            return checked_document(self.folder)
        except InputError as error:
            return error

    def refused(self, change: Edit) -> bool:
        """Whether an edit is refused by a message that names the file and a key."""
        found = self.read([change])
        if not isinstance(found, InputError):
            try:
                page_of(found, str(self.file))
                return False
            except InputError as error:
                found = error
        said = str(found)
        named = re.match(r"(?P<file>.*?\.json): (?:damaged: )?(?P<key>\w+)", said)
        if named and not Path(named["file"]).exists():  # a run of a comparison, by another name
            return True
        known = {*self.document, *(json.loads(Path(named["file"]).read_text()) if named else ())}
        wanted = named and named["key"] in known
        assert wanted or change.route[0] in ("schema", "kind"), f"{change}: names no file and key: {said}"
        assert len(said) < 2000, f"{change}: {said[:2000]}"
        return True

    def _view(self, document: Mapping[str, Any], measured: bool) -> dict[str, Any]:
        return promised(document) if measured else printed(document, self.show, self.results)

    def changed(self, changes: Sequence[Edit], measured: bool = False) -> Iterator[str]:
        """Those of accepted edits, each of another place, that change what is printed, and how it begins."""
        whole = self.promised if measured else self.whole
        found, now = self.read(changes), None
        try:
            if not isinstance(found, InputError):
                now = self._view(found, measured)
        except InputError:  # the page refuses one of them
            pass
        if now == whole or (now is None and len(changes) == 1):
            return
        if len(changes) == 1:
            yield f"{changes[0]}: {_first_difference(whole, now)}"
            return
        half = len(changes) // 2
        yield from self.changed(changes[:half], measured)
        yield from self.changed(changes[half:], measured)


def _first_difference(before: Any, now: Any) -> str:
    """Where two projections part."""
    part = next(key for key in before if before[key] != now[key])
    texts = [str(one[part]) for one in (before, now)]
    at = next(
        (at for at, pair in enumerate(zip(*texts, strict=False)) if len(set(pair)) > 1), min(map(len, texts))
    )
    return f"{part}: {' -> '.join(repr(text[max(0, at - 60) : at + 60]) for text in texts)}"


def hold(
    folder: Path,
    show: Show | None = None,
    *,
    results: Mapping[str, str] | None = None,
    measured: str = "",
    only: str = ".*",
    file: str = "run.json",
    like: Path | None = None,
    every: int = 1,
) -> Tally:
    """Edits a record, one value at a time: each edit is refused, or changes nothing that is guaranteed.

    Args:
        folder: The record; it is restored.
        show: What prints its document to a terminal.
        results: Sections of its page that hold results, beside `RESULTS`.
        measured: Matches the whole of the places (`place`) that hold measured results.
        only: Matches the whole of the places that are edited.
        file: What is edited, seen from the folder.
        like: Another record, all of whose edits are held elsewhere: a value of the kind that it has at the same place
            is edited once, as a value in another row is.
        every: 1 for all edits, n for each n-th of them.

    Raises:
        AssertionError: an edit passes and changes a guarantee, or a refusal names no file and key.
    """
    with words_alone():
        seen: set[Any] = set()
        if like is not None:
            list(edits(json.loads((like / file).read_text()), seen=seen))
        record = Holder(folder, file, show, {**RESULTS, **(results or {})})
        wanted = (
            one
            for one in edits(record.document, seen=seen)
            if re.fullmatch(only, place(one.route), re.DOTALL)
        )
        return _held(record, measured, islice(wanted, 0, None, every))


def _held(record: Holder, measured: str, changes: Iterable[Edit]) -> Tally:
    tally = Tally()
    try:
        for change in changes:
            if record.refused(change):
                tally.refused += 1
            else:
                tally.unchanged.append(change)
        wrong = []
        for of_result in (False, True):
            own = [
                one for one in tally.unchanged if bool(re.fullmatch(measured, place(one.route))) == of_result
            ]
            wrong += [one for group in _apart(own) for one in record.changed(group, of_result)]
    finally:
        record.file.write_text(record.text)
    assert not wrong, f"{len(wrong)} edits change a guarantee: {'; '.join(wrong[:20])}"
    return tally


def _apart(changes: Sequence[Edit]) -> list[list[Edit]]:
    """Edits in groups in which none lies inside another: each group is printed at once, which is quicker."""
    groups: list[tuple[set[Route], set[Route], list[Edit]]] = []  # what they change, and what is above it
    for change in changes:
        above = {change.route[:length] for length in range(len(change.route) + 1)}
        free = (one for one in groups if not (above & one[0] or change.route in one[1]))
        group = next(free, None)
        if group is None:
            group = (set(), set(), [])
            groups.append(group)
        group[0].add(change.route)
        group[1].update(above)
        group[2].append(change)
    return [group for _, _, group in groups]
