"""Terminal output: live progress on stderr, the result on stdout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fedprivacy.io.console import Terminal
from fedprivacy.io.percentages import percent
from fedprivacy.io.waiting import beside_progress
from scenarios.cli.brief import as_clause, shortened, show_brief
from scenarios.cli.display_limits import lines_of_comparison, lines_of_run
from scenarios.cli.display_matrix import Line, show_matrix, with_interval

if TYPE_CHECKING:  # the command starts without what only a result takes
    from fedprivacy.documents.cell import Cell
    from fedprivacy.documents.comparison import CompareDocument
    from fedprivacy.documents.guarantee import PerClient, Privacy
    from fedprivacy.documents.run import RunDocument

Event = dict[str, Any]
WIDE = 100  # columns of a terminal in which a cell of a comparison fits on one line
NOISE = (
    "z: noise multiplier, the standard deviation over the clipping norm (of bands: of what is drawn, before "
    "rounds share it). e: the epsilon of one message alone (sign bits: of one bit)."
)


class _NotedProgress(Progress):
    """Progress with a line of its own below the bar."""

    note = ""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yields the bars, then the note."""
        yield from super().get_renderables()
        if self.note:
            yield Text(self.note)


@contextmanager
def live() -> Iterator[_NotedProgress]:
    """Shows progress on stderr, and above it what takes long; quiet where that is not a terminal."""
    console = Terminal(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # What others print meanwhile is not redirected: rich would read styles out of it.
    progress = _NotedProgress(
        *columns, console=console, transient=True, disable=not console.is_terminal,
        redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
    with progress, beside_progress(console):
        yield progress


@contextmanager
def round_progress(rounds: int, title: str = "accuracy") -> Iterator[Callable[[Event], None]]:
    """Shows the rounds of a run with its headline figure; quiet where stderr is not a terminal."""
    with live() as progress:
        task = progress.add_task("loading PyTorch, calibrating the noise", total=rounds)

        def on_round(event: Event) -> None:
            if progress.disable:
                return
            from fedprivacy.documents.headline import headline
            from fedprivacy.guarantees import so_far

            reached = headline(event)
            quality = "" if reached is None else f", {title} {percent(reached)}"
            progress.note = so_far.message(event)
            progress.update(task, completed=event["round"] + 1, description=f"training{quality}")

        yield on_round


@contextmanager
def job_progress(first: str = "calibrating the noise") -> Iterator[Callable[[str, int, int], None]]:
    """Shows the runs of a job of many; quiet where stderr is not a terminal.

    Args:
        first: What it shows until the first run has ended.
    """
    with live() as progress:
        task = progress.add_task(first, total=None)

        def on_run(label: str, done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, description=f"ran {label}")

        yield on_run


def show_run(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the result of a run in at most six lines; `verbose`: with every assumption."""
    from fedprivacy.documents.kinds import read_whole
    from fedprivacy.documents.redaction import withholds_personal
    from fedprivacy.documents.run import Final, RunDocument
    from fedprivacy.report import budget_groups, majority, personal
    from fedprivacy.report.groups import worst_group

    console, run = Terminal(soft_wrap=True), read_whole(RunDocument, document)
    final, rounds = run.final or Final(), len(run.rounds)
    title = run.primary.title
    quality = f"{title} {_finite(final.accuracy, percent)}, loss {_finite(final.loss, '{:.3f}'.format)}"
    plural = "" if rounds == 1 else "s"
    verdict = majority.of_run(run)
    text = f"{quality} after {rounds} round{plural}{f', {verdict}' if verdict else ''}"
    by_group, worst, of_clients = budget_groups.accuracies(run), worst_group(run), personal.sentence(run)
    text += f"; {by_group}" if by_group else ""
    if of_clients and withholds_personal(document):
        of_clients = f"operator-only: {as_clause(of_clients)}"
    if not verbose:
        notes = [f"operator-only: {missing}"] if (missing := _missing(run)) else []
        notes += [worst] if worst else []
        notes += [of_clients] if of_clients else []
        notes += lines_of_run(run)[:1]  # the sentence; the variants are on the page
        result = "; ".join([text, *map(as_clause, notes)])
        of_groups = [each for group in run.privacy.groups or () for each in group.guarantees]
        show_brief(document, result, run.privacy.guarantees, _by_group(run.privacy), of_groups)
        return
    console.print(Text.assemble((run.name, "bold"), f": {text} ({run.cost})"))
    for line in filter(None, (worst, of_clients)):
        console.print(line)
    listed = [*run.privacy.guarantees, *(g for group in run.privacy.groups or () for g in group.guarantees)]
    for guarantee in listed:
        console.print(f"- {guarantee.words}")
    if run.privacy.per_client:
        console.print(f"- {_of_clients(run.privacy.per_client, run.privacy)}")
    for line in lines_of_run(run):
        console.print(line)
    if missing := _missing(run):
        console.print(f"operator-only: {missing}")
    console.print(f"report: {run.path}/report.html")


def _by_group(privacy: Privacy) -> dict[str, str]:
    """Describes for each observer the epsilon of each group of clients; empty without groups."""
    from fedprivacy.guarantees.statement import printed

    stated: dict[str, list[str]] = {}
    for group in privacy.groups or ():
        for each in group.guarantees:
            if each.holds and each.epsilon is not None:
                stated.setdefault(each.observer, []).append(f"{group.name} {printed(each.epsilon)}")
    return {observer: f"by group: {', '.join(groups)}" for observer, groups in stated.items()}


def _missing(run: RunDocument) -> str:
    """Describes faults of clients, their effect on the estimate, and void rounds; empty without any."""
    faults = Counter[str]()
    for event in run.rounds:
        faults.update(event.faults or {})
    reasons = Counter(event.void_reason for event in run.rounds if event.void_reason)
    parts = [f"{kind} {count:,}" for kind, count in faults.items()]
    if reasons:
        [(reason, _)] = reasons.most_common(1)
        parts.append(f"{reasons.total():,} of {len(run.rounds):,} rounds void, most often: {reason}")
    if not parts:
        return ""
    text = run.estimate["words"] if run.estimate["unbiased"] is False else ""
    return f"{', '.join(parts)}. {text}".strip()


def _of_clients(spent: PerClient, privacy: Privacy) -> str:
    """Describes the spread of epsilon over clients in a sentence."""
    from fedprivacy.guarantees.statement import printed

    clients = sum(group.clients for group in spent.groups)
    return (
        f"A record of the median client costs epsilon = {printed(spent.median)}, of the dearest "
        f"{printed(spent.largest)} ({clients:,} clients; delta = {privacy.delta:g}, unit "
        f"{privacy.unit}, {privacy.adjacency}, against the same observers)."
    )


def _finite(value: float | None, text: Callable[[float], str]) -> str:
    return "not a finite number" if value is None else text(value)


def show_comparison(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Prints the finding of a comparison and its accuracies; `verbose`: every cell with its noise."""
    from fedprivacy.documents.comparison import CompareDocument
    from fedprivacy.documents.kinds import read_whole
    from fedprivacy.report import budget_groups
    from fedprivacy.report.answers.compare import cautions
    from fedprivacy.report.answers.cost_of_privacy import NO_COST

    console, comparison = Terminal(), read_whole(CompareDocument, document)
    plain = Terminal(soft_wrap=True)
    # That nothing was learned comes before the costs.
    lines = filter(None, [comparison.finding, *cautions(comparison)])
    for line in sorted(lines, key=lambda line: not line.endswith(NO_COST)):
        plain.print(line)
    if verbose:
        console.print(_every_cell(comparison, console.width))
    else:
        _show_accuracies(comparison, console, plain)
    by_group = budget_groups.lines_of_comparison(comparison)
    for line in [*by_group, *lines_of_comparison(comparison), *optional(comparison), *varied(comparison)]:
        plain.print(line)
    if verbose:
        plain.print(NOISE)
    plain.print(caution(comparison))
    plain.print(comparison.cost)
    plain.print(f"report: {comparison.path}/report.html")


def _show_accuracies(comparison: CompareDocument, console: Terminal, plain: Terminal) -> None:
    """Prints the accuracy of each arm at each epsilon, and that of the cells without one."""
    several = len(_units(comparison)) > 1
    arms: dict[str, dict[float, str]] = {}
    without = []
    for cell in comparison.cells:
        name, figure = ", ".join(_named(cell, several)), with_interval(cell.accuracy, scale=100)
        if cell.epsilon is None:
            without.append(f"{'no noise' if name == 'none' else name} {figure}")
        else:
            arms.setdefault(name, {})[cell.epsilon] = figure
    interval = any(cell.accuracy.interval is not None for cell in comparison.cells)
    title = comparison.primary.title
    what = f"{title[:1].upper()}{title[1:]} in %, {'± 95 % interval' if interval else 'of one seed'}"
    plain.print(f"{what}{''.join(f'; {text}' for text in without)}")
    lines, rest = shortened([Line(name, cells) for name, cells in arms.items()], verbose=False)
    show_matrix(lines, console)
    if rest:
        plain.print(rest)


def _every_cell(comparison: CompareDocument, width: int) -> Table:
    from fedprivacy.mechanisms.registry import title
    from fedprivacy.report import words

    then = ", " if width >= WIDE else ",\n"
    several = len(_units(comparison)) > 1
    table = Table()
    for name in ("trust", "epsilon", comparison.primary.title, "95 % interval"):
        table.add_column(name, no_wrap=True)
    table.add_column("mechanism and noise")
    table.add_column("rounds", justify="right", no_wrap=True)
    for cell in comparison.cells:
        accuracy = cell.accuracy
        ends = accuracy.interval
        table.add_row(
            then.join(_named(cell, several)),
            "none" if cell.epsilon is None else f"{cell.epsilon:g}",
            words.accuracy(accuracy.mean),
            "one seed" if ends is None else words.share_interval(*ends),
            "-" if cell.noise is None else f"{title(str(cell.mechanism))}{then}{_short(cell.noise)}",
            str(cell.rounds),
        )
    return table


def _named(cell: Cell, several: bool) -> list[str]:
    """Returns the trust model, the unit where several are compared, and the mechanism of a cell."""
    unit = cell.unit if several and cell.trust != "none" else None
    return [part for part in (cell.trust, unit, cell.asked) if part]


def _units(comparison: CompareDocument) -> list[str]:
    """Returns the units of privacy of the cells with noise."""
    units = (cell.unit for cell in comparison.cells if cell.trust != "none")
    return list(dict.fromkeys(unit for unit in units if unit))


def _short(noise: str) -> str:
    """Abbreviates the noise of a cell as `NOISE` explains, such as `z = 4.859`."""
    text = noise.replace("noise multiplier", "z =").replace("epsilon", "e =")
    return text.removesuffix(" a message").removesuffix(" a bit")


def varied(comparison: CompareDocument) -> list[str]:
    """Returns a line for each varied setting: the accuracy at each of its values."""
    from fedprivacy.report.words import accuracy

    varied_settings: dict[str, list[str]] = {}
    for cell in comparison.variations:
        setting = cell.varied
        cell_text = f"{setting.key} at epsilon {cell.epsilon:g}, {cell.trust}"
        varied_settings.setdefault(cell_text, []).append(f"{setting.value}: {accuracy(cell.accuracy.mean)}")
    return [f"{setting}: {', '.join(values)}" for setting, values in varied_settings.items()]


def optional(comparison: CompareDocument) -> list[str]:
    """Returns a line for each option: the points of accuracy that it adds at each epsilon."""
    optional_settings: dict[str, list[str]] = {}
    for cell in comparison.options:
        gap = cell.difference
        if gap is not None:
            ends = "" if gap.low is None else f" ({gap.low:+.1f} to {gap.high:+.1f})"
            optional_settings.setdefault(cell.option, []).append(
                f"{gap.points:+.1f}{ends} at {cell.epsilon:g}"
            )
    head = f"Options: points of {comparison.primary.title} more than without (95 % interval), at each epsilon"
    return (
        [head, *(f"  {name}: {', '.join(gaps)}" for name, gaps in optional_settings.items())]
        if optional_settings
        else []
    )


def caution(comparison: CompareDocument) -> str:
    """States what equal epsilon does not imply, and the terms of every epsilon in the table."""
    privacy, units = comparison.scenario["privacy"], _units(comparison)
    promise = (
        " Nor is it an equal promise: unit example protects one record, unit client all records of a client."
        if len(units) > 1
        else ""
    )
    shared = any(cell.trust == "distributed" for cell in comparison.cells)
    of_sums = "distributed against one that sees the secure sum alone, " if shared else ""
    return (
        f"Epsilon at delta = {privacy['delta']:g}, unit {' or '.join(units) or privacy['unit']}, "
        f"adjacency {privacy['adjacency']}. Equal epsilon is not equal observer: local holds against the "
        f"server itself, {of_sums}central only against participants and outsiders, behind a trusted server."
        f"{promise}"
    )


def show_budget(document: Mapping[str, Any]) -> None:
    """Prints a budget in words, after its table if it has one."""
    from fedprivacy.guarantees.statement import printed

    def cell(value: object) -> str:
        return "-" if value is None else printed(value) if isinstance(value, float) else str(value)

    if rows := document.get("table"):
        table = Table()
        for index, column in enumerate(rows[0]):
            table.add_column(column.replace("_", " "), no_wrap=index == 0)
        for row in rows:
            table.add_row(*(cell(value) for value in row.values()))
        Terminal().print(table)
    print(document["words"])
