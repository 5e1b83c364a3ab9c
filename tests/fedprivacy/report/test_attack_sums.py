"""The page of attacks on sums: AUC by the number of clients in the sum, with its bounds and their terms."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from attack_documents import in_arms, measure
from pages import Page, check_charts, check_epsilons, check_whole, worded

from fedprivacy import report
from fedprivacy.documents.kinds import read
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.report.attacks import sums

STRENGTHS = {"listening": 0.75, "raising": 0.97, "listening-aside": 0.7}
SIZES = (1, 4, 16)


@pytest.fixture(scope="module")
def summed(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The attacks of the server in arms of several sizes: without noise, and with shares at epsilon 8."""
    document = in_arms(documents["bare"], STRENGTHS)
    attacks, arms = [], []
    for size in SIZES:
        for old, trust in (("bare", "none"), ("local", "distributed")):
            level = None if old == "bare" else 8.0
            name = f"{old}-{size}"
            arm = copy.deepcopy(next(a for a in document["arms"] if (a["arm"], a["epsilon"]) == (old, level)))
            arms.append({**arm, "arm": name, "trust": trust, "skipped": {}})
            for one in document["attacks"]:
                if (one["arm"], one["epsilon"]) != (old, level) or one["seat"] != "server":
                    continue
                seen = copy.deepcopy(one)
                seen.update(arm=name, trust=trust, clients_in_sum=size)
                if old == "bare":
                    seen["auc"] = measure(0.9 - size / 50)
                else:
                    seen["guarantee"]["assumptions"] = [str(TrainingAssumption.IDEAL_SUM)]
                attacks.append(seen)
    scenario = {**document["scenario"], "arms": {arm["arm"]: {} for arm in arms}}
    return {**document, "attacks": attacks, "arms": arms, "scenario": scenario}


def test_the_picture_has_each_attack_by_the_clients_in_the_sum_and_names_the_sum(summed) -> None:
    page = Page(report.render(summed))
    check_whole(page)
    check_charts(summed)
    check_epsilons(page)
    [section] = sums.sections(read(summed))
    assert section.heading == "What the sum of more clients hides"
    rows = worded(summed).rows()
    for size in SIZES:
        row = next(row for row in rows if row[:2] == [f"{size}", "no privacy"])
        assert row[3].startswith(f"{0.9 - size / 50:.3f} (")
        assert row[4] == "no guarantee"
        held = next(row for row in rows if row[:2] == [f"{size}", "distributed, epsilon 8"])
        assert held[2] == "8"
        assert held[4] != "no guarantee"
    text = page.html.replace("&nbsp;", " ").replace("\N{NO-BREAK SPACE}", " ")
    assert "provided that the sum is an ideal secure sum (simulated)" in text
    assert "delta 1e-5, unit client, adjacency replace-one" in text


def test_each_line_is_one_privacy_and_each_bound_lies_where_the_guarantee_does(summed) -> None:
    attacks = [attack for attack in read(summed).attacks if attack.clients_in_sum is not None]
    panel = sums._panel(attacks, "listening")
    lines = {series.label: series for series in panel.series}  # of one bound
    assert [point.x for point in lines["no privacy"].points] == [1.0, 4.0, 16.0]
    assert [point.y for point in lines["no privacy"].points] == pytest.approx([0.88, 0.82, 0.58])
    bound = next(series for label, series in lines.items() if "allows" in label)
    assert {point.y for point in bound.points} == {
        attack.bound.auc for attack in attacks if attack.epsilon == 8.0
    }
    assert bound.look[0] == lines["distributed, epsilon 8"].look[0]
    assert len(panel.series) == 3


def test_no_picture_of_sums_of_one_size_or_of_updates(summed) -> None:
    alone = {**summed, "attacks": [a for a in summed["attacks"] if a["clients_in_sum"] == 4]}
    assert not sums.sections(read(alone))
    updates = [{**attack, "clients_in_sum": None} for attack in summed["attacks"]]
    assert not sums.sections(read({**summed, "attacks": updates}))
