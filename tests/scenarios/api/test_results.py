"""Results as objects: tables, guarantees by observer, and what a notebook shows."""

from __future__ import annotations

import copy
from pathlib import Path

import pandas as pd
import pytest

import fedprivacy as fp
from scenarios.api.results import KINDS, Guarantees, result_of
from scenarios.budgets.gaussian import GaussianQuestion
from scenarios.stored import tables


def test_an_epsilon_is_reached_through_its_observer_alone(central: object) -> None:
    for each in (central, central.guarantees):
        assert not [name for name in dir(each) if "epsilon" in name]
    bound = central.guarantees["participant"]
    assert (bound.unit, bound.adjacency, bound.delta, bound.trust) == (
        "client",
        "replace-one",
        1e-5,
        "central",
    )
    assert bound.epsilon == pytest.approx(2, abs=1e-3)
    assert bound.assumptions
    assert str(bound) == bound.words
    assert central.guarantees["server"].epsilon is None
    with pytest.raises(KeyError, match="server, participant, outsider"):
        central.guarantees["nobody"]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_epsilons_so_far_rise_to_the_claim(trust: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(trust)
    assert list(run.rounds["round"]) == [1, 2, 3]
    for observer, bound in run.guarantees.items():
        so_far = run.rounds[f"epsilon_{observer}"]
        if bound.epsilon is None:
            assert so_far.isna().all()
            continue
        assert so_far.is_monotonic_increasing
        assert 0 < so_far.iloc[0] < bound.epsilon
        assert so_far.iloc[-1] == pytest.approx(bound.epsilon, rel=1e-9)
        assert (so_far <= bound.epsilon).all()


@pytest.mark.parametrize(
    ("trust", "observer", "rate"), [("central", "outsider", 0.5), ("local", "server", None)]
)
def test_epsilons_so_far_are_those_of_so_many_rounds(
    trust: str, observer: str, rate: float | None, request: pytest.FixtureRequest
) -> None:
    run = request.getfixturevalue(trust)
    noise = run.document["plan"]["mechanism"]["noise_multiplier"]
    for number in (1, 2, 3):
        budget = GaussianQuestion(noise_multiplier=noise, rounds=number, sampling_rate=rate).document()
        assert run.rounds[f"epsilon_{observer}"][number - 1] == pytest.approx(budget["epsilon"], rel=1e-4)


def test_epsilons_so_far_of_records(runs: Path, patients: pd.DataFrame) -> None:
    people = fp.people(patients, "sick", users="hospital", bounds={"age": (0, 120)})
    run = fp.run(people, trust="local", rounds=3, out=runs, workers=1, progress=False)
    for observer, bound in run.guarantees.items():
        so_far = run.rounds[f"epsilon_{observer}"]
        assert so_far.is_monotonic_increasing
        assert so_far.iloc[-1] == pytest.approx(bound.epsilon, rel=1e-9)


def test_rounds_that_are_not_computed_have_the_epsilon_of_a_later_one(
    central: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = tables.epsilons_so_far(central.document)["outsider"]
    monkeypatch.setattr(tables, "MAX_CURVE", 2)  # of three rounds the second and the last are computed
    assert tables.epsilons_so_far(central.document)["outsider"] == [exact[1], exact[1], exact[2]]


@pytest.mark.parametrize("ending", ["stopping early", "interrupted"])
def test_where_the_rounds_may_depend_on_data_each_has_the_whole_claim(central: object, ending: str) -> None:
    document = copy.deepcopy(central.document)
    if ending == "interrupted":
        del document["rounds"][1:]
    else:
        document["scenario"]["server"]["patience"] = 2
    claim = central.guarantees["outsider"].epsilon
    assert tables.epsilons_so_far(document)["outsider"] == [claim] * len(document["rounds"])
    assert tables.epsilons_so_far(document)["server"] == [None] * len(document["rounds"])


def test_a_stored_result_is_read_again_and_a_changed_one_refused(central: object, tmp_path: Path) -> None:
    again = fp.read(central.path)
    assert again.rounds.equals(central.rounds)
    assert again.guarantees["outsider"] == central.guarantees["outsider"]
    for name in ("run.json", "scenario.toml"):
        (tmp_path / name).write_text((central.path / name).read_text())
    text = (tmp_path / "run.json").read_text()
    (tmp_path / "run.json").write_text(
        text.replace('"epsilon": 1.99', '"epsilon": 0.99').replace('"epsilon": 2.0', '"epsilon": 0.5')
    )
    with pytest.raises(fp.InputError):
        fp.read(tmp_path)


def test_a_notebook_shows_names_as_text(central: object) -> None:
    document = copy.deepcopy(central.document)
    document["name"] = "<script>alert(1)</script>"
    document["privacy"]["guarantees"][0]["assumptions"][0] = "<img src=x>"
    shown = result_of(document)._repr_html_()
    assert "<script>" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;" in shown
    hostile = {"kind": "compare", "name": "a", "status": "finished", "path": "<b>", "finding": "<i>", "cells": [
        {"trust": "<u>", "unit": "client", "mechanism": None, "epsilon": 1.0, "rounds": 1, "accuracies": [1.0],
         "accuracy": {"mean": 1.0, "low": None, "high": None}, "guarantees": []}]}  # fmt: skip
    shown = result_of(hostile)._repr_html_()
    assert not [tag for tag in ("<b>/", "<i>", "<u>") if tag in shown]


def test_figures_state_the_terms_of_their_epsilons() -> None:
    def held(observer: str, epsilon: float | None, unit: str = "client") -> dict:
        return {
            "observer": observer,
            "epsilon": epsilon,
            "delta": 1e-5,
            "unit": unit,
            "adjacency": "replace-one",
        }

    def cell(trust: str, *guarantees: dict) -> dict:
        figures = {"mean": 0.5, "low": None, "high": None}
        return {"trust": trust, "unit": guarantees[0]["unit"], "mechanism": None, "epsilon": 1.0, "rounds": 1,
                "accuracies": [0.5], "accuracy": figures, "guarantees": list(guarantees)}  # fmt: skip

    central = cell("central", held("server", None), held("participant", 1.0), held("outsider", 1.0))
    titles = []
    for other in (cell("local", held("server", 1.0)), cell("local", held("server", 1.0, "example"))):
        document = {
            "kind": "compare",
            "name": "a",
            "status": "finished",
            "path": "b",
            "scenario": {},
            "cells": [central, other],
        }
        titles.append(result_of(document).figure().axes[0].get_title().split("\n"))
        assert max(map(len, titles[-1])) < 80  # it fits above the axes
    assert titles == [
        [
            "epsilon at delta = 1e-05, unit client, replace-one",
            "trust central: against participant, outsider",
            "trust local: against server",
        ],
        [
            "trust central at delta = 1e-05, unit client, replace-one: against participant,",
            "outsider",
            "trust local at delta = 1e-05, unit example, replace-one: against server",
        ],
    ]
    for epsilon, expected in ((1.0, "trust central: against server"), (None, "no guarantee")):
        attack = {"name": "a", "seat": "server", "trust": "central", "epsilon": epsilon,
                  "guarantee": held("server", epsilon), "roc": [{"fpr": [0, 1], "tpr": [0, 1]}]}  # fmt: skip
        replay = result_of(
            {"kind": "replay", "name": "a", "status": "finished", "path": "b", "attacks": [attack]}
        )
        assert expected in replay.roc().axes[0].get_title()


def test_every_kind_has_its_class() -> None:
    assert set(KINDS) == {
        "run",
        "compare",
        "statistics",
        "compare-statistics",
        "erm",
        "replay",
        "audit",
        "tune",
        "plan",
    }
    assert Guarantees([]).__len__() == 0


def test_a_table_of_runs(runs: Path, central: object, local: object) -> None:
    table = fp.runs(runs)
    assert {central.path.name, local.path.name} <= set(table["run"])
    assert table["epsilon_server"].dtype == float
    assert not {"seed", "noise_key", "command", "scenario_digest"} & set(table.columns)
    chosen = fp.runs(runs, "trust=local", "unit=client, replace-one", sort="-accuracy")
    assert list(chosen["run"]) == [local.path.name]
    assert isinstance(chosen, pd.DataFrame)


def test_exports_of_a_result(central: object, tmp_path: Path) -> None:
    (path,) = central.export(tmp_path)
    table = pd.read_csv(path)
    assert table["accuracy"].tolist() == pytest.approx(central.rounds["accuracy"].tolist())
