"""The tables of the terminal, in a window of 80 columns."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scenarios.cli.display import show_comparison, show_run
from scenarios.cli.display_estimates import show_estimates
from scenarios.cli.display_statistics import show_statistics_comparison


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def comparison() -> dict[str, Any]:
    ran = [
        ("central", None, "gaussian", "noise multiplier 23.6"),
        ("local", "sign-bits", "sign-bits", "epsilon 0.0123 a bit"),
        ("local", "auto", "privunit", "epsilon 0.1234 a message"),
    ]
    return {
        "cells": [
            {
                "trust": trust, "asked": mechanism_key, "mechanism": mechanism, "noise": noise, "epsilon": 0.25,
                "accuracy": {"mean": 0.8, "low": 0.7, "high": 0.9}, "rounds": 100,
            }
            for trust, mechanism_key, mechanism, noise in ran
        ],
        "finding": "Found.", "path": "somewhere", "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
        "scenario": {"privacy": {"delta": 1e-5, "unit": "client", "adjacency": "replace-one"}},
    }  # fmt: skip


def test_a_cell_of_a_comparison_takes_two_lines_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    show_comparison(comparison(), verbose=True)
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if line.startswith("│")]
    assert len(rows) == 6
    assert max(map(len, rows)) <= 80
    assert re.search(r"Gaussian, .*\n.* z = 23.6 ", shown)
    assert re.search(r"local, .* sign bits, .*\n│ sign-bits .* e = 0.0123 ", shown)
    assert re.search(r"PrivUnitG, .*\n.* e = 0.1234 ", shown)
    assert "z: noise multiplier" in shown
    assert "…" not in shown


def test_a_cell_of_a_comparison_takes_one_line_where_there_is_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    show_comparison(comparison(), verbose=True)
    assert "│ local, sign-bits │ 0.25    │" in capsys.readouterr().out


def test_cells_of_several_units_are_distinguished_and_the_caution_says_what_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = comparison()
    show_comparison(document)
    assert "unit client, adjacency" in capsys.readouterr().out
    for cell, unit in zip(document["cells"], ("example", "client", "client"), strict=True):
        cell["unit"] = unit
    show_comparison(document)
    shown = capsys.readouterr().out
    assert re.search(r"\ncentral, example +80.0 ±10.0", shown)
    assert re.search(r"\nlocal, client, sign-bits +80.0 ±10.0", shown)
    assert "unit example or client, adjacency" in shown
    assert "unit example protects one record, unit client all records of a client" in shown


def test_a_run_says_what_the_records_of_a_median_client_cost(capsys: pytest.CaptureFixture[str]) -> None:
    spent = {
        "largest": 2.00001,
        "median": 1.25,
        "groups": [{"epsilon": 1.25, "clients": 3}, {"epsilon": 2.0, "clients": 1}],
    }
    privacy = {
        "guarantees": [],
        "per_client": spent,
        "delta": 1e-5,
        "unit": "example",
        "adjacency": "add-remove",
    }
    document = {
        "name": "small", "path": "somewhere", "rounds": [], "final": {"accuracy": 0.5, "loss": 1.0},
        "privacy": privacy, "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
    }  # fmt: skip
    show_run(document, verbose=True)
    assert (
        "- A record of the median client costs epsilon = 1.25, of the dearest 2.001 (4 clients; delta = 1e-05, unit "
        "example, add-remove, against the same observers)."
    ) in capsys.readouterr().out
    show_run({**document, "privacy": {**privacy, "per_client": None}}, verbose=True)
    assert "median" not in capsys.readouterr().out


def comparison_of_statistics(reported: float = 1.0) -> dict[str, Any]:
    ran = [("none", None, None), ("local", 0.25, "k-ary-randomized-response"), ("central", 0.25, "noisy-max")]
    error = {"mean": 0.01234, "low": 0.01023, "high": 0.01445}
    return {
        "cells": [
            {
                "trust": trust, "epsilon": epsilon, "clients": 1_000_000,
                "queries": [{"name": "married-by-education", "kind": "share-by-group", "mechanism": how, "error": error, "told": reported}],
            }
            for trust, epsilon, how in ran
        ],
        "finding": "Found.", "path": "somewhere", "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
        "scenario": {"privacy": {"unit": "client", "adjacency": "replace-one"}},
    }  # fmt: skip


def column(shown: str, at: int) -> str:
    """What a folded column says in all its lines."""
    rows = [line for line in shown.splitlines() if line.startswith("│")]
    assert max(map(len, rows)) <= 80
    return "".join(line.split("│")[1 + at].strip() for line in rows)


def test_a_comparison_of_statistics_names_mechanisms_and_queries_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_statistics_comparison(comparison_of_statistics(), verbose=True)
    shown = capsys.readouterr().out
    assert "…" not in shown
    names = ("exact", "local, k-ary-randomized-response", "central, noisy-max")
    first_column = column(shown, 0).replace(" ", "")
    assert all(name.replace(" ", "") in first_column for name in names)
    assert column(shown, 1).count("married-by-education") == 3
    assert "1.023 to 1.445" in shown
    assert "told" not in shown


def test_a_comparison_of_statistics_says_where_not_all_was_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_statistics_comparison(comparison_of_statistics(0.625))
    assert capsys.readouterr().out.count("(62.5 % released)") == 3


def test_a_comparison_has_its_arms_down_and_its_epsilons_across(capsys: pytest.CaptureFixture[str]) -> None:
    document = comparison()
    for cell, epsilon in zip(document["cells"], (0.25, 0.25, 4.0), strict=True):
        cell["epsilon"] = epsilon
    bare = {**document["cells"][0], "trust": "none", "epsilon": None, "noise": None}
    show_comparison({**document, "cells": [*document["cells"], bare]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Accuracy in %, ± 95 % interval; no noise 80.0 ±10.0"
    assert [line.split() for line in lines[2:6]] == [
        ["epsilon", "0.25", "4"],
        ["central", "80.0", "±10.0"],
        ["local,", "sign-bits", "80.0", "±10.0"],
        ["local,", "auto", "80.0", "±10.0"],
    ]
    assert lines[5].index("80.0") > lines[4].index("80.0")
    assert any(line.startswith("Epsilon at delta = 1e-05, unit client, adjacency") for line in lines)
    show_statistics_comparison(comparison_of_statistics())
    assert [line.split() for line in capsys.readouterr().out.splitlines()[3:7]] == [
        ["married-by-education;", "without", "noise", "1.2", "±0.21"],
        ["epsilon", "0.25"],
        ["local", "1.2", "±0.21"],
        ["central", "1.2", "±0.21"],
    ]


def test_the_finding_comes_first_and_a_long_table_is_cut_with_its_remainder_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for document, show in (
        (comparison(), show_comparison), (comparison_of_statistics(), show_statistics_comparison),
    ):  # fmt: skip
        [*bare, cell] = document["cells"][-2:]
        document["cells"] = [*bare, *({**cell, "asked": f"mechanism-{number}"} for number in range(32))]
        show(document)
        shown = capsys.readouterr().out
        assert shown.startswith("Found.")
        assert "23 more rows: --verbose, the page, or --json" in shown
        assert "mechanism-8" in shown
        assert "mechanism-9" not in shown
        show(document, verbose=True)
        assert "more rows" not in capsys.readouterr().out


def test_that_nothing_was_learned_comes_before_the_finding(capsys: pytest.CaptureFixture[str]) -> None:
    document = comparison()
    classes = [{"class": 0, "accuracy": 1.0, "records": 90}, {"class": 1, "accuracy": 0.0, "records": 10}]
    document["cells"].append({**document["cells"][0], "trust": "none", "epsilon": None, "per_class": classes})
    show_comparison(document)
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("(80.0 %): this measures no cost of privacy.")
    assert second == "Found."


def test_a_study_says_on_the_terminal_that_its_curator_is_trusted(capsys: pytest.CaptureFixture[str]) -> None:
    terms = {
        "delta": 1e-5,
        "unit": "example",
        "adjacency": "replace-one",
        "of": "estimate",
        "assumptions": [],
    }
    held = {
        "central": [{"observer": "outsider", "trust": "central", "epsilon": 1.0, **terms}],
        "local": [{"observer": "server", "trust": "local", "epsilon": 1.0, **terms}],
    }
    cells = [
        {
            "approach": f"{trust}-approach", "kind": "output-perturbation", "trust": trust, "epsilon": 1.0,
            "records": 100, "delta": 1e-5, "excess": {"mean": 0.01, "low": 0.0, "high": 0.02}, "guarantees": stated,
        }
        for trust, stated in held.items()
    ]  # fmt: skip
    show_estimates(
        {
            "schema": 1, "kind": "erm", "name": "study", "path": "somewhere", "cells": cells, "scenario": {},
            "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
            "exact": [{"records": 100, "value": 0.5, "theta": []}],
        }
    )  # fmt: skip
    result, server, outsider, *_ = capsys.readouterr().out.splitlines()
    assert result.startswith("study: at epsilon 1 and 100 records, ")
    assert server == (
        "server: epsilon = 1 (by each client's own noise), or no guarantee (trusted: sees all records); "
        "only local-approach"
    )
    assert outsider.endswith("; only central-approach")


def test_all_accuracies_of_a_comparison_are_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    document = comparison()
    document["baselines"] = [{"trust": "none", "accuracy": {"mean": 0.8921}}]
    varied = {"key": "server.rounds", "value": 5}
    document["variations"] = [{**document["cells"][0], "varied": varied}]
    show_comparison(document)
    shown = capsys.readouterr().out
    assert "Clipping alone, no noise: 89.2 %" in shown
    assert "server.rounds at epsilon 0.25, central: 5: 80.0 %" in shown
    assert "0.8" not in shown
    document["cells"][0]["accuracy"] = {"mean": 0.8317, "low": 0.8, "high": 0.8551}
    show_comparison(document, verbose=True)
    assert re.search(r"│ 83\.2 % +│ 80\.0 to 85\.5 % │", capsys.readouterr().out)
