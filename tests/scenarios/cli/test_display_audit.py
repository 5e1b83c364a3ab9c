"""Audits and choices on the terminal: every epsilon with its terms, every proved bound with its confidence."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.cli.display_audit import show_audit
from scenarios.cli.display_tune import show_tune

TERMS = {"trust": "none", "unit": "client", "adjacency": "replace-one", "of": "training"}
AROUND = {
    "schema": 1, "name": "small", "path": "somewhere", "performance": {"seconds": 1.0, "peak_memory_mb": 2.0},
}  # fmt: skip


def audited(claim: float | None, claimed_delta: float | None, method: str = "one-run") -> dict[str, Any]:
    bound = {"epsilon": 3.6888, "ceiling": 4.8, "delta": 1e-5, "confidence": 0.95, "canaries": 1000}
    observer = {
        "observer": "server",
        "guarantee": {
            **TERMS, "observer": "server", "epsilon": claim, "delta": claimed_delta,
            "assumptions": ["nobody adds noise"],
        },
        "one_run": bound if method == "one-run" else None,
        "canary_clients": None if method == "one-run" else {"epsilon": 2.2, "low": 1.5, "high": 3.0},
        "verdict": {"holds": None, "words": "nothing is refuted."},
    }  # fmt: skip
    return {
        **AROUND, "kind": "audit", "audited": {"words": "Audited.", "false_alarm": 0.05},
        "observers": [observer], "scenario": {},
    }  # fmt: skip


def shown(document: dict[str, Any], capsys: pytest.CaptureFixture[str], verbose: bool = False) -> str:
    show = show_audit if document["kind"] == "audit" else show_tune
    show(document, verbose=verbose)
    return capsys.readouterr().out


def test_a_bound_where_nothing_is_claimed_has_terms_and_confidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(audited(None, None), capsys)
    assert "server: no guarantee (nobody adds noise); canaries prove at least epsilon = 3.688\n" in out
    assert (
        "Each epsilon: delta = 1e-05, unit client, replace-one. Lower bounds hold with 95 % confidence. "
        "Assumptions"
    ) in out
    assert (
        "Each epsilon: delta 1e-5, unit client, adjacency replace-one; lower bounds hold with 95 % confidence."
    ) in shown(audited(None, None), capsys, verbose=True)


def test_a_bound_at_another_delta_than_its_claim_has_its_own_terms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(audited(4.0, 0.0), capsys)
    assert (
        "Each epsilon of a guarantee: delta = 0, unit client, replace-one. "
        "Each epsilon beside it: delta = 1e-05, unit client, replace-one. Lower bounds"
    ) in out
    both = shown(audited(4.0, 0.0), capsys, verbose=True)
    assert "adjacency replace-one where it is claimed; delta 1e-5, unit client" in both


def test_an_estimate_without_a_claim_has_terms_and_no_confidence_of_a_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(audited(None, None, method="canary-clients"), capsys)
    assert "canaries estimate epsilon = 2.2 [1.5, 3]" in out
    assert "Each epsilon: delta = 1e-05, unit client, replace-one. Assumptions" in out


@pytest.mark.exhaustive
def test_an_audit_that_proves_nothing_says_that_canaries_are_too_few(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = audited(8.0, 1e-5)
    [observer] = document["observers"]
    observer["one_run"] |= {
        "epsilon": 0.0, "ceiling": 0.2, "canaries": 20, "checks": 21, "guesses": [{"made": 18, "right": 9}],
    }  # fmt: skip
    out = shown(document, capsys)
    assert out.startswith(
        "small: too few canaries to tell; no number of canaries up to 100,000 proves a bound above epsilon 8 ("
    )
    assert "; too few canaries to tell\n" in out
    assert "at least epsilon = 0" not in out
    observer["one_run"] |= {"ceiling": 9.0, "guesses": [{"made": 900, "right": 450}]}
    out = shown(document, capsys)
    assert out.startswith("small: no claim is refuted (")
    assert "; canaries prove nothing\n" in out


def test_a_refuted_claim_has_the_confidence_of_its_test(capsys: pytest.CaptureFixture[str]) -> None:
    document = audited(2.0, 1e-5)
    document["observers"][0]["verdict"] = {"holds": False, "words": "REFUTED."}
    assert shown(document, capsys).startswith("small: REFUTED with 95 % confidence against the server (")


def test_the_cost_of_releasing_every_candidate_is_named_as_an_epsilon(
    capsys: pytest.CaptureFixture[str],
) -> None:
    held = {**TERMS, "observer": "outsider", "trust": "central", "delta": 1e-5, "assumptions": []}
    bare = {**held, "observer": "server", "epsilon": None, "assumptions": ["the server is trusted"]}
    out = shown(
        {
            **AROUND, "kind": "tune", "scenario": {"tune": {"method": "public"}},
            "choice": {"candidate": 0, "accuracy": 0.9, "score": None, "settings": {"a": 2}, "clients": 60},
            "candidates": [{"settings": {"a": 2}, "public_accuracy": 0.8}],
            "privacy": {"guarantees": [bare, {**held, "epsilon": 2.0}]},
            "naive": {"guarantees": [bare, {**held, "epsilon": 4.0256}]},
        },
        capsys,
    )  # fmt: skip
    assert "all candidates released: epsilon = 4.026\n" in out
    assert "all candidates released: no guarantee\n" in out
    assert "Each epsilon: delta = 1e-05, unit client, replace-one. Assumptions" in out
