"""Clients trained per second beside pfl-research and Flower on Ray, on the same work.

    python -m benchmarks.against_peers --peers PYTHON --bench FOLDER [--append docs/speed.md]

PYTHON is the interpreter of an environment with both peers, and FOLDER has the scripts that measure them.
Every figure is of a process of its own, and the simulators alternate: each turn measures, for each work and
cohort, ours (`benchmarks.cohort`), pfl-research with one process a core, and Flower on Ray; every second
turn reverses the order. A ratio is one of medians over the turns, printed with the smallest and the largest
ratio of a turn.

Processor, versions and the rate of matrix products are printed beside the ratios. `--append` adds the rows to
the table of a Markdown file, from three turns on.

Flower on Ray takes very long with 1000 nodes. Its cohort is at most `--flower-cohort`, its rounds are
fewer, and ours, with the whole cohort, is compared with that.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.cohort import COHORTS, COUNTED, SHARE, WORKS
from benchmarks.machine import Machine, check_device, versions_in
from benchmarks.peers import PEERS, Measurement, PeerError, run
from benchmarks.speed_table import LEAST_TURNS, MARK, append, lines
from benchmarks.workload import CORES

# Times the peer's clients per second, to reach with the largest cohort.
TARGETS = {
    ("lr", "pfl"): 60.0,
    ("lr", "flower"): 1000.0,
    ("mlp", "pfl"): 9.0,
    ("mlp", "flower"): 100.0,
    ("cnn", "pfl"): 3.0,
    ("cnn", "flower"): 5.0,
}
GPU_TARGETS = {("cnn", "pfl"): 20.0}  # on one GPU


@dataclass(frozen=True)
class Setting:
    """The settings of all measurements.

    Args:
        python: The interpreter that has the peers.
        bench: The folder of their scripts.
        peers: Their names in `PEERS`.
        turns: How often each is measured.
        rounds: How many are timed.
        warmup: How many come before them.
        flower_cohort: The most clients of a round of Flower on Ray.
        flower_rounds: How many of its rounds are timed.
        workers: Processes that train.
        device: Where, "cpu" or "cuda".
    """

    python: Path
    bench: Path
    peers: Sequence[str]
    turns: int
    rounds: int
    warmup: int
    flower_cohort: int
    flower_rounds: int
    workers: int
    device: str

    def request(self, peer: str, work: str, cohort: int) -> Measurement:
        """The request to a peer."""
        if peer == "flower":
            cohort = min(cohort, self.flower_cohort)
            return Measurement(work, cohort, self.flower_rounds, min(self.warmup, 2), self.workers)
        return Measurement(work, cohort, self.rounds, self.warmup, self.workers, self.device)


@dataclass(frozen=True)
class Row:
    """One work and cohort beside one peer.

    Args:
        work: "lr", "mlp" or "cnn".
        cohort: The clients of our rounds.
        peer: Its name in `PEERS`.
        peer_cohort: The clients of its rounds.
        ours: Our clients per second, of each turn.
        theirs: The peer's; None where it failed.
        errors: Why it failed.
        device: Where both trained, "cpu" or "cuda".
    """

    work: str
    cohort: int
    peer: str
    peer_cohort: int
    ours: tuple[float, ...]
    theirs: tuple[float | None, ...]
    errors: tuple[str, ...] = ()
    device: str = "cpu"

    @property
    def ratios(self) -> list[float]:
        """Of each turn in which the peer did not fail."""
        return [ours / other for ours, other in zip(self.ours, self.theirs, strict=True) if other is not None]

    @property
    def speed(self) -> float | None:
        """The peer's median clients per second; None if it always failed."""
        known = [other for other in self.theirs if other is not None]
        return statistics.median(known) if known else None

    @property
    def ratio(self) -> float | None:
        """The ratio of the medians; None if the peer always failed."""
        return None if self.speed is None else statistics.median(self.ours) / self.speed

    @property
    def target(self) -> float | None:
        """The target ratio; None without a target."""
        targets = TARGETS if self.device == "cpu" else GPU_TARGETS
        return targets.get((self.work, self.peer)) if self.cohort == COHORTS[-1] else None

    @property
    def reached(self) -> bool:
        """Whether the ratio reaches its target; None without a target."""
        return self.target is None or (self.ratio is not None and self.ratio >= self.target)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        row = {"speed": self.speed, "ratio": self.ratio, "ratios": self.ratios, "target": self.target}
        return asdict(self) | row


def ours(work: str, cohort: int, setting: Setting) -> dict[str, Any]:
    """The row of `cohort` that a process of its own measured.

    Raises:
        PeerError: if it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "row.json"
        command = [sys.executable, "-m", "benchmarks.cohort", "--work", work, "--cohort", str(cohort)]
        command += ["--workers", str(setting.workers), "--rounds", str(setting.rounds)]
        command += ["--device", setting.device]
        command += ["--warmup", str(setting.warmup), "--json", str(file)]
        try:
            run(command, "ours", Path(__file__).parents[1])
        except PeerError:
            if not file.exists():  # it says by its exit code, too, that a target was missed
                raise
        row: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["rows"][0]
        return row


def measure(
    works: Sequence[str], cohorts: Sequence[int], setting: Setting
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Every work and cohort beside every peer; and the rows of ours, turn by turn."""
    places = [(work, cohort) for work in works for cohort in cohorts]
    measured: dict[tuple[str, int], list[dict[str, Any]]] = {place: [] for place in places}
    theirs: dict[tuple[str, int, str], list[float | str]] = {
        (*place, peer): [] for place in places for peer in setting.peers
    }
    for turn in range(setting.turns):
        for work, cohort in places:
            order = ["ours", *setting.peers]
            for name in order if turn % 2 == 0 else reversed(order):
                print(f"turn {turn + 1}: {work}, cohort {cohort}, {name}", file=sys.stderr)
                if name == "ours":
                    measured[work, cohort].append(ours(work, cohort, setting))
                    continue
                request = setting.request(name, work, cohort)
                try:
                    figure: float | str = PEERS[name].measure(setting.python, setting.bench, request)
                except PeerError as error:
                    figure = str(error)
                theirs[work, cohort, name].append(figure)
    rows = []
    for (work, cohort, peer), figures in theirs.items():
        rows.append(
            Row(
                work,
                cohort,
                peer,
                setting.request(peer, work, cohort).cohort,
                tuple(row["clients_per_second"] for row in measured[work, cohort]),
                tuple(None if isinstance(figure, str) else figure for figure in figures),
                tuple(figure for figure in figures if isinstance(figure, str)),
                setting.device,
            )
        )
    return rows, [row for group in measured.values() for row in group]


def show(rows: Sequence[Row], measured: Sequence[Mapping[str, Any]], machine: Machine) -> None:
    """Prints the rows as a table, the machine, and what has to be known of them."""
    table = Table(title="Clients trained per second, ratio: ours / theirs, of medians")
    for name in ("work", "cohort", "peer", "its cohort", "ours", "theirs", "ratio", "of a turn", "to reach"):
        table.add_column(name, justify="left" if name in ("work", "peer") else "right", no_wrap=True)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        failed = row.ratio is None or row.speed is None
        table.add_row(
            row.work,
            f"{row.cohort:,}",
            PEERS[row.peer].title,
            f"{row.peer_cohort:,}",
            f"{statistics.median(row.ours):,.0f}",
            "failed" if row.speed is None else f"{row.speed:,.1f}",
            "" if row.ratio is None else f"{row.ratio:,.3g}",
            "" if failed else f"{min(row.ratios):,.3g} to {max(row.ratios):,.3g}",
            "" if row.target is None else f"{row.target:,.3g}",
            end_section=after is None or after.work != row.work,
        )
    console = Console(highlight=False, width=max(Console().width, 110))
    console.print(table)
    console.print(f"{escape(machine.processor)}, {machine.cores} cores; {escape(machine.libraries)}.")
    for name in dict.fromkeys(row["work"] for row in measured):
        rates = [row["products"] / 1e9 for row in measured if row["work"] == name]
        console.print(
            f"Matrix products beside {name}: {statistics.median(rates):,.0f} GFLOP/s "
            f"({min(rates):,.0f} to {max(rates):,.0f})."
        )
    for cohort in sorted({row["cohort"] for row in measured if row["work"] == COUNTED}):
        shares = [row["share"] for row in measured if (row["work"], row["cohort"]) == (COUNTED, cohort)]
        aim = f", to reach {SHARE:.0%}" if cohort == COHORTS[-1] else ""
        console.print(
            f"{COUNTED}, cohort {cohort}: {statistics.median(shares):.0%} of the rate of matrix products "
            f"({min(shares):.0%} to {max(shares):.0%}){aim}."
        )
    for row in rows:
        if row.peer_cohort != row.cohort:
            console.print(f"{row.work}, cohort {row.cohort}: {PEERS[row.peer].title} had {row.peer_cohort}.")
        for error in row.errors:
            console.print(f"{row.work}, cohort {row.cohort}: {escape(error)}")


def main(
    peers: Annotated[Path, typer.Option(help="The interpreter that has the peers.")],
    bench: Annotated[Path, typer.Option(help="The folder of the scripts that measure them.")],
    peer: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PEERS)}.")] = None,
    work: Annotated[list[str] | None, typer.Option(help=f"{', '.join(WORKS)}.")] = None,
    cohort: Annotated[list[int] | None, typer.Option(min=1, max=1000, help="Clients of a round.")] = None,
    turns: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="How many are timed.")] = 10,
    warmup: Annotated[int, typer.Option(min=1, help="How many come before them.")] = 3,
    flower_cohort: Annotated[int, typer.Option(min=1, help="The most clients of a Flower round.")] = 100,
    flower_rounds: Annotated[int, typer.Option(min=1, help="Rounds of Flower that are timed.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="Processes that train; one a core.")] = CORES,
    device: Annotated[
        Literal["cpu", "cuda"], typer.Option(help='"cuda": beside pfl on the same GPU, one process each.')
    ] = "cpu",
    file: Annotated[Path | None, typer.Option("--json", help="Where the figures go as JSON.")] = None,
    table: Annotated[Path | None, typer.Option("--append", help="A Markdown file with the table.")] = None,
) -> None:
    """Measures training beside the peers; ends with exit code 1 where a target is missed or a peer failed."""
    for given, known, hint in ((peer, PEERS, "--peer"), (work, WORKS, "--work")):
        if unknown := sorted(set(given or ()) - set(known)):
            raise typer.BadParameter(f"{', '.join(unknown)}: none of {', '.join(known)}.", param_hint=hint)
    check_device(device)
    names = peer or (list(PEERS) if device == "cpu" else ["pfl"])
    figures = (turns, rounds, warmup, flower_cohort, flower_rounds, workers)
    setting = Setting(peers, bench, names, *figures, device)
    if device == "cuda" and "flower" in setting.peers:
        raise typer.BadParameter("Flower on Ray is measured on the CPU alone.", param_hint="--peer")
    try:
        for name in setting.peers:
            PEERS[name].check(peers, bench)
    except PeerError as error:
        raise typer.BadParameter(str(error), param_hint="--peers, --bench") from error
    if table is not None and turns < LEAST_TURNS:
        raise typer.BadParameter(
            f"the table has medians of at least {LEAST_TURNS} turns.", param_hint="--turns"
        )
    if table is not None and (not table.is_file() or MARK not in table.read_text(encoding="utf-8")):
        raise typer.BadParameter(f"{table} is no file with the line {MARK!r}.", param_hint="--append")
    libraries = [module for name in setting.peers for module in PEERS[name].modules]
    versions = versions_in(peers, ["torch", *libraries])
    machine = Machine.of(workers if device == "cpu" else 1, versions, device)
    rows, measured = measure(work or list(WORKS), cohort or COHORTS, setting)
    show(rows, measured, machine)
    if table is not None:
        append(table, lines(rows, measured, machine, {name: peer.title for name, peer in PEERS.items()}))
    if file is not None:
        head = {"schema": 2, "machine": asdict(machine), "turns": turns}
        document = {**head, "rows": [row.to_json() for row in rows], "ours": measured}
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if less := [f"{row.work} beside {PEERS[row.peer].title}" for row in rows if not row.reached]:
        print(f"Slower than aimed at: {'; '.join(less)}.")
    if less or any(row.errors for row in rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
