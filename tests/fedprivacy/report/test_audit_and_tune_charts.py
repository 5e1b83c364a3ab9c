"""The pictures of an audit and of a choice of settings show the figures of their documents, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from pages import charts_of, check_charts

from fedprivacy.attacks.sample_size import canaries_needed
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import page_of, words
from fedprivacy.report.blocks import Table, Text
from fedprivacy.tuning.assumptions import TuningAssumption

GUARANTEE = {
    "observer": "outsider", "trust": "central", "epsilon": 4.8452518, "delta": 0.001, "unit": "client",
    "adjacency": "replace-one", "sampling": "all", "rounds": 2, "accountant": "RDP", "assumptions": [],
    "of": "training", "words": "",
}  # fmt: skip


def audited(high: float | None = 6.1) -> dict[str, Any]:
    bound = {"epsilon": 0.52, "ceiling": 1.3, "delta": 0.001, "confidence": 0.95, "canaries": 20}
    observer = {
        "observer": "outsider", "guarantee": GUARANTEE, "one_run": bound, "if_gaussian": None,
        "canary_clients": {"epsilon": 2.2, "low": 0.0, "high": high},
        "verdict": {"holds": None, "words": "proves nothing."},
    }  # fmt: skip
    bare = {
        "observer": "server", "guarantee": {**GUARANTEE, "observer": "server", "epsilon": None},
        "one_run": None, "if_gaussian": None, "canary_clients": None,
        "verdict": {"holds": None, "words": "nothing is claimed."},
    }  # fmt: skip
    return {
        "schema": 1, "kind": "audit", "name": "small", "audited": {"words": "Audited.", "false_alarm": 0.05},
        "observers": [bare, observer], "scenario": {},
    }  # fmt: skip


def tuned(public: bool = True) -> dict[str, Any]:
    scores = [0.7, 0.9, 0.8]
    return {
        "schema": 1, "kind": "tune", "name": "small",
        "scenario": {"tune": {"method": "public" if public else "random-stopping"}},
        "choice": {"candidate": 1, "accuracy": 0.9, "score": None, "settings": {"a": 2}, "clients": 60},
        "candidates": [
            {"settings": {"a": at}, "public_accuracy": score if public else None}
            for at, score in enumerate(scores)
        ],
        "tries": [{"candidate": 1, "score": 123.456}],
        "privacy": {"guarantees": [{**GUARANTEE, "epsilon": 3.1}]},
        "naive": {"guarantees": [GUARANTEE]},
    }  # fmt: skip


def points(chart: Any, panel: int = 0) -> dict[str, list[float]]:
    return {series.label: [point.x for point in series.points] for series in chart.panels[panel].series}


def test_an_audit_has_claim_bound_and_ceiling_on_one_axis_rounded_as_in_its_table() -> None:
    [chart] = charts_of(audited())
    assert "The estimate" in chart.caption
    shown = points(chart)
    assert shown["Claimed"] == [4.846]  # up
    assert shown["Proved at least"] == [0.52]
    assert shown["Ceiling of so many canaries"] == [1.3]
    assert shown["Proved at least, if Gaussian"] == []
    [estimate] = [point for series in chart.panels[0].series for point in series.points if point.interval]
    assert estimate.interval == (0.0, 6.1)
    assert chart.panels[0].x_ends[0] == 0.0
    assert "goes on beyond" not in chart.caption
    check_charts(audited())


def test_an_interval_without_an_end_goes_beyond_the_axis_and_the_caption_says_so() -> None:
    [chart] = charts_of(audited(high=None))
    assert "goes on beyond it" in chart.caption


def test_a_choice_has_the_score_of_each_candidate_and_what_it_costs() -> None:
    [chart] = charts_of(tuned())
    assert points(chart) == {"Chosen": [0.9], "Not chosen": [0.8, 0.7]}
    assert points(chart, 1) == {
        "The choice, training included": [3.1], "All 3 candidates, released": [pytest.approx(4.845, abs=1e-3)],
    }  # fmt: skip
    check_charts(tuned())


def test_a_score_has_an_interval_where_its_public_records_were_counted() -> None:
    assert "without intervals" in charts_of(tuned())[0].caption
    counted = tuned()
    for candidate in counted["candidates"]:
        candidate["public_records"] = 100
    [chart] = charts_of(counted)
    [chosen] = chart.panels[0].series[0].points
    assert chosen.interval == pytest.approx((0.826, 0.945), abs=0.001)  # Wilson, of 90 in 100
    assert "the largest of 3 is flattered a little" in chart.caption
    check_charts(counted)


def test_scores_on_clients_records_are_in_no_picture() -> None:
    [chart] = charts_of(tuned(public=False))
    assert len(chart.panels) == 1
    assert "123" not in chart.alt + chart.caption + str(chart.derived_tables)
    assert "are the operator's" in chart.caption


def canaries(epsilon: float, claim: float | None, right: int, **verdict: Any) -> dict[str, Any]:
    document = audited()
    [_, observer] = document["observers"]
    guesses = [{"made": 54, "right": right}]
    observer["one_run"] |= {
        "epsilon": epsilon,
        "delta": 1e-5,
        "canaries": 60,
        "checks": 21,
        "guesses": guesses,
    }
    observer["guarantee"] = {**GUARANTEE, "epsilon": claim}
    observer["verdict"] |= verdict
    return document


def needed(document: dict[str, Any]) -> list[Any]:
    """The canaries that each row of the page needs."""
    [table] = [block for block in page_of(document).lead if isinstance(block, Table)]
    assert not [block for block in page_of(document).lead if isinstance(block, Text)]  # no other number
    return [row[table.head.index("canaries needed")] for row in table.rows]


def test_each_row_of_an_audit_has_the_canaries_that_it_needs() -> None:
    document = canaries(0.0, 2.0, 30)
    answer = page_of(document).answer
    assert answer.sentence == (
        "60 canaries are too few to tell: they prove nothing against outsiders; epsilon 2 is claimed."
    )
    assert (answer.value, answer.label) == (
        "too few",
        "canaries to tell against outsiders; epsilon 2 is claimed",
    )
    assert needed(document) == ["—", "53"]
    few = canaries_needed(0.0, 1e-5, 0.05 / 21, 0.9, 30 / 54)
    assert needed(canaries(0.0, None, 30)) == ["—", f"{few:,}"]
    assert needed(canaries(0.0, 8.0, 27)) == needed(canaries(0.0, None, 27)) == ["—", "over 100,000"]
    assert needed(canaries(0.5, None, 50)) == ["—", "—"]


def test_a_claim_that_another_test_refutes_is_not_said_to_be_below_the_bound() -> None:
    answer = page_of(canaries(0.5, 2.0, 50, holds=False)).answer
    assert answer.value == "REFUTED"
    assert answer.sentence == (
        "REFUTED with 95 % confidence: against outsiders epsilon 2 is claimed, and what was measured "
        "contradicts it."
    )
    document = canaries(3.0, 2.0, 50, holds=False)
    answer = page_of(document).answer
    assert answer.value == "3"
    assert answer.sentence.startswith("REFUTED with 95 % confidence: ")
    assert answer.sentence.endswith("canaries prove at least epsilon 3.")
    exact = {"clients": 9, "records": [1, 9], "allowed": 2.0, "distance": 1.9, "others": 0.0, "changed": 0}
    document["audited"]["neighbours"] = exact
    assert page_of(document).answer.sentence.startswith("REFUTED with")
    exact["distance"] = 2.1  # no chance is in this comparison
    assert page_of(document).answer.sentence.startswith("REFUTED: ")


@pytest.mark.parametrize(
    ("claim", "ceiling", "made", "right", "too_few"),
    [
        (8.0, 1.3, 900, 450, True),  # so many cannot exceed the claim
        (0.2, 1.3, 18, 9, True),  # guesses may be right as often as the claim allows, or not
        (0.2, 1.3, 900, 490, True),  # more of these would prove a bound
        (1.0, 4.8, 900, 450, False),  # fewer right than the claim allows: enough to tell
        (None, 4.8, 900, 450, False),
        (None, 4.8, 18, 12, True),
    ],
)
def test_canaries_that_prove_nothing_are_too_few_where_more_would_tell(
    claim: float | None, ceiling: float, made: int, right: int, too_few: bool
) -> None:
    document = canaries(0.0, claim, right)
    del document["observers"][0]
    document["observers"][0]["one_run"] |= {
        "ceiling": ceiling,
        "canaries": made,
        "guesses": [{"made": made, "right": right}],
    }
    answer = page_of(document).answer
    assert answer.value == ("too few" if too_few else "no bound")
    assert answer.value in answer.sentence


@pytest.mark.parametrize("claim", [2.0, None])
def test_a_proved_epsilon_has_its_terms_and_confidence_above_everything(claim: float | None) -> None:
    document = canaries(0.5, claim, 50)
    bound_terms = "delta 1e-5, unit client, adjacency replace-one"
    if claim is None:
        [chart] = charts_of(document)
        expected = f"{bound_terms}; lower bounds hold with 95 % confidence"
        assert expected in chart.caption
        assert page_of(document).answer.terms == f"Each epsilon: {expected}."
    else:  # claimed at another delta
        assert page_of(document).answer.terms == (
            "Each epsilon: delta 0.001, unit client, adjacency replace-one where it is claimed; "
            f"{bound_terms} where it is measured; lower bounds hold with 95 % confidence."
        )
    assert "95 % confidence" in page_of(document).answer.label


def test_an_observer_without_a_guarantee_has_the_stated_reason_and_no_sentence_about_noise() -> None:
    document = tuned(public=False)
    bare = {**GUARANTEE, "epsilon": None}
    document["privacy"]["guarantees"] = [
        {**bare, "observer": "server", "assumptions": [TrainingAssumption.SERVER_SEES_UPDATES]},
        {**bare, "observer": "participant", "assumptions": [TuningAssumption.SENT_ALL]},
        {**GUARANTEE, "epsilon": 3.1},
    ]
    document["naive"]["guarantees"] = [{**bare, "observer": "server"}]
    page = page_of(document)
    [protected] = [section for section in page.sections if section.id == "guarantees"]
    matrix = protected.blocks[0]
    assert isinstance(matrix, Table)
    _, server, participant, outsider = matrix.rows[0]
    assert server.note == words.WHY["central", "server"]
    assert participant.text == words.NO_GUARANTEE
    assert participant.note == f"{words.capital(TuningAssumption.SENT_ALL)}."
    assert outsider.note.endswith(words.WHY["central", "outsider"])
    [costs] = [block for block in page.lead if isinstance(block, Table)]
    assert [row[1].text for row in costs.rows] == [words.NO_GUARANTEE, words.NO_GUARANTEE, "3.1"]
    assert costs.rows[0][2] == costs.rows[0][1]


def test_local_noise_is_no_reason_for_the_lack_of_a_guarantee() -> None:
    terms = {**GUARANTEE, "observer": "server", "trust": "local", "epsilon": None, "words": None}
    reads = Guarantee.new(**{**terms, "assumptions": (TrainingAssumption.SERVER_READS,)})
    assert words.meaning(reads) == f"{words.capital(TrainingAssumption.SERVER_READS)}."
    assert words.meaning(Guarantee.new(**{**terms, "trust": "none"})) == words.WHY["none", "server"]
    assert words.meaning(Guarantee.new(**terms)) == "Nothing is guaranteed against the server."
