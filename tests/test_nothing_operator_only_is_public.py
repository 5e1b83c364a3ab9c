"""Markers in each operator-only leaf of a document of each kind come out nowhere but with `operator`.

The marked leaves are found here by their paths and names, not by the filter that is tested.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

import fedprivacy as fp
from fedprivacy import report
from fedprivacy.documents.kinds import KINDS
from fedprivacy.documents.redaction import PUBLIC_DATA, SIMULATED, TESTED_NOTE, public
from fedprivacy.documents.schemas import schema_of
from fedprivacy.errors import InputError
from fedprivacy.forecast.question import Question
from fedprivacy.records.run_directory import read_document
from fedprivacy.report import index, page_of, words
from fedprivacy.report.figures import write_figures
from fedprivacy.scenario.erm.sections import LogisticModel, NpzRecords
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.statistics.data import Bits, Categories, NpzTable, Numbers
from fedprivacy.verification.limits import fields_of
from scenarios.api.results import result_of
from scenarios.authoring.catalogue import find
from scenarios.cli.output import print_result
from scenarios.experiments.planning import plan
from scenarios.stored import differences, export
from scenarios.stored.listing import row_of
from scenarios.tracking.track import Tracking
from scenarios.tracking.tracker import Tracker, tracker_class
from tests.once import once

ROOT = Path(__file__).parents[1]
# By name at any depth, besides the paths that a document marks.
NAMES = {"seed", "command", "noise_key", "scenario_digest", "seconds", "clients_per_second", "peak_memory_mb"}
FOLDER = "/home/marker-of the-folder/data.npz"
NUMBER = 8_642_000_000_000  # of which all markers count on: it is printed in full, with commas
MARKER = re.compile(r"marker-[\w-]+|864[23]\d{9}")
LIMITED = {"compare.limits": ["no-noise", "norm-half"], "compare.baselines": False}
QUIET: dict[str, Any] = {"progress": False, "workers": 1}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A small result of each kind."""
    return once(tmp_path_factory, "public", small_results)


def small_results(out: Path) -> dict[str, dict[str, Any]]:
    few: dict[str, Any] = {"rounds": 1, "out": out, **QUIET}
    game = {"game.members": 20, "game.nonmembers": 40, "model.hidden": [16], "attacks.passive.rounds": 2}
    study = {"study.repeats": 2, "study.epsilons": [1.0], "study.records": [200]}
    asks = {"compare.repeats": 2, "compare.epsilons": [1.0], "compare.clients": [50]}
    results = [
        fp.run("digits", **{**few, "rounds": 2}),
        fp.compare("digits", trusts=["none", "central", "local"], epsilons=[1, 2], seeds=[1, 2], **few),
        fp.ask("star-wars-survey", out=out, progress=False),
        fp.compare("star-wars-survey", set=asks, out=out, **QUIET),
        fp.replay("active-gradient-ascent", attacks=["passive"], set=game, **few),
        fp.audit("digits", canaries=50, method="one-run", **few),
        fp.tune("tuned", **few),
        fp.run("private-erm", set=study, out=out, **QUIET),
    ]
    each = {result.kind: result.document for result in results}
    question = Question(("central",), target_accuracy=0.5, epsilon=4.0, repeats=2)
    each["plan"] = plan(load(find("digits"), ["server.rounds=1"]), question, out, workers=1)
    ablations = fp.compare("digits", trusts=["central"], epsilons=[2], seeds=[1, 2], set=LIMITED, **few)
    each["run"]["limits"] = fields_of(ablations.document, "limits/one")
    return each


# ------------------------------------------------------------------ markers


class Marks:
    """Unique markers, each a text or a number like the value that it replaces."""

    count = 0

    def of(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.of(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner) for inner in value]
        self.count += 1
        if isinstance(value, int | float) and not isinstance(value, bool):
            return type(value)(NUMBER + self.count)
        return f"marker-{self.count}"


def marked(document: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """A copy with a marker in each operator-only leaf, and in texts that quote some; and the markers."""
    copied, marks = copy.deepcopy(dict(document)), Marks()
    copied |= {"error": "?", "command": "?", "noise_key": "?", "scenario_digest": "?", "seed": 1}
    if copied["kind"] == "run":
        for event in copied["rounds"]:
            event |= {"first_failure": "?", "faults": {"late": 1}, "void": True, "void_reason": "?"}
        copied |= {"estimate": {"words": "?"}, "dealing": {"errors": {"1": "?"}}}
        for cell in (copied["limits"]["planned"], *copied["limits"]["variants"]):
            cell |= {"seeds": [1, 2], "seconds": 1.0}  # which a record of another version may have
    if copied["kind"] == "replay":
        shown = {"attack": "marker-exposed", "method": "lira", "fpr": 0.1, "models": 4, "records": 9}
        copied["exposures"] = [{**shown, "exposed": 0, "most_exposed": []}]
    paths = {*KINDS[copied["kind"]].OPERATOR_ONLY, *copied["operator_only"], "path"} - {"exposures"}
    for path in paths:
        *parents, field = path.split(".")
        for holder in holders(copied, parents):
            if field in holder:
                holder[field] = marks.of(holder[field])
    for table, name in named(copied):
        if not MARKER.fullmatch(str(table[name])):
            table[name] = marks.of(table[name])
    copied["path"] = "/home/marker-of the-run/one"
    scenario = copied["scenario"]
    scenario["data"]["path"] = FOLDER
    quoted = f"Made by {copied['command']} with seed 7, {copied['seed']}, from {FOLDER}."
    scenario["description"] = quoted
    copied["notes"] = [*copied.get("notes", ()), quoted, "Read from /srv/marker-elsewhere/table.csv."]
    scenario["evaluation"] = {**scenario.get("evaluation", {}), "seconds": marks.of(1.0)}
    return copied, set(MARKER.findall(json.dumps(copied)))


def holders(value: Any, parents: list[str]) -> Iterator[dict[str, Any]]:
    if not parents:
        if isinstance(value, dict):
            yield value
        return
    name = parents[0].removesuffix("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    for each in inner if isinstance(inner, list) and parents[0].endswith("[]") else [inner]:
        yield from holders(each, parents[1:])


def named(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The tables and names of seeds, commands, keys and times at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in NAMES or (name == "seeds" and isinstance(inner, list)):
                yield value, name
            else:
                yield from named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from named(inner)


# ------------------------------------------------------------------ outputs


class Memory(Tracker):
    """A tracker that remembers."""

    def __init__(self, label: str, out: Path) -> None:
        self.sent: list[Any] = [label]

    def settings(self, settings: Mapping[str, str]) -> None:
        self.sent.append(dict(settings))

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.sent.append({key: f"{value:.0f}" if value > 1e6 else value for key, value in values.items()})

    def note(self, key: str, text: str) -> None:
        self.sent.append([key, text])

    def close(self, finished: bool) -> None:
        pass


def pages(document: dict[str, Any], folder: Path, operator: bool) -> str:
    if operator:
        return report.render(document, operator=True)
    return report.write(document, folder / "page").read_text()


def charts(document: dict[str, Any], folder: Path, operator: bool) -> str:
    folder.mkdir(exist_ok=True)
    files = write_figures(document, folder / "figures", "svg", operator=operator)
    return "".join(file.read_text() for file in [*files, *(folder / "figures").glob("captions.txt")])


def printed(document: dict[str, Any], folder: Path, operator: bool) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        # The run directory is what the caller asked for.
        print_result({**document, "path": "runs/one"}, True, print, operator)
    return out.getvalue()


def tables(document: dict[str, Any], folder: Path, operator: bool) -> str:
    run, out = stored(document, folder / "run"), folder / "tables"
    files = [file for kind in export.FORMATS for file in export.export(run, out, kind, operator=operator)]
    assert all(("-operator-" in file.name) == operator for file in files)
    frames = [pd.read_parquet(file).to_csv() for file in files if file.suffix == ".parquet"]
    return "".join([*frames, *(file.read_text() for file in files if file.suffix == ".csv")])


def listed(document: dict[str, Any], folder: Path, operator: bool) -> str:
    row = row_of(stored(document, folder / "runs" / "one"), operator=operator).to_json()
    return json.dumps(row) + index.write(folder / "runs", [row], operator=operator).read_text()


def compared(document: dict[str, Any], folder: Path, operator: bool) -> str:
    text = json.dumps(document).replace("marker-", "marker-other-").replace("8642", "8643")
    other = json.loads(text)
    runs = [stored(each, folder / name) for each, name in ((document, "first"), (other, "second"))]
    return json.dumps(differences.difference(*runs, operator=operator))


def sent(document: dict[str, Any], folder: Path, operator: bool) -> str:
    tracker = Memory("label", folder)
    send(tracker, document, operator)
    return json.dumps(tracker.sent)


def send(tracker: Tracker, document: dict[str, Any], operator: bool) -> None:
    tested = TESTED_NOTE in document["notes"]
    tracked = Tracking(tracker, operator, tested)
    for event in document.get("rounds", ()):
        tracked.beside(lambda _: None)(event)
    tracked.result(document)
    tracker.close(True)


def displayed(document: dict[str, Any], folder: Path, operator: bool) -> str:
    result = result_of(document)
    data = json.dumps({**result.to_dict(operator=operator), "path": None})
    return data if operator else repr(result) + result._repr_html_() + data


def stored(document: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(document))
    return folder


Output = Callable[[dict[str, Any], Path, bool], str]
OUTPUTS: list[Output] = [pages, charts, printed, tables, listed, compared, sent, displayed]


def found_in(text: str) -> set[str]:
    return set(MARKER.findall(html.unescape(text).replace(",", "").replace("\N{NO-BREAK SPACE}", " ")))


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked document contradicts itself, which verification would refuse."""
    for module in (export, differences):
        monkeypatch.setattr(module, "checked_document", lambda folder: read_document(folder / "run.json"))


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("status", ["finished", "failed"])
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_no_marker_is_public(
    documents: dict[str, dict[str, Any]], kind: str, output: Output, status: str, tmp_path: Path
) -> None:
    document, markers = marked({**documents[kind], "status": status})
    assert len(markers) > 5
    assert not found_in(output(document, tmp_path, False))


# What a list or a chart never has: it is made of few values.
PARTIAL: dict[Output, int] = {listed: 3}


@pytest.mark.parametrize(
    "output", [each for each in OUTPUTS if each is not charts], ids=lambda output: output.__name__
)
@pytest.mark.parametrize("kind", KINDS)
def test_each_marker_comes_out_for_the_operator(
    documents: dict[str, dict[str, Any]], kind: str, output: Output, tmp_path: Path
) -> None:
    document, markers = marked(documents[kind])
    shown = found_in(output(document, tmp_path, True)) & markers
    if output in PARTIAL:
        assert len(shown) >= PARTIAL[output]
        return
    left_out = markers - shown
    if output in (tables, compared, sent):  # which have no notes
        left_out -= {"marker-elsewhere"}
    if output is printed:
        left_out -= {"marker-of"}
    assert not left_out


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
@pytest.mark.parametrize("kind", ["run", "compare", "tune", "plan"])
def test_accuracy_on_records_of_clients_is_not_public(
    documents: dict[str, dict[str, Any]], kind: str, output: Output, tmp_path: Path
) -> None:
    document = copy.deepcopy(documents[kind])
    document["notes"].append(TESTED_NOTE)
    document = json.loads(re.sub(r'("accuracy": )[0-9.]+', r"\g<1>0.87654", json.dumps(document)))
    accuracy = re.compile(r"87\.65|87\.7|0\.8765|0\.877")
    cells = document.get("cells", [])
    if kind == "run":
        limits = document["limits"]
        limits["limiting"] = "marker-finding"
        cells = [limits["planned"], *limits["variants"]]
    for cell in cells:
        cell["accuracy"] = dict.fromkeys(cell["accuracy"], 0.87654)
        cell["accuracies"] = [0.87654] * len(cell["accuracies"])
    if kind == "compare":
        document["finding"] = "marker-finding"
    for operator in (False, True) if output in (pages, printed, displayed) else (False,):
        text = output(document, tmp_path / str(operator), operator).replace("\N{NO-BREAK SPACE}", " ")
        assert bool(accuracy.search(text)) == operator
        assert ("marker-finding" in text) == (operator and kind in ("run", "compare"))


# Paths that give a true value away, which no mechanism released.
TRUTH = {
    "statistics": {f"queries[].{key}" for key in ("true", "error", "score", "best")},
    "compare-statistics": {
        *(
            f"cells[].queries[].{key}"
            for key in ("error", "rmse", "covered", "within_bound", "right", "score")
        ),
        *(f"cells[].queries[].answer.{key}" for key in ("true", "estimate", "low", "high")),
        *("cells[].queries[].best", "finding", "slope", "slopes"),
    },
    "erm": {"cells[].excess", "cells[].theta", "exact", "slopes", "surface", "finding"},
}


def of_people(document: Mapping[str, Any], **data: Any) -> tuple[dict[str, Any], set[str]]:
    """A copy on the data of a file, with a marker in each field that has a true value; and the markers."""
    copied, marks = copy.deepcopy(dict(document)), Marks()
    copied["scenario"]["data"] = {"name": "npz", "path": "people.npz", **data}
    for path in TRUTH[copied["kind"]]:
        *parents, field = path.split(".")
        for holder in holders(copied, parents):
            if holder.get(field) is not None:
                holder[field] = marks.of(holder[field])
    return copied, set(MARKER.findall(json.dumps(copied)))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
@pytest.mark.parametrize("kind", TRUTH)
def test_true_values_of_people_are_not_public(
    documents: dict[str, dict[str, Any]], kind: str, output: Output, tmp_path: Path
) -> None:
    document, markers = of_people(documents[kind])
    assert len(markers) > 1
    assert not found_in(output(document, tmp_path / "public", False))
    if output is printed:
        schema = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text())
        shown = json.loads(output(documents[kind] | {"scenario": document["scenario"]}, tmp_path, False))
        pytest.importorskip("jsonschema").Draft202012Validator(schema).validate(shown)
    if output in (printed, tables, displayed):
        assert found_in(output(document, tmp_path / "operator", True))
    if output is pages:
        for operator in (False, True):
            withheld = page_of(document, operator=operator)
            assert any(words.TRUTH_WITHHELD in str(block) for block in withheld.lead) != operator


# What is computed from records without noise, in documents of work that an account leaves to the operator.
RESULTS = {
    "audit": {"observers", "refuted", "ledgers", "audited.words", "audited.neighbours"},
    "replay": {"attacks", "trials", "arms", "verdict", "exposures"},
    "erm": {*TRUTH["erm"], "cells[].bound", "cells[].held_out"},
}


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.__name__)
@pytest.mark.parametrize("kind", RESULTS)
def test_results_that_an_account_leaves_to_the_operator_are_not_public(
    documents: dict[str, dict[str, Any]], kind: str, output: Output, tmp_path: Path
) -> None:
    document, marks = copy.deepcopy(documents[kind]) | {"for_operator": True}, Marks()
    for path in RESULTS[kind]:
        *parents, field = path.split(".")
        for holder in holders(document, parents):
            if holder.get(field) is not None:
                holder[field] = marks.of(holder[field])
    assert marks.count > 5
    document.setdefault("notes", [])
    if output is tables:
        with pytest.raises(InputError, match="all of its tables are operator-only"):
            tables(document, tmp_path / "public", False)
        assert tables(documents[kind] | {"for_operator": True}, tmp_path / "operator", True)
        return
    if output is pages:  # the operator's page would refuse the markers
        assert not found_in(report.render(document))
        assert words.RESULTS_WITHHELD in str(page_of(document).lead)
        whole = documents[kind] | {"for_operator": True}
        assert words.RESULTS_WITHHELD not in str(page_of(whole, operator=True).lead)
        return
    text = output(document, tmp_path / "public", False)
    assert not found_in(text)
    if output is printed:
        schema = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text())
        shown = json.loads(text)
        pytest.importorskip("jsonschema").Draft202012Validator(schema).validate(shown)


@pytest.mark.parametrize("kind", TRUTH)
def test_true_values_of_public_records_are_public(
    documents: dict[str, dict[str, Any]], kind: str, tmp_path: Path
) -> None:
    for document, markers in (
        of_people(documents[kind], public=True),
        of_people(documents[kind], name="bits"),
    ):
        assert found_in(printed(document, tmp_path, False)) == markers


def test_only_made_up_data_have_no_path() -> None:
    classes = (Bits, Categories, Numbers, NpzTable, LogisticModel, NpzRecords)
    without_path = {
        get_args(cls.model_fields["name"].annotation)[0]: "path" not in cls.model_fields for cls in classes
    }
    assert {name for name, simulated in without_path.items() if simulated} == set(SIMULATED) - set(
        PUBLIC_DATA
    )


@pytest.mark.parametrize("kind", KINDS)
def test_public_copies_and_whole_documents_fit_the_published_schema(
    documents: dict[str, dict[str, Any]], kind: str, tmp_path: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text())
    assert schema == schema_of(kind)
    document = documents[kind]
    tested = {**document, "notes": [*document.get("notes", ()), TESTED_NOTE]}
    valid = jsonschema.Draft202012Validator(schema)
    valid.check_schema(schema)
    for each in (document, {**document, "status": "failed", "error": "?"}, tested):
        valid.validate(each)
        shown = json.loads(printed(each, tmp_path, False))
        valid.validate(shown)
        assert shown["public"] is True
        assert public(shown) == {key: value for key, value in shown.items() if key != "path"}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_no_marker_is_in_a_file_of_a_tracker(
    documents: dict[str, dict[str, Any]], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(name)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("WANDB_MODE", "offline")
    for each in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(each, str(tmp_path / "home"))
    folders = {(kind, operator): tmp_path / kind / str(operator) for kind in documents for operator in (0, 1)}
    for (kind, operator), folder in folders.items():
        if name == "mlflow":
            import mlflow

            mlflow.set_tracking_uri((folder / "mlruns").as_uri())
        send(tracker_class(name)("label", folder), marked(documents[kind])[0], bool(operator))
    if name == "wandb":
        import wandb

        wandb.teardown()  # writes what its own process still has
    content = {
        key: b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        for key, folder in folders.items()
    }
    marker = re.compile(rb"marker-|8642\d{9}")
    for kind in documents:
        assert len(content[kind, 0]) > 200
        assert [bool(marker.search(content[kind, operator])) for operator in (0, 1)] == [False, True], kind


# ------------------------------------------------------------------ no other way out


def calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {ast.unparse(function) for function in functions}


def callers(folder: str, *names: str) -> set[str]:
    """The modules below a folder that call one of these functions."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*.py")
        if calls(path) & set(names) and path.parent.name != "population"
    }


def test_each_way_out_goes_through_the_filter() -> None:
    assert callers("scenarios/cli", "json.dumps", "json.dump") == {"scenarios/cli/output.py"}
    plain = callers("scenarios/cli", "print_answer")  # no record of a run, or made of public values
    assert plain == {
        f"scenarios/cli/{name}.py"
        for name in (
            *("account", "budget", "federation", "file_commands", "output", "reproduce", "stored_commands"),
        )
    }
    assert callers("fedprivacy", "html") == {"fedprivacy/report/__init__.py"}
    filtered = {"fedprivacy/documents/kinds.py", "scenarios/api/results.py", "scenarios/cli/output.py"}
    filtered |= {f"scenarios/stored/{name}.py" for name in ("differences", "export", "listing")}
    filtered |= {"scenarios/tracking/track.py", "scenarios/cli/account.py"}
    assert callers("fedprivacy", "public") | callers("scenarios", "public") == filtered
