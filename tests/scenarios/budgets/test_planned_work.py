"""What scenarios release at most: the ledgers that their records state, known before any work."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.account.account import Account
from fedprivacy.account.entering import create
from fedprivacy.account.policy import Policy
from fedprivacy.account.statement import would_fit
from fedprivacy.errors import InputError
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.tune import TuneScenario
from scenarios import runner
from scenarios.authoring.catalogue import find
from scenarios.budgets import planned_work
from scenarios.budgets.planned_work import planned
from scenarios.experiments.statistics_run import ask

CENTRAL = "privacy={trust='central', clipping_norm=1.0, epsilon=4.0, delta=1e-4}"
LOCAL = "privacy={trust='local', clipping_norm=1.0, epsilon=16.0, delta=1e-4, max_participations=2}"
POISSON = "sampling={name='poisson', rate=0.5}"


@pytest.mark.parametrize("settings", [(CENTRAL,), (LOCAL,), (CENTRAL, POISSON)])
def test_a_training_is_charged_what_its_record_states(make_scenario, settings, tmp_path: Path) -> None:
    scenario = make_scenario(*settings)
    work = planned(scenario)
    document = runner.run(scenario, tmp_path, report=False)
    (ledger,) = work.ledgers
    # An outsider's smaller claim under local trust needs to know how many answered.
    stated = {(claim["observer"], str(claim["event"])) for claim in document["ledger"]["claims"]}
    assert {(claim["observer"], str(claim["event"])) for claim in ledger["claims"]} <= stated
    assert ledger["unit"] == document["ledger"]["unit"]
    assert work.noise_key == document["noise_key"]
    assert work.draws_cohorts == (POISSON in settings)
    assert work.first is not None
    assert work.first(work.size)[0]["claims"] == ledger["claims"]
    assert "--set server.rounds=1" in work.settings(1)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("amplified-bands", ()),
        ("budgets-that-differ", ()),
        ("budgets-that-differ", ("privacy.groups.cautious.through=rate",)),
    ],
)
def test_the_largest_plan_that_fits_runs_and_fits(
    name: str, settings: tuple[str, ...], tmp_path: Path
) -> None:
    scenario, path = load(find(name), settings), tmp_path / "own.account"
    work = planned(scenario)
    create(
        path, Policy.of_options(1.0, 1e-5, work.ledgers[0]["unit"], work.ledgers[0]["adjacency"], [], None)
    )
    largest = would_fit(Account.read(path), [work], False)["largest"]
    words = shlex.split(largest.partition(": --set")[2].removesuffix("."))
    options = [word for word in words if word != "--set"]
    assert options[0].startswith("server.rounds=")
    assert would_fit(Account.read(path), [planned(load(find(name), [*settings, *options]))], False)["fits"]


def test_a_smaller_plan_that_does_not_run_is_not_named(
    make_scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, path = planned(make_scenario(CENTRAL)), tmp_path / "own.account"
    create(
        path, Policy.of_options(3.0, 1e-4, work.ledgers[0]["unit"], work.ledgers[0]["adjacency"], [], None)
    )
    assert "--set server.rounds=" in would_fit(Account.read(path), [work], False)["largest"]
    for option in ("server.rounds=0", "privacy.epsilon=4.0"):  # refused; too much
        monkeypatch.setattr(planned_work, "settings_of", lambda *_, option=option: [option])
        unknown = would_fit(Account.read(path), [planned(make_scenario(CENTRAL))], False)["largest"]
        assert unknown == "No smaller plan of it is known."


def test_statistics_are_charged_what_their_record_states(make_statistics, tmp_path: Path) -> None:
    scenario = make_statistics()
    work = planned(scenario)
    document = ask(scenario, tmp_path)
    assert work.ledgers[0]["claims"] == document["ledger"]["claims"]
    assert work.noise_key == document["noise_key"]
    assert not work.draws_cohorts
    assert work.noun == "queries"


def test_clients_with_ids_are_known_by_them(make_statistics, make_table) -> None:
    text = "data={name='npz', path='%s', owner='%s'}"

    def ids(users: list[int], owner: str = "user") -> str | None:
        path = make_table(users, seen=list(np.arange(len(users)) % 2))
        query = "queries.seen={kind='mean-of-bits', column='seen'}"
        return planned(make_statistics(text % (path, owner), query)).population.ids

    assert ids([1, 2, 3]) == ids([3, 3, 2, 1])
    assert ids([1, 2, 3]) != ids([1, 2, 4])
    assert ids([1, 2, 3], "record") is None


def test_a_choice_by_public_records_may_be_each_candidate() -> None:
    from fedprivacy.scenario.loading import load

    scenario = load(find("tuned"), [])
    assert isinstance(scenario, TuneScenario)
    work = planned(scenario)
    assert work.work == "tuning"
    assert len(work.ledgers) >= 1
    assert work.first is not None
    assert "--set server.rounds=1" in work.settings(1)


def test_attacks_and_estimates_without_a_divergence_are_refused() -> None:
    from fedprivacy.scenario.loading import load

    for name, reason in (
        ("private-erm", "its epsilon is known at its delta alone"),
        ("white-box", "attacks are charged by the command that runs them"),
    ):
        with pytest.raises(InputError, match=reason):
            planned(load(find(name), []))
