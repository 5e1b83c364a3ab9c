"""A ledger of an audit that agrees with itself, and not with what its plan's rounds can have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.audit import audit

SUM = ("privacy.trust=local", "privacy.noise_draw=sum", "server.rounds=2")
HALF = (*SUM, "sampling={name='poisson', rate=0.5}")


@pytest.fixture(scope="module", params=[SUM, HALF], ids=["all", "poisson"])
def audited(
    request: pytest.FixtureRequest, make_scenario: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    scenario = make_scenario(*request.param)
    return Path(audit(scenario, tmp_path_factory.mktemp("out"), canaries=10, method="one-run")["path"])


def test_a_ledger_of_more_shares_or_fewer_answers_than_the_rounds_have_is_refused(audited: Path) -> None:
    file = audited / "run.json"
    text = file.read_text()
    document = checked_document(audited)
    assert document == json.loads(text)
    plan = audited_plan(Plan.from_json(document["plan"]), 10)
    for counts, shares, key in (
        ({1: plan.population}, 10 * plan.population, None),
        ({2: plan.population}, 10 * plan.population, "least_shares"),
        ({2: plan.population}, None, "least_shares"),
        ({2: plan.population + 1}, 1, "participations"),
        ({3: plan.population}, 1, "participations"),
        ({0: plan.population + 1, 2: -1}, 1, "participations"),
    ):
        ledger = Ledger(plan, counts=counts)
        ledger.rounds, ledger.least_shares = plan.rounds, shares
        changed = {**document, "ledgers": [ledger.to_json()]}
        file.write_text(json.dumps(changed))
        at = key or ("participations" if plan.sampler.name == "all" else "least_shares")
        with pytest.raises(InputError, match=rf"run\.json: ledgers\[0\]\.{at}: says"):
            checked_document(audited)
    file.write_text(text)
