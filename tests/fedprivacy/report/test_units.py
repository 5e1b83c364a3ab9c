"""What a report says of the unit of privacy, and how batches of records were drawn."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from pages import Page, check_whole, poisoned, safe, saved, worded
from shown import check_shown

from fedprivacy import report
from fedprivacy.accounting.composition import group
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.records.comparison_summary import finding
from fedprivacy.report import arm_labels, batches, words
from fedprivacy.report.charts import looks

SIZES = {"smallest": 1, "median": 3, "largest": 400}
POISSON = {"name": "poisson", "steps": 10, "rate": 0.2, "batch_size": None}
CLASSES = [{"class": at, "label": None, "accuracy": 0.5, "records": 50} for at in range(2)]


def guarantees(trust: str, unit: str, epsilon: float | None) -> list[dict[str, Any]]:
    return [
        {
            "observer": observer, "trust": trust, "unit": unit, "delta": 1e-5, "adjacency": "replace-one",
            "epsilon": None if (trust, observer) == ("central", "server") else epsilon,
            "assumptions": ["the shared one", f"the one of {unit}"], "accountant": "PLD", "rounds": 5,
        }
        for observer in ("server", "participant", "outsider")
    ]  # fmt: skip


def cell(trust: str, unit: str, epsilon: float | None, mean: float, **more: Any) -> dict[str, Any]:
    of_records = unit == "example"
    return {
        "trust": trust, "unit": unit, "asked": None, "mechanism": "gaussian", "epsilon": epsilon,
        "seeds": [1, 2], "accuracies": [mean, mean], "accuracy": {"mean": mean, "low": mean, "high": mean},
        "noise_multiplier": 5.0, "noise": "noise multiplier 5", "clipping_norm": 1.0, "population": 100,
        "sampling": {"name": "all"}, "batches": POISSON if of_records else None, "rounds": 5,
        "records_per_client": SIZES if of_records else None, "per_class": CLASSES,
        "training": {"batches": "poisson", "averaging": False, "trainer": "fedprivacy", "learning_rate": 0.5},
        "curve": [{"round": at, "accuracy": mean} for at in (1, 5)],
        "guarantees": guarantees(trust, unit, epsilon), "runs": [f"{trust}-{unit}-{epsilon}/1"], **more,
    }  # fmt: skip


def compared() -> dict[str, Any]:
    cells = [cell("none", "example", None, 0.9)]
    cells += [
        cell(trust, unit, e, 0.7 + 0.01 * e + (unit == "example") * 0.1)
        for trust in ("central", "local")
        for unit in ("client", "example")
        for e in (1.0, 8.0)
    ]
    return {
        "schema": 1, "kind": "compare", "name": "units", "cells": cells, "finding": finding(cells),
        "interval": "95 % Student t over seeds", "operator_only": [],
        "scenario": {"compare": {"units": ["client", "example"], "epsilons": [1.0, 8.0]}, "data": {}},
    }  # fmt: skip


def ran(trust: str = "local", **more: Any) -> dict[str, Any]:
    return {
        "schema": 1, "kind": "run", "name": "records", "operator_only": [], "final": {"accuracy": 0.7, "loss": 1.0},
        "rounds": [{"accuracy": 0.6, "loss": 1.2}, {"accuracy": 0.7, "loss": 1.0}],
        "scenario": {"server": {"rounds": 2}, "training": {"averaging": True}},
        "privacy": {
            "trust": trust, "unit": "example", "adjacency": "replace-one", "delta": 1e-5, "mechanism": "gaussian",
            "clipping_norm": 1.0, "noise_multiplier": 3.0, "population": 4, "batches": POISSON,
            "records_per_client": SIZES, "guarantees": guarantees(trust, "example", 2.0), **more,
        },
    }  # fmt: skip


SPENT = {
    "largest": 2.0, "median": 1.5,
    "groups": [
        {"epsilon": 0.7, "clients": 1, "answers": 1, "records": 20},
        {"epsilon": 1.5, "clients": 2, "answers": 2, "records": 20},
        {"epsilon": 2.0, "clients": 1, "answers": 2, "records": None},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(report.render(compared()))


# --- a comparison of units


def test_arms_are_trust_models_with_units_and_each_looks_otherwise() -> None:
    arms = CompareDocument.model_validate(compared()).arms
    assert [arm_labels.arm(one) for one in arms] == [
        "No noise", "Central, unit client", "Central, unit example", "Local, unit client", "Local, unit example",
    ]  # fmt: skip
    assert len({str(look) for look in looks.arms(arms).values()}) == 5
    document = compared()
    for one in document["cells"][5:7]:
        one.update(asked="auto")
    document["scenario"]["compare"]["mechanisms"] = ["auto", "gaussian"]
    more = CompareDocument.model_validate(document).arms
    assert [arm_labels.arm(one) for one in more[3:]] == [
        "Local, unit client, best mechanism (auto)", "Local, unit client, Gaussian", "Local, unit example",
    ]  # fmt: skip
    assert len({str(look) for look in looks.arms(more).values()}) == 6


def test_a_comparison_of_one_unit_has_the_arms_and_the_page_that_it_had() -> None:
    document = compared()
    document["cells"] = [one for one in document["cells"] if one["unit"] == "client"]
    document["finding"] = finding(document["cells"])
    del document["scenario"]["compare"]["units"]
    arms = CompareDocument.model_validate(document).arms
    assert {one.unit for one in arms} == {None}
    shown = Page(report.render(document))
    for one in document["cells"]:  # as before there was a choice
        for key in ("unit", "batches", "records_per_client"):
            del one[key]
    assert report.render(document) == shown.html
    assert "Is a client protected from this observer?" in shown.text("guarantees")
    assert "unit example" not in shown.text()


def test_legend_tables_and_matrix_name_the_unit(page: Page) -> None:
    both = {f"{trust}, unit {unit}" for trust in ("Central", "Local") for unit in ("client", "example")}
    assert both <= {row[0].split(" holds ")[0] for row in page.rows() if len(row) == 1}
    assert all(name in page.text("frontier-wide") for name in both)
    assert both <= set(page.rows("settings")[0])
    assert all(any(row[0].startswith(name) for row in page.rows("guarantees")) for name in both)
    assert "Is a client, or a record, protected from this observer?" in page.text("guarantees")
    assert "delta 1e-5, unit client or example, adjacency replace-one" in page.text("guarantees")
    assert "Comparison of trust models and units of privacy" in page.text("eyebrow")


def test_the_matrix_says_who_adds_noise_to_what(page: Page) -> None:
    rows = {row[0]: row for row in page.rows("guarantees")[1:6]}
    assert set(rows) == {
        "No noise Nobody adds noise.",
        "Central, unit client The server adds the noise, once per round. Protects one client (all its records).",
        "Central, unit example The server adds the noise to the sum of clipped gradients, once per round. "
        "Protects one record.",
        "Local, unit client Each client adds noise before anything leaves it. Protects one client (all its records).",
        "Local, unit example Each client adds noise in every step of its training. Protects one record.",
    }
    [records] = (row for name, row in rows.items() if name.startswith("Central, unit example"))
    assert "it receives sums of clipped gradients before the noise is added" in records[1]


def test_what_all_guarantees_rest_on_stands_once(page: Page) -> None:
    rows = [row for row in page.rows("guarantees") if len(row) == 2]
    assert ["All of them", "the shared one"] in rows
    assert ["Local, unit example", "the one of example"] in rows


def test_equal_epsilon_is_not_an_equal_promise(page: Page) -> None:
    assert "unit example protects one record, unit client all records of a client" in page.text("finding")
    alone = worded(ran())
    assert "since each client adds the noise as it trains" in alone.text("guarantees")
    assert "unit client" not in alone.text("guarantees")


def test_what_a_units_epsilon_means_for_a_whole_client_is_group_privacy(page: Page) -> None:
    head, *rows = page.rows("units")
    assert head[1:] == [
        "Smallest client (1 record)",
        "Median client (3 records)",
        "Largest client (400 records)",
    ]
    assert rows[0][1] == "Epsilon 1 at delta 1e-5; right in at most 73.2 % of guesses"
    epsilon, delta = group(1.0, 1e-5, 3)
    assert (epsilon, delta) == (3.0, pytest.approx(3 * math.exp(2) * 1e-5))
    assert rows[0][2] == "Epsilon 3 at delta 0.0002217; right in at most 95.3 % of guesses"
    assert rows[0][3] == "Says nothing its delta would be 1 or more"
    assert rows[1][2].startswith("Says nothing")  # 3 e^16 1e-5 is above 1
    text = page.text("units")
    assert "One client with all its records: a person whose phone holds them, or a hospital" in text
    assert "is not protected as a whole" in text
    assert "So the guarantee for records says nothing about any" not in text


def test_where_no_client_is_told_anything_it_is_said_in_words() -> None:
    document = ran(records_per_client={"smallest": 31, "median": 173, "largest": 200})
    assert "So the guarantee for records says nothing about any of these clients as a whole." in Page(
        report.render(document)
    ).text("units")
    large = ran(guarantees=guarantees("local", "example", 900.0))  # beyond what the theorem is used for
    assert worded(large).rows("units")[1][1].startswith("Says nothing")
    bounded = ran(guarantees=guarantees("local", "example", 30.0))
    assert (
        worded(bounded)
        .rows("units")[1][1]
        .startswith("Epsilon 30 at delta 1e-5; right in at most 100 % of guesses")
    )


def test_the_noise_that_hides_one_of_few_clients_is_told(page: Page) -> None:
    said = page.text("units")
    assert "the mean update of a round of 100 clients" in said
    assert "standard deviation 0.05 to 0.5 clipping norms" in said  # 5 / 100 and 5 / sqrt(100)


def test_settings_that_have_no_effect_are_left_out(page: Page) -> None:
    rows = {row[0]: row[1:] for row in page.rows("settings")}
    assert rows["Unit of privacy"][1:3] == ["one client (all its records)", "one record"]
    assert rows["Batches of records"][1:3] == ["—", "10 Poisson batches of rate 0.2 in a round"]
    assert "averaging" not in rows["Inside each client"][1]
    assert "averaging no" in rows["Inside each client"][2]


# --- a run that protects records


def test_a_run_says_how_batches_were_drawn() -> None:
    shown = worded(ran())
    rows = {row[0]: row[1:] for row in shown.rows("batches")}
    assert rows["Steps in a round"] == ["10", "10", "10"]
    assert rows["Records in a batch, on average"] == ["0.2", "0.6", "80"]
    assert rows["Chance that a record is in a batch"] == ["0.2", "0.2", "0.2"]
    assert "in every step the gradients of the records in a batch are clipped" in shown.text("batches")
    assert "standard deviation 3 clipping norms, on the sum of each batch" in shown.text("batches")
    assert "Batches 10 Poisson batches of rate 0.2 in a round" in shown.text("settings")
    central = worded(ran("central")).text("batches")
    assert "each client sends the sum of the clipped gradients of one batch" in central


def test_shuffled_passes_take_as_many_steps_as_a_client_has_batches() -> None:
    shuffled = {"name": "shuffled", "epochs": 2, "batch_size": 3}
    rows = {row[0]: row[1:] for row in worded(ran(batches=shuffled)).rows("batches")}
    assert rows["Steps in a round"] == ["2", "2", "268"]
    assert rows["Records in a batch, on average"] == ["1", "3", "2.99"]
    assert "Chance that a record is in a batch" not in rows


def test_where_clients_differ_their_epsilons_are_drawn_and_listed() -> None:
    shown = Page(report.render(ran(per_client=SPENT)))
    check_whole(shown)
    text = shown.text("batches")
    assert (
        "epsilon 2 at most, and 1.5 at most in half of the clients (delta 1e-5, unit example, adjacency replace-one"
        in text
    )
    assert "against the server, other participants and outsiders" in text
    rows = shown.rows("batches")
    assert ["1.5", "2", "2", "20 or more"] in rows
    assert ["2", "1", "2", "all"] in rows
    one = {"largest": 2.0, "median": 2.0, "groups": SPENT["groups"][2:]}
    alike = worded(ran(per_client=one))
    assert "A record costs the same in every client (1 client): epsilon 2" in alike.text("batches")
    assert len(alike.all("figure")) == len(shown.all("figure")) - 1


def test_without_noise_nothing_is_said_of_groups() -> None:
    document = ran("none", guarantees=guarantees("none", "example", None), noise_multiplier=None)
    shown = worded(document)
    assert "Each client trains on batches of its own records; nobody adds noise." in shown.text("batches")
    assert not shown.text("units")


@pytest.mark.parametrize(
    "value",
    [{"name": "dice"}, {"name": "poisson"}, {"name": "poisson", "steps": 1, "rate": "x"}, {"name": ["poisson"]},
     {"name": "shuffled", "epochs": 1, "batch_size": "many"}, {"name": "poisson", "steps": 1, "rate": 0.1, "x": 1}],
)  # fmt: skip
def test_batches_that_are_not_ours_are_printed_as_they_are(value: dict[str, Any]) -> None:
    shown = worded(ran(batches=value))
    assert not shown.text("batches")
    assert batches.describe(value) in shown.text("settings")


@pytest.mark.parametrize("document", [compared(), ran(per_client=SPENT)], ids=["compare", "run"])
def test_nothing_in_a_document_becomes_markup(document: dict[str, Any]) -> None:
    safe(worded(poisoned(document, ("kind", "trust", "observer", "unit"))).html)
    safe(report.render(poisoned(document)))


def test_no_epsilon_is_bare(page: Page) -> None:
    for shown in (page, worded(ran(per_client=SPENT))):
        block = r"<figcaption>.*?</figcaption>|<div class=.finding.>.*?</aside>|<p>.*?</p>|<table.*?</table>"
        for text in re.findall(block, shown.html, re.DOTALL):
            plain = re.sub(r"<[^>]*>|\s+", " ", text)
            if re.search(r"[Ee]psilon \d", plain):
                assert re.search(r"delta 1e-5, unit (client or )?example, adjacency replace-one", plain), (
                    plain
                )
                assert re.search(r"server|participants|outsiders|observer", plain), plain


# --- the words


def test_terms_of_both_units_stand_once() -> None:
    found = [Guarantee(**one) for unit in ("example", "client") for one in guarantees("local", unit, 1.0)]
    assert words.terms(found) == "delta 1e-5, unit example or client, adjacency replace-one"


def test_arms_of_one_unit_go_by_its_name() -> None:
    every = [
        Arm("local", "auto", 0, "client"), Arm("local", "gaussian", 1, "client"), Arm("local", None, 2, "example")
    ]  # fmt: skip
    assert arm_labels.arms(every[:2], every) == "Local, unit client"
    assert arm_labels.arms(every, every) == "Local"
    assert arm_labels.arms(every[1:], every) == "Local, unit client, Gaussian\nLocal, unit example"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_pages_show_in_a_real_browser(page: Page, browser: Any, tmp_path: Path) -> None:
    check_shown(browser, saved(page, tmp_path))
    check_shown(browser, report.write(ran(per_client=SPENT), tmp_path))
