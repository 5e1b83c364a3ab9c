"""Runs with budgets that differ, from the scenario to the page; and the commands that refuse them."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.report import groups as of_groups
from fedprivacy.report import page_of, render
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack.scenario import AttackScenario
from fedprivacy.verification.verify import checked_document
from scenarios.api.results import Run as RunResult
from scenarios.budgets.planned_work import planned
from scenarios.budgets.stop_at_epsilon import shortened
from scenarios.cli.display import show_comparison, show_run
from scenarios.experiments.audit_options import check_privacy
from scenarios.experiments.comparison import compare
from scenarios.experiments.limits import with_ablations
from scenarios.runner import run

CENTRAL = (
    *("privacy.epsilon=4.0", "sampling={name='poisson', rate=0.5}"),
    "privacy.groups.light={share=0.25, epsilon=1.0}",
)
LOCAL = ("privacy.epsilon=4.0", "privacy.trust=local", "privacy.groups.careful={share=0.25, epsilon=1.0}")


@pytest.mark.parametrize("changes", [CENTRAL, LOCAL], ids=["central", "local"])
def test_each_group_is_on_the_terminal_and_on_the_page(
    changes: tuple[str, ...], make_scenario, tmp_path: Path
) -> None:
    document = run(make_scenario(*changes), tmp_path)
    name = "light" if changes == CENTRAL else "careful"
    stated = {group["name"]: group for group in document["privacy"]["groups"]}
    assert {key: group["clients"] for key, group in stated.items()} == {name: 3, "others": 9}
    of_groups = RunResult(document).budget_groups
    assert of_groups[name]["outsider"].epsilon <= of_groups["others"]["outsider"].epsilon
    assert RunResult({"privacy": {"guarantees": []}}).budget_groups == {}
    shown = io.StringIO()
    with redirect_stdout(shown):
        show_run(document)
    assert f"by group: {name} 1, others 4" in shown.getvalue()
    assert len(shown.getvalue().splitlines()) <= 6
    with redirect_stdout(shown):
        show_run(document, verbose=True)
    page = page_of(checked_document(Path(document["path"])))
    [section] = [section for section in page.sections if section.id == "budget-groups"]
    table = section.blocks[1]
    [measured_on] = [section.blocks[0] for section in page.sections if section.id == "groups"]
    assert measured_on.text.startswith("Accuracy: clients' records are dealt at random")
    assert [row[0] for row in table.rows] == [name, "others"]
    measured = {group["group"]: group for group in document["final"]["groups"][0]["groups"]}
    assert {key: group["records"] for key, group in measured.items()} == {name: 12, "others": 38}
    for row in table.rows:
        assert row[3].text == f"{100 * measured[row[0]]['accuracy']:.1f} %"
    assert f"accuracy by group: {name} {100 * measured[name]['accuracy']:.1f} %, others" in shown.getvalue()
    for group in stated.values():
        for guarantee in group["guarantees"]:
            assert guarantee["words"] in shown.getvalue()
            if guarantee["epsilon"] is not None:
                assert f"group {group['name']} of {group['clients']} clients" in guarantee["words"]
                assert any(text.startswith("groups are public") for text in guarantee["assumptions"])


def test_the_accuracy_of_each_group_is_measured_on_the_held_out_records_of_its_clients(
    make_scenario, tmp_path: Path
) -> None:
    """They belong to clients, so it is the operator's, as the accuracy of all is then."""
    path, random = tmp_path / "people.npz", np.random.default_rng(1)
    users = np.array([f"u{number:02d}" for number in range(12)])
    x = random.standard_normal((120, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    tested = np.repeat(["u03", "u05", "stranger"], 20)
    np.savez(
        path, x_train=x, y_train=y, x_test=x[:60], y_test=y[:60],
        user_train=np.tile(users, 10), user_test=tested,
    )  # fmt: skip
    data = f"data={{name='npz', path='{path}', partition='by-user'}}"
    asked = make_scenario(data, "privacy.groups.light={clients=[3], weight=0.5}")
    document = run(asked, tmp_path)
    [measured] = document["final"]["groups"]
    assert measured["column"] == "privacy.groups"
    records = {group["group"]: group["records"] for group in measured["groups"]}
    assert sum(records.values()) == 40  # those of the stranger are of no group
    assert records["light"] in (0, 20)
    assert checked_document(Path(document["path"]))["final"]["groups"] == document["final"]["groups"]
    assert "groups" not in (public(document).get("final") or {})


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    "changes",
    [CENTRAL, LOCAL, (*CENTRAL, "privacy.groups.light={share=0.25, epsilon=1.0, through='rate'}")],
    ids=["weight", "noise", "rate"],
)
def test_a_run_that_ends_at_an_epsilon_keeps_the_settings_of_its_groups(
    changes: tuple[str, ...], make_scenario
) -> None:
    asked = make_scenario(*changes, "server.rounds=8")
    limit = 0.6 * plan_of(asked).spent().epsilon
    fewer = shortened(asked, limit)
    whole, part = plan_of(asked), plan_of(fewer)
    assert part.rounds < 8
    assert part.spent().epsilon <= limit
    for first, second in zip(whole.groups.groups, part.groups.groups, strict=True):
        for setting in ("noise_multiplier", "rate", "weight"):
            values = [getattr(group, setting) or 0.0 for group in (first, second)]
            assert values[0] == pytest.approx(values[1], rel=1e-3)
        assert part.of_group(second.name).spent().epsilon < whole.of_group(first.name).spent().epsilon


@pytest.mark.parametrize("changes", [CENTRAL, LOCAL], ids=["central", "local"])
def test_an_account_is_charged_for_the_group_that_is_protected_least(
    changes: tuple[str, ...], make_scenario
) -> None:
    """A policy covers every client, so what enters it is the dearest group's."""
    with_groups, without = make_scenario(*changes), make_scenario(*changes)
    tables = without.tables()
    tables["privacy"].pop("groups")
    without = Scenario.from_tables(tables, "without")
    [charged], [plain] = planned(with_groups).ledgers, planned(without).ledgers
    assert [claim["event"] for claim in charged["claims"]] == [claim["event"] for claim in plain["claims"]]


def test_commands_that_know_one_budget_refuse_groups(make_scenario, base_text: str) -> None:
    asked = make_scenario(*CENTRAL)
    with pytest.raises(InputError, match="would say nothing of a group"):
        check_privacy(asked.privacy, "scenario")
    with pytest.raises(InputError, match="--limits"):
        with_ablations(asked)
    attack = base_text + "[game]\nmembers = 5\nnonmembers = 5\n[attacks.loss]\nseat = 'outsider'\n"
    with pytest.raises(InputError, match="would judge each group by the claim of all"):
        AttackScenario.from_text(attack, overrides=CENTRAL)
    with pytest.raises(InputError, match="an ablation is measured against one budget"):
        make_scenario(
            *CENTRAL, 'compare.limits=["norm-half"]', "compare.epsilons=[4.0]", "compare.seeds=[1, 2]"
        )


def some_people(path: Path) -> str:
    random = np.random.default_rng(1)
    x = random.standard_normal((240, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    np.savez(path, x_train=x[:120], y_train=y[:120], x_test=x[120:], y_test=y[120:])
    return f"name='npz', path='{path}', clients=12"


@pytest.mark.parametrize(
    ("partition", "more", "withheld"),
    [("by-label", "", True), ("by-label", ", public=true", False), ("iid", "", False)],
    ids=["people's labels", "public labels", "no labels"],
)
def test_accuracy_by_labels_of_people_is_the_operators_alone(
    partition: str, more: str, withheld: bool, make_scenario, tmp_path: Path
) -> None:
    """Which test record is of which group follows from clients' labels there, exactly and without noise."""
    data = f"data={{{some_people(tmp_path / 'p.npz')}, partition='{partition}'{more}}}"
    document = run(make_scenario(data, *CENTRAL), tmp_path)
    checked = checked_document(Path(document["path"]))
    whole, shown = render(checked, operator=True), render(checked)
    assert len(checked["final"]["groups"]) == 1
    assert ("groups" in public(checked)["final"]) != withheld
    assert ("The accuracy of each group is operator-only" in shown) == withheld
    assert "The accuracy of each group is operator-only" not in whole


def test_without_noise_the_page_says_whose_records_the_accuracy_of_a_group_is_on(
    make_scenario, tmp_path: Path
) -> None:
    data = f"data={{{some_people(tmp_path / 'p.npz')}, partition='by-label'}}"
    groups = "privacy.groups.light={clients='0-2'}"
    document = run(make_scenario(data, "privacy={trust='none'}", groups), tmp_path)
    checked = checked_document(Path(document["path"]))
    whole, shown = (unescape(render(checked, operator=operator)) for operator in (True, False))
    assert (of_groups.BY_LABEL in whole, of_groups.WITHHELD in whole) == (True, False)
    assert (of_groups.BY_LABEL in shown, of_groups.WITHHELD in shown) == (False, True)


def test_a_stored_run_cannot_leave_out_that_its_accuracies_are_the_operators(
    make_scenario, tmp_path: Path
) -> None:
    data = f"data={{{some_people(tmp_path / 'p.npz')}, partition='by-label'}}"
    document = run(make_scenario(data, *CENTRAL), tmp_path)
    stored = Path(document["path"]) / "run.json"
    stored.write_text(json.dumps({**json.loads(stored.read_text()), "simulation_only": None}))
    with pytest.raises(InputError, match="simulation_only"):
        checked_document(Path(document["path"]))


COMPARED = (
    *("compare.epsilons=[4.0]", "compare.seeds=[1]", "compare.baselines=false"),
    "compare.option.by-rate.privacy.groups.light={share=0.25, epsilon=1.0, through='rate'}",
)


def test_each_cell_of_a_comparison_has_the_groups_with_their_own_budgets(
    make_scenario, tmp_path: Path
) -> None:
    """The claims and accuracies of a cell are those of the run by itself; without noise, accuracy alone."""
    asked = make_scenario(*CENTRAL, *COMPARED)
    document = compare(asked, tmp_path, workers=1)
    cells = {cell["trust"]: cell for cell in document["cells"]}
    alone = run(make_scenario(*CENTRAL), tmp_path)
    assert cells["central"]["budget_groups"] == alone["privacy"]["groups"]
    [measured] = cells["central"]["groups"]
    assert [group["accuracy"]["mean"] for group in measured["groups"]] == [
        group["accuracy"] for group in alone["final"]["groups"][0]["groups"]
    ]
    assert [group["noise_multiplier"] for group in cells["local"]["budget_groups"]][1] is None
    assert cells["local"]["budget_groups"][0]["noise_multiplier"] > 1
    assert "budget_groups" not in cells["none"]
    assert [group["group"] for group in cells["none"]["groups"][0]["groups"]] == ["light", "others"]
    [option] = document["options"]
    assert option["budget_groups"][0]["rate"] < 0.5
    assert [option["budget_groups"][0]["weight"], cells["central"]["budget_groups"][0]["rate"]] == [
        None,
        None,
    ]
    checked = checked_document(Path(document["path"]))
    [section] = [section for section in page_of(checked).sections if section.id == "budget-groups"]
    assert len(section.blocks[1].rows) == 3 + 6  # a heading for each cell with noise, and two groups
    shown = io.StringIO()
    with redirect_stdout(shown):
        show_comparison(document)
    assert "  by-rate at epsilon 4: light " in shown.getvalue()
    checked["cells"][1]["budget_groups"][0]["guarantees"][1]["epsilon"] = 0.1
    (Path(document["path"]) / "run.json").write_text(json.dumps(checked))
    with pytest.raises(InputError, match="budget_groups"):
        checked_document(Path(document["path"]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            ("compare.epsilons=[0.5, 4.0]",),
            "0.5 is below privacy.groups.light.epsilon = 1. They are budgets of",
        ),
        (
            ("privacy.groups.light={share=0.25, weight=0.5}",),
            'trust "local": privacy.groups.light.weight = 0.5',
        ),
        (("compare.option.few.sampling={name='fixed', cohort=3}",), 'option "few": privacy.groups: sampling'),
        (
            ("compare.trusts=['central']", "compare.units=['client', 'example']"),
            'unit "example": privacy.groups',
        ),
    ],
    ids=["epsilon", "weight", "cohort", "unit"],
)
def test_cells_that_cannot_have_the_groups_are_refused_before_any_runs(
    changes: tuple[str, ...], words: str, make_scenario, tmp_path: Path
) -> None:
    with pytest.raises((InputError, ScenarioError)) as refused:
        compare(make_scenario(*CENTRAL, *changes), tmp_path, workers=1)
    assert words in str(refused.value), str(refused.value)
    assert not list(tmp_path.iterdir())
