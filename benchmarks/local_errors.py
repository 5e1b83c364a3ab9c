"""The error of each local mechanism's messages, by formula and measured.

    python -m benchmarks.local_errors --out DIR

Mean squared error per coordinate of one message, for updates of norm C = 1, in two tables: over
epsilon for one answer of each client, and over the number of answers at one total epsilon. Every
mechanism is calibrated as a run calibrates it (`fedprivacy.plan.mechanism_search`). Beside it stand published
or known figures of the same mechanism, or of the nearest one where ours differs, which `NOTES` says.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.local_error_row import Row
from benchmarks.local_errors_plot import draw
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LocalMechanism
from fedprivacy.mechanisms.signs import SignBits
from fedprivacy.plan.mechanism_search import calibrated, message_errors
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling

DELTA = 1e-5
DIMENSIONS = (650, 1000)  # logistic regression on 8 x 8 digits; the dimension of the reference for sign bits
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
ANSWERS, TOTALS = (10, 100), (8.0, 1.0)  # how often each client answers, at which total epsilons
PER_BIT = "sign-bits, epsilon/d a bit"  # no accountant: the plain sum of d budgets

# (mechanism, answers) -> epsilon -> the error that is known; of sign bits at dimension 1000 alone.
REFERENCE: dict[tuple[str, int], dict[float, float]] = {
    ("gaussian", 1): {1: 55.7, 2: 15.9, 4: 4.68, 8: 1.44, 16: 0.474},
    ("gaussian", 10): {1: 557, 8: 14.4},  # 23.6 and 3.80 squared
    ("gaussian", 100): {1: 5565, 8: 144},
    ("privunit", 1): {1: 6.33, 2: 1.62, 4: 0.435, 8: 0.133, 16: 0.048},
    ("privunit", 10): {8: 9.86},
    ("privunit", 100): {8: 174},
    ("sqkr", 1): {1: 37.5, 2: 10.6, 4: 3.37, 8: 1.18, 16: 0.470},
    (PER_BIT, 1): {1: 64000, 16: 250},
}
NOTES = {
    "gaussian": f"delta = {DELTA:g}",
    "privunit": "PrivUnitG. The known figure for 100 answers, 174, is the error at epsilon 0.19 an answer; "
    f"exact composition at delta = {DELTA:g} allows 0.1696, which gives 218",
    "sqkr": "another mechanism than the reference: a random rotation cut at 2.5 standard deviations, "
    "where that has a Kashin frame",
    "sign-bits": f"bits composed by an accountant, delta = {DELTA:g}",
    PER_BIT: "not for use: what composing the bits saves",
}


def rows(dimensions: Sequence[int], epsilons: Sequence[float], messages: int) -> list[Row]:
    """Both tables: one answer at each epsilon, then several answers at each total epsilon."""
    cases = [(d, 1, epsilon) for d in dimensions for epsilon in epsilons]
    cases += [(d, answers, total) for d in dimensions for total in TOTALS for answers in ANSWERS]
    return [row for d, answers, epsilon in cases for row in _rows(d, answers, epsilon, messages)]


def mechanisms(dimension: int, answers: int, epsilon: float) -> dict[str, LocalMechanism]:
    """Every mechanism as a run with this budget has it."""
    plan = Plan(
        trust="local",
        unit="client",
        adjacency="replace-one",
        population=1000,
        rounds=answers,
        sampler=AllSampling(),
        mechanism=Gaussian(1.0, 1.0),
        delta=DELTA,
        max_participations=answers,
        noise_draw="client",
    )
    by_name: dict[str, LocalMechanism] = {}
    for name, plan_or_reason in calibrated(plan, epsilon, dimension, "lifted").items():
        if isinstance(plan_or_reason, Plan) and plan_or_reason.randomiser is not None:
            by_name[name] = plan_or_reason.randomiser
    if answers == 1:
        by_name[PER_BIT] = SignBits(1.0, epsilon / dimension, dimension)
    return by_name


def _rows(dimension: int, answers: int, epsilon: float, messages: int) -> list[Row]:
    results = []
    for name, mechanism in mechanisms(dimension, answers, epsilon).items():
        errors = message_errors(mechanism, dimension, messages)
        measured = float(errors.mean())
        reference = REFERENCE.get((name, answers), {}).get(epsilon)
        if name == PER_BIT and dimension != 1000:
            reference = None
        results.append(
            Row(
                dimension,
                answers,
                epsilon,
                name,
                mechanism.error(dimension),
                measured,
                float(errors.std(ddof=1)) / math.sqrt(messages),
                reference,
                None if reference is None else measured / reference,
            )
        )
    return results


def write(rows: Sequence[Row], messages: int, folder: Path) -> None:
    """Writes the rows as local_errors.csv and .json, and the picture as .svg and .png."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "local_errors.csv", "w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, [field.name for field in fields(Row)])
        table.writeheader()
        table.writerows(asdict(row) for row in rows)
    document = {"schema": 1, "delta": DELTA, "messages": messages, "notes": NOTES}
    text = json.dumps({**document, "rows": [asdict(row) for row in rows]}, indent=1)
    (folder / "local_errors.json").write_text(text + "\n", encoding="utf-8")
    draw(rows, TOTALS[0], folder / "local_errors")


def show(rows: Sequence[Row], messages: int) -> None:
    """Prints the rows as a table, and what has to be known of them."""
    what = f"Mean squared error per coordinate of a message, {messages} messages of norm 1 each"
    table = Table(title=f"{what}; ratio: measured / known")
    for name in ("d", "answers", "epsilon", "mechanism"):
        table.add_column(name, justify="left" if name == "mechanism" else "right", no_wrap=True)
    for name in ("predicted", "measured", "± s.e.", "known", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        about = (f"{row.dimension}", f"{row.answers}", f"{row.epsilon:g}", row.mechanism)
        numbers = (row.predicted, row.measured, row.standard_error, row.reference)
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}" + ("*" if row.mechanism == "sqkr" else "")
        table.add_row(*about, *map(_number, numbers), ratio, end_section=not after or row.differs(after))
    console = Console(highlight=False, width=max(Console().width, 110))  # never too narrow for the figures
    console.print(table)
    for name, note in NOTES.items():
        console.print(f"{'* ' if name == 'sqkr' else ''}{name}: {note}.")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main(
    out: Annotated[Path, typer.Option(help="Where the table and the picture go.")],
    messages: Annotated[int, typer.Option(min=2, help="Messages drawn for each error.")] = 1000,
    dimension: Annotated[list[int] | None, typer.Option(min=1, help="The numbers of an update.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(min=0.1, help="The budgets.")] = None,
) -> None:
    """Measures the error of every local mechanism and compares it with its formula and known figures."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"{out}: {error.strerror}. Choose a folder that you may write to."
        ) from error
    results = rows(dimension or DIMENSIONS, epsilon or EPSILONS, messages)
    show(results, messages)
    write(results, messages, out)


if __name__ == "__main__":
    typer.run(main)
