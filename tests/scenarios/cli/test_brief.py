"""Results in six lines."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.statement import Guarantee
from scenarios.cli.brief import observer_lines, show_brief, terms_line
from scenarios.cli.display import show_run


def guarantee(observer: str, epsilon: float | None, delta: float = 1e-5, **others: Any) -> Guarantee:
    terms = {
        "observer": observer, "trust": "central", "epsilon": epsilon, "delta": delta, "unit": "client",
        "adjacency": "replace-one", "assumptions": (TrainingAssumption.SERVER_SEES_UPDATES,),
    }  # fmt: skip
    return Guarantee.new(**{**terms, **others})


def test_shared_terms_are_stated_once() -> None:
    both = [guarantee("server", None), guarantee("outsider", 2.00001)]
    assert list(observer_lines(both).values()) == [
        "server: no guarantee (trusted: sees updates without noise)",
        "outsider: epsilon = 2.001 (by the server's noise)",
    ]
    assert terms_line(both).startswith("Each epsilon: delta = 1e-05, unit client, replace-one. ")


def test_against_the_shuffler_nothing_rests_on_the_shuffler() -> None:
    lines = observer_lines([guarantee(name, 1.0, trust="shuffled") for name in ("server", "analyst")])
    assert lines["server"] == "server: epsilon = 1 (by each client's own noise)"
    assert lines["analyst"].endswith("(by each client's own noise, if the shuffler is honest)")


def test_terms_that_differ_stand_beside_each_epsilon() -> None:
    both = [guarantee("participant", 1.0), guarantee("outsider", 2.0, 1e-6)]
    for line, delta in zip(observer_lines(both).values(), ("1e-05", "1e-06"), strict=True):
        assert f"delta = {delta}, unit client, replace-one" in line
    assert "delta" not in terms_line(both)


def test_several_runs_share_a_line_with_the_range_of_epsilons_and_the_largest_delta() -> None:
    runs = [
        guarantee("outsider", 2.00001, 0.0), guarantee("outsider", 8.0, 1e-6), guarantee("outsider", None),
        guarantee("outsider", 1.0, 1e-6, trust="local"),
    ]  # fmt: skip
    assert observer_lines(runs)["outsider"] == (
        "outsider: epsilon = 2.001 to 8 (by the server's noise), or epsilon = 1 (by each client's own noise), "
        "or no guarantee (trusted: sees updates without noise)"
    )
    assert terms_line(runs).startswith("Each epsilon: delta at most 1e-06, unit client, replace-one. ")


def test_epsilons_of_two_units_are_never_in_one_range() -> None:
    runs = [guarantee("outsider", 2.0), guarantee("outsider", 8.0, unit="example")]
    assert observer_lines(runs)["outsider"] == (
        "outsider: epsilon = 2, delta = 1e-05, unit client, replace-one (by the server's noise), or "
        "epsilon = 8, delta = 1e-05, unit example, replace-one (by the server's noise)"
    )


def test_a_result_takes_six_lines(capsys: pytest.CaptureFixture[str]) -> None:
    three = [guarantee("outsider", 2.0), guarantee("server", None), guarantee("participant", 2.0)]
    document = {
        "name": "small",
        "path": "runs/small",
        "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
    }
    show_brief(document, "one answer", three, {"outsider": "and more"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: one answer (1.0 s, 2 MB)"
    assert [line.partition(":")[0] for line in lines[1:4]] == ["server", "participant", "outsider"]
    assert lines[3].endswith("; and more")
    assert lines[5] == "report: runs/small/report.html"
    assert len(lines) == 6


def test_a_run_names_the_group_that_it_serves_worst(capsys: pytest.CaptureFixture[str]) -> None:
    groups = [
        {"group": name, "records": 400, "accuracy": accuracy, "few": False}
        for name, accuracy in (("f", 0.9), ("m", 0.6))
    ]
    document: dict[str, Any] = {
        "name": "small", "path": "runs/small", "rounds": [], "privacy": {"guarantees": []},
        "final": {"accuracy": 0.5, "loss": 1.0, "groups": [{"column": "sex", "edges": [], "groups": groups}]},
        "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
    }  # fmt: skip
    show_run(document)
    first, *others = capsys.readouterr().out.splitlines()
    assert "; served worst: sex m, 60.0 % of 400 records, 30.0 points below the best group (" in first
    assert len(others) == 2
    document["final"]["per_class"] = [
        {"class": 0, "records": 90, "accuracy": 1.0}, {"class": 1, "records": 10, "accuracy": 0.0},
    ]  # fmt: skip
    show_run(document)
    shown = capsys.readouterr().out
    assert ", no better than always naming the most frequent class" in shown
    assert "erved worst" not in shown
    del document["final"]["per_class"]
    groups[1]["accuracy"] = 0.9
    show_run(document)
    assert "erved worst" not in capsys.readouterr().out
