"""`fedprivacy reproduce`, as a person types it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fedprivacy.errors import InputError
from scenarios.cli.main import app
from scenarios.reproductions import registry

RUNNER = CliRunner()
NAMES = ["flower-message", "nvflare-svt"]


def test_a_table_then_each_claim_with_its_source_and_its_epsilon() -> None:
    done = RUNNER.invoke(app, ["reproduce", *NAMES])
    assert done.exit_code == 0
    for text in (
        "│ flower-message │ 8         │ 18.899 │ as expected │",
        "- flower-message: LocalDpMod with epsilon 8, delta 1e-5: one message (Flower 1.41,",
        "Ours is above the published figure. By our ledger the setting costs epsilon = 18.899 at delta = 1e-05 "
        "against a participant (unit client, replace-one).",
        "Not run: lectures-randomized-response, ",
    ):
        assert text in done.stdout


def test_an_epsilon_is_rounded_up_and_an_agreement_says_so() -> None:
    done = RUNNER.invoke(app, ["reproduce", "flower-rounds", "lectures-basic-composition", "nvflare-svt"])
    assert "│ 685.24 " in done.stdout
    assert "│ 70,333 " in done.stdout
    assert "Ours agrees with the published figure." in done.stdout


def test_json_is_the_document() -> None:
    document = json.loads(RUNNER.invoke(app, ["reproduce", *NAMES, "--json"]).stdout)
    assert document["kind"] == "reproductions"
    assert [row["name"] for row in document["rows"]] == NAMES


def test_a_figure_that_differs_ends_with_exit_code_1(monkeypatch) -> None:
    wrong = replace(registry.BY_NAME["flower-message"], expected=8.0)
    monkeypatch.setattr(registry, "BY_NAME", {"flower-message": wrong})
    done = RUNNER.invoke(app, ["reproduce", "flower-message"])
    assert done.exit_code == 1
    assert "differs" in done.stdout


@pytest.mark.parametrize("words", [["--data", "x.npz"], ["flower-message", "--data", "x.npz"]])
def test_data_are_of_one_row_with_a_run(words: list[str]) -> None:
    done = RUNNER.invoke(app, ["reproduce", *words])
    assert isinstance(done.exception, InputError)
    assert "--data: is the file of one row with a run." in str(done.exception)
