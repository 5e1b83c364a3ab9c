"""A real document of each kind, some of several trust models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedprivacy.forecast.question import Question
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from scenarios.authoring.catalogue import find
from scenarios.experiments import comparison, statistics_comparison
from scenarios.experiments.audit import audit
from scenarios.experiments.erm_study import fit
from scenarios.experiments.planning import plan
from scenarios.experiments.statistics_run import ask
from scenarios.experiments.tuning import tune
from scenarios.runner import run

TRUSTS = {
    "none": ("server.rounds=2", "privacy.trust=none"),
    "central": ("server.rounds=2", "privacy.trust=central", "privacy.epsilon=2.0"),
    "local": ("server.rounds=2", "privacy.trust=local", "sampling.name=all", "privacy.epsilon=8.0"),
}
KINDS = (
    *(f"run-{trust}" for trust in TRUSTS),
    *("compare", "statistics", "choice", "compare-statistics", "replay-bare", "replay-private"),
    *("audit", "audit-local", "tune", "erm", "plan"),
)


def documents_of_each_kind(
    out: Path, make_scenario: Any, make_statistics: Any, attacks: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Runs a small scenario of each kind; that of attacks was run before."""
    few = 'compare={trusts=["none", "central", "local"], epsilons=[1.0, 8.0], seeds=[1, 2]}'
    grid = 'tune={method="public", grid={server={learning_rate=[0.01, 0.1]}}}'
    survey = load(
        find("star-wars-survey"), ["data.clients=200", "compare.clients=[50, 200]", "compare.repeats=3"]
    )
    disease = load(find("common-disease"), ["data.clients=500"])
    tuned = load(find("tuned"), [grid, "server.rounds=2"])
    assert isinstance(survey, Statistics)
    assert isinstance(disease, Statistics)
    assert isinstance(tuned, TuneScenario)
    study = ["study.repeats=2", "study.records=[200, 400]", "study.epsilons=[0.5, 2.0]"]
    erm = load(find("private-erm"), ["data.records=400", *study])
    audited = [Scenario.from_text(make_scenario(*TRUSTS[trust]).to_toml()) for trust in ("central", "local")]
    question = Question(("central",), target_accuracy=0.6, epsilon=8.0, repeats=2)
    return {
        **{f"run-{trust}": run(make_scenario(*changes), out) for trust, changes in TRUSTS.items()},
        "compare": comparison.compare(make_scenario("server.rounds=2", few), out, workers=1),
        "statistics": ask(make_statistics("privacy.trust=local"), out),
        "choice": ask(disease, out),
        "compare-statistics": statistics_comparison.compare(survey, out, workers=1),
        "replay-bare": attacks["bare"],
        "replay-private": attacks["private"],
        "audit": audit(audited[0], out, canaries=50),
        "audit-local": audit(audited[1], out, canaries=50),
        "tune": tune(tuned, out, workers=1),
        "erm": fit(erm, out),
        "plan": plan(make_scenario("server.rounds=1"), question, out, workers=1),
    }
