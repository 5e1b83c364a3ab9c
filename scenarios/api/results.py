"""Results as Python objects: tables as DataFrames, and each guarantee by its observer."""

from __future__ import annotations

import copy
import html
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fedprivacy.documents.headline import headline, primary_of
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.redaction import for_operator, measured_on_clients, public, withholds_truth
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from fedprivacy.io.percentages import percent
from scenarios.stored import tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Guarantee:
    """A bound on what one observer can learn, with the terms that an epsilon needs to be meaningful.

    Attributes:
        observer: "server", "participant" or "outsider".
        epsilon: None where nothing is guaranteed; the assumptions then give the reason.
        words: All of it as a sentence.
    """

    observer: str
    epsilon: float | None
    delta: float | None
    unit: str
    adjacency: str
    trust: str
    sampling: str
    rounds: int
    accountant: str | None
    assumptions: tuple[str, ...]
    words: str

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Guarantee:
        """Returns a guarantee of a result document."""
        fields = {name: stored[name] for name in cls.__dataclass_fields__ if name != "assumptions"}
        return cls(**fields, assumptions=tuple(stored["assumptions"]))

    def __str__(self) -> str:
        """Returns the guarantee as a sentence."""
        return self.words


class Guarantees(Mapping[str, Guarantee]):
    """Guarantees by observer: `result.guarantees["participant"]`."""

    def __init__(self, stored: Sequence[Mapping[str, Any]]) -> None:
        self._by_observer = {each["observer"]: Guarantee.of(each) for each in stored}

    def __getitem__(self, observer: str) -> Guarantee:
        if observer not in self._by_observer:
            raise KeyError(f"{observer}: no such observer. There are: {', '.join(self._by_observer)}.")
        return self._by_observer[observer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_observer)

    def __len__(self) -> int:
        return len(self._by_observer)

    def __repr__(self) -> str:
        """Returns a line for each observer."""
        return "\n".join(f"{name}: {_short(each)}" for name, each in self._by_observer.items())


def _short(guarantee: Guarantee) -> str:
    if guarantee.epsilon is None:
        return f"no guarantee ({guarantee.assumptions[0]})"
    return (
        f"epsilon = {printed(guarantee.epsilon)} at delta = {guarantee.delta:g}, unit {guarantee.unit}, "
        f"{guarantee.adjacency}"
    )


class Result:
    """The result of a simulation, as its run directory holds it.

    The object is the operator's: `document`, tables, figures and single values are complete. What it displays
    by itself, or writes for others, is public.

    Attributes:
        document: The whole result document (run.json).
    """

    kind: ClassVar[str]

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def path(self) -> Path:
        """The run directory."""
        return Path(self.document["path"])

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return str(self.document["name"])

    @property
    def status(self) -> str:
        """How it ended: "finished", "interrupted" or "failed"."""
        return str(self.document["status"])

    @property
    def report(self) -> Path:
        """The offline report page."""
        return self.path / "report.html"

    @property
    def scenario(self) -> Any:
        """The scenario, complete; `scenario.to_toml()` is the file that gives the same bits."""
        from fedprivacy.scenario.loading import load

        return load(self.path / "scenario.toml")

    @cached_property
    def table(self) -> pd.DataFrame:
        """The figures as a table."""
        import pandas as pd

        return with_numbers(pd.DataFrame(self._rows()))

    def _rows(self) -> list[dict[str, Any]]:
        return tables.main_table(self.document)

    def to_dict(self, *, operator: bool = False) -> dict[str, Any]:
        """Returns the result document as `--json` prints it: without operator-only values.

        Args:
            operator: Whether it has seed, command, times and all other operator-only values too.
        """
        shown = copy.deepcopy(self.document) if operator else public(self.document)
        return {**shown, "path": str(self.path)}

    def export(self, folder: str | Path = ".", *, format: str = "csv", operator: bool = False) -> list[Path]:
        """Writes the tables of the stored result, as `fedprivacy export` does: public values only.

        Args:
            folder: The folder of the files.
            format: "csv" or "parquet".
            operator: Whether operator-only values are exported, to files whose names say so.

        Returns:
            The files.

        Raises:
            InputError: if the record contradicts itself, or a file exists or cannot be written.
        """
        from scenarios.stored.export import export

        return export(self.path, Path(folder), format, operator=operator)

    @cached_property
    def _public(self) -> dict[str, Any]:
        """What may be displayed: a notebook keeps it, and is passed on."""
        return public(self.document)

    def _lines(self) -> list[str]:
        """Returns the public sentences that go above the table."""
        finding = self._public.get("finding")
        return [finding] if finding else []

    def __repr__(self) -> str:
        """Returns name, status, public figures and where the report is."""
        lines = [f"{self._public['name']} ({self.kind}, {self.status})"]
        if for_operator(self.document):
            lines.append("results: operator-only, since an account is charged for them; see .table")
        else:
            lines += self._lines()
        if measured_on_clients(self.document):
            lines.append("accuracy: operator-only, since held-out records belong to clients; see .table")
        if withholds_truth(self.document):
            lines.append("true values and errors: operator-only, since the records are of people; see .table")
        folder = Path(self.path.name) if self.path.is_absolute() else self.path
        return "\n".join([*lines, f"report: {folder / 'report.html'}"])

    def _repr_html_(self) -> str:
        """Shows the public result in a notebook."""
        import pandas as pd

        from scenarios.stored.export import public_tables  # which imports torch

        first, *others = repr(self).split("\n")
        items = "".join(f"<li>{html.escape(line)}</li>" for line in others)
        table = with_numbers(pd.DataFrame(next(iter(public_tables(self.document).values()), [])))
        shown = table.head(30).to_html(index=False, border=0, float_format="{:.4g}".format, na_rep="")
        return f"<p><b>{html.escape(first)}</b></p><ul>{items}</ul>{shown}"


class Run(Result):
    """The result of one training run."""

    kind = "run"

    @cached_property
    def guarantees(self) -> Guarantees:
        """The guarantee against each observer."""
        return Guarantees(self.document["privacy"]["guarantees"])

    @cached_property
    def budget_groups(self) -> dict[str, Guarantees]:
        """The guarantees of each group of clients with a budget of its own, by name; empty without any."""
        groups = self.document["privacy"].get("groups") or ()
        return {group["name"]: Guarantees(group["guarantees"]) for group in groups}

    @property
    def accuracy(self) -> float | None:
        """The accuracy after the last round, on the held-out records; None for a model of no classes."""
        final = self.document["final"]
        return None if final is None else final["accuracy"]

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """A row for each round: accuracy, loss, and the epsilon so far against each observer.

        An epsilon so far bounds the releases up to a round that was chosen beforehand. It is NaN where there
        is no guarantee. In runs of more than 64 rounds it is that of the next of 64 rounds, which is no less.
        """
        return self.table

    @cached_property
    def groups(self) -> pd.DataFrame:
        """A row for each group of `evaluation.groups`: its accuracy with interval, its gap to the best."""
        import pandas as pd

        return with_numbers(pd.DataFrame(tables.groups(self.document)))

    @property
    def score(self) -> float | None:
        """The primary metric after the last round: accuracy, or R2 of numbers, or accuracy of labels."""
        final = self.document["final"]
        return None if final is None else headline(final)

    @property
    def measures(self) -> dict[str, float | None]:
        """The other metrics of the final model by name, such as F1 of classes, or RMSE of numbers."""
        return dict((self.document["final"] or {}).get("measures") or {})

    def _lines(self) -> list[str]:
        reached, title = headline(self._public["final"] or {}), primary_of(self._public["scenario"]).title
        quality = "" if reached is None else f"{title} {percent(reached)} after "
        rounds = len(self.document["rounds"])
        return [
            f"{quality}{rounds} round{'' if rounds == 1 else 's'}",
            *repr(self.guarantees).split("\n"),
        ]


class Comparison(Result):
    """The result of a comparison of trust models."""

    kind = "compare"

    @cached_property
    def groups(self) -> pd.DataFrame:
        """A row for each group of `evaluation.groups` in each cell; intervals are over the seeds."""
        import pandas as pd

        return with_numbers(pd.DataFrame(tables.groups(self.document)))

    def figure(self) -> Figure:
        """Draws the headline figure against epsilon, a line for each arm, with epsilon's terms."""
        table = self.table
        reached = "score" if "score" in table else "accuracy"
        figure, axes = _axes("epsilon", primary_of(self.document["scenario"]).title)
        private = table[table["trust"] != "none"]
        groups = private.groupby(["trust", "unit", "mechanism"], dropna=False, sort=False)
        for mark, ((trust, unit, mechanism), lines) in zip(_marks(), groups, strict=False):
            lines = lines.sort_values("epsilon")
            label = ", ".join(str(part) for part in (trust, unit, mechanism) if part == part and part)
            axes.plot(lines["epsilon"], lines[reached], marker=mark, label=label)
            if lines["low"].notna().all():
                axes.fill_between(
                    lines["epsilon"], lines["low"].astype(float), lines["high"].astype(float), alpha=0.15
                )
        for at, (_, row) in enumerate(table[table["trust"] == "none"].iterrows()):
            label = "no privacy" if at == 0 else "no privacy, clipped"
            axes.axhline(row[reached], linestyle="--" if at == 0 else ":", color="gray", label=label)
        axes.set_xscale("log")
        held = [(cell["trust"], each) for cell in self.document["cells"] for each in cell["guarantees"]]
        _state_terms(axes, held)
        axes.legend()
        return figure


class StatisticsRun(Result):
    """The released statistics of one run."""

    kind = "statistics"

    @cached_property
    def guarantees(self) -> Guarantees:
        """The guarantee against each observer."""
        return Guarantees(self.document["privacy"]["guarantees"])

    def _lines(self) -> list[str]:
        return repr(self.guarantees).split("\n")


class StatisticsComparison(Result):
    """The errors of released statistics under several trust models."""

    kind = "compare-statistics"


class Estimates(Result):
    """The excess losses of private estimates (ERM)."""

    kind = "erm"


class Replay(Result):
    """The results of attacks, beside the bounds that the guarantees give."""

    kind = "replay"

    def _lines(self) -> list[str]:
        verdict = self._public.get("verdict")
        return [verdict["words"]] if verdict else []

    @property
    def roc_points(self) -> pd.DataFrame:
        """The points of every ROC curve: attack, seat, trust, epsilon, run, fpr, tpr."""
        import pandas as pd

        return pd.DataFrame(tables.roc_points(self.document), columns=list(tables.ROC_COLUMNS))

    def roc(self, *attacks: str) -> Figure:
        """Draws ROC curves, with the terms of their epsilons.

        Args:
            attacks: The names of attacks; without any all of them.

        Raises:
            InputError: if there is no such attack.
        """
        points = self.roc_points
        known = list(dict.fromkeys(points["attack"]))
        if unknown := [name for name in attacks if name not in known]:
            raise InputError(f"{unknown[0]}: no such attack. Choose one of: {', '.join(known)}.")
        if attacks:
            points = points[points["attack"].isin(attacks)]
        figure, axes = _axes("false positive rate", "true positive rate")
        groups = points.groupby(["attack", "seat", "trust", "epsilon"], dropna=False, sort=False)
        for mark, ((attack, seat, trust, epsilon), curves) in zip(_marks(), groups, strict=False):
            terms = f"trust {trust}" if epsilon != epsilon else f"trust {trust}, epsilon {epsilon:g}"
            for run, curve in curves.groupby("run"):
                label = f"{attack} ({seat}, {terms})" if run == 0 else None
                axes.plot(curve["fpr"], curve["tpr"], marker=mark, markevery=0.2, label=label)
        axes.plot([0, 1], [0, 1], linestyle=":", color="gray", label="guessing")
        shown = set(points["attack"])
        attacks_shown = [each for each in self.document["attacks"] if each["name"] in shown]
        _state_terms(
            axes, [(each["trust"], each["guarantee"]) for each in attacks_shown if each.get("guarantee")]
        )
        axes.legend()
        return figure


class Audit(Result):
    """Lower bounds of epsilon against each observer, beside the claims."""

    kind = "audit"

    @property
    def refuted(self) -> bool:
        """Whether a claim is refuted."""
        return bool(self.document["refuted"])

    def _lines(self) -> list[str]:
        return [f"{each['observer']}: {each['verdict']['words']}" for each in self.document["observers"]]


class Tuning(Result):
    """The choice of settings, and its cost."""

    kind = "tune"

    @cached_property
    def guarantees(self) -> Guarantees:
        """The guarantee of the choice and the released model against each observer."""
        return Guarantees(self.document["privacy"]["guarantees"])

    @property
    def choice(self) -> dict[str, Any]:
        """The chosen settings: key -> value."""
        return dict(self.document["choice"]["settings"])

    def _lines(self) -> list[str]:
        chosen = ", ".join(f"{key} = {value}" for key, value in self.choice.items())
        return [f"chosen: {chosen}", *repr(self.guarantees).split("\n")]


class Planning(Result):
    """How many clients a target takes, which epsilon, or which accuracy is to be expected."""

    kind = "plan"

    @property
    def answers(self) -> dict[str, dict[str, Any]]:
        """By trust model the verdict, the value and its 95 % interval."""
        return {each["trust"]: dict(each["answer"]) for each in self.document["curves"]}

    def _lines(self) -> list[str]:
        from fedprivacy.report.answers.plan import phrase_of

        parsed = PlanDocument.model_validate(self.document)
        return [f"{curve.trust}: {phrase_of(parsed, curve)}" for curve in parsed.curves]


KINDS: Mapping[str, type[Result]] = {
    cls.kind: cls
    for cls in (
        Run,
        Comparison,
        StatisticsRun,
        StatisticsComparison,
        Estimates,
        Replay,
        Audit,
        Tuning,
        Planning,
    )
}


def result_of(document: dict[str, Any]) -> Result:
    """Returns a result document as an object of its kind."""
    return KINDS[document["kind"]](document)


def with_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table whose epsilons are numbers, NaN where there is no guarantee."""
    return table.astype({name: float for name in table.columns if str(name).startswith("epsilon")})


def _marks() -> Iterator[str]:
    """Returns marks, so that lines differ in shape as well as in colour."""
    while True:
        yield from ("o", "s", "^", "D", "v", "P", "X", "*")


def _state_terms(axes: Any, held: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Writes above the axes on which terms, and against which observers, the epsilons hold.

    Args:
        axes: Those of the figure.
        held: Trust models, and stored guarantees of their runs.
    """
    observers: dict[tuple[str, str], dict[str, None]] = {}
    for trust, each in held:
        if each["epsilon"] is not None:
            terms = f"delta = {each['delta']:g}, unit {each['unit']}, {each['adjacency']}"
            observers.setdefault((trust, terms), {})[each["observer"]] = None
    if not observers:
        axes.set_title("no guarantee against these observers", fontsize="small")
        return
    every = list(dict.fromkeys(terms for _, terms in observers))
    lines = [f"epsilon at {every[0]}"] if len(every) == 1 else []
    for (trust, terms), against in observers.items():
        at = "" if len(every) == 1 else f" at {terms}"
        lines.append(f"trust {trust}{at}: against {', '.join(against)}")
    axes.set_title("\n".join(textwrap.fill(line, 78) for line in lines), fontsize="small")


def _axes(x: str, y: str) -> tuple[Figure, Any]:
    from scenarios.api.figures import NotebookFigure

    figure = NotebookFigure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes
