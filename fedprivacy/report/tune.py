"""The page of a choice of settings: the result, and its privacy cost beside the naive way."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.guarantees.statement import Guarantee, printed
from fedprivacy.report import page_end, protection, tune_chart, words
from fedprivacy.report.answers import tune as answer
from fedprivacy.report.blocks import Items, Page, Section, Table, Text, Value
from fedprivacy.scenario.tune.grid import words_of

HEAD = ("observer", "the choice, training included", "naive: every candidate released")
HOW = {
    "public": "Each candidate was trained on one half of the public split and scored on the other, with the "
    "noise in the mean update that the clients' own has; the best was then trained on the clients.",
    "exponential": "Each candidate was trained on one half of the public split; the clients' records that it "
    "names rightly chose one by the exponential mechanism, which was then trained on the clients.",
    "random-stopping": "Candidates drawn at random were trained on the clients and scored there, with noise, "
    "a number of times that was drawn too; only the best is told (or that there was none), "
    "and which others were run, or how many, is not.",
}
NAIVE = {
    "public": "naive: each candidate trained on the clients once and released.",
    "exponential": "naive: the clients' scores of each candidate released at the epsilon of the choice, and "
    "each trained on the clients once and released.",
    "random-stopping": "naive: each candidate trained on the clients once, and released with its score.",
}
NO_TRY = (
    ": the Poisson number of tries was 0, by a chance that is the same whatever anybody's records are. To "
    "choose with another seed would be another choice, charged on top of this one."
)


def summary(document: TuneDocument) -> str:
    """The choice and its accuracy, in a sentence."""
    choice = document.choice
    if choice.candidate is None:
        return f"Nothing was chosen{NO_TRY}"
    among = f"one of {len(document.candidates):,} candidates"
    text = f"Chosen, {among}: {words_of(choice.settings)}."
    if choice.accuracy is not None:
        text += f" Accuracy on held-out records: {words.accuracy(choice.accuracy)}."
    if choice.score is not None:
        right = choice.score / choice.clients + 0.5
        text += f" By its noisy score it names {100 * right:.1f} % of the clients' records rightly."
    return text


def rows(document: TuneDocument) -> list[tuple[str, str, str]]:
    """Of each observer the epsilon of the choice and the naive one, under `HEAD`, rounded up."""
    naive = {guarantee.observer: guarantee for guarantee in document.naive.guarantees}
    return [
        (
            guarantee.observer,
            _epsilon(guarantee),
            _epsilon(naive[guarantee.observer]) if guarantee.observer in naive else "-",
        )
        for guarantee in document.privacy.guarantees
    ]


def caption(document: TuneDocument) -> str:
    """The table's caption, with the terms of every epsilon in it."""
    terms = words.terms(document.privacy.guarantees)
    return f"Epsilon of the choice beside the naive one ({NAIVE.get(document.method, '')}) At {terms}."


def page(document: TuneDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The choice, without its operator-only fields.
        error: As of every page; a record of this kind has none.
        command: Whether the operator-only section contains the command that reproduces it.
    """
    guarantees = list(document.privacy.guarantees)
    table = Table(caption(document), HEAD, _entries(document), numeric=frozenset({1, 2}), stacked=True)
    drawn = tune_chart.picture(document, words.terms(guarantees))
    cells = [protection.Protected(Arm("central"), None, guarantees)]
    naive = [guarantee.words for guarantee in document.naive.guarantees if guarantee.words]
    return Page(
        title=page_end.title(document),
        eyebrow="Tuning",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_tune(document, cells),
        lead=[Text(summary(document), "status"), *([drawn] if drawn else []), table],
        sections=[
            Section(
                "candidates", "What was chosen from", [Text(HOW.get(document.method, "")), _grid(document)]
            ),
            Section("guarantees", "Who is protected from whom", protection.blocks(cells, ""), folded=False),
            Section("naive", "What the naive way would guarantee", [Items(naive)]),
            *page_end.closing(document, command=command),
        ],
    )


def _entries(document: TuneDocument) -> list[tuple[Value, ...]]:
    """The rows with how sure each epsilon leaves an attacker."""
    naive = {guarantee.observer: guarantee for guarantee in document.naive.guarantees}
    return [
        (g.observer, protection.spent(g), protection.spent(naive.get(g.observer)))
        for g in document.privacy.guarantees
    ]


def _grid(document: TuneDocument) -> Table:
    public = any(candidate.public_accuracy is not None for candidate in document.candidates)
    head = ("candidate", "settings", *(["accuracy on the public split"] if public else []))
    rows: list[Sequence[Value]] = [
        (
            str(number),
            words_of(candidate.settings),
            *([words.accuracy(candidate.public_accuracy)] if public else []),
        )
        for number, candidate in enumerate(document.candidates)
    ]
    return Table("All candidates.", head, rows, numeric=frozenset({2}) if public else frozenset())


def _epsilon(guarantee: Guarantee) -> str:
    return "none" if guarantee.epsilon is None else printed(guarantee.epsilon)
