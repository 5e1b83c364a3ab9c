"""`fedprivacy audit` against known cases, through the real apps.

False alarms: all bounds and tests of one audit together 5 % at most, with fixed seeds; they are rarer, since the
theorem is not tight: the smallest p-value of 20 audits of true claims was .08, where .003 refutes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.app import make_app
from clients.training_handler import answer
from fedprivacy.attacks.assessment import verdict
from fedprivacy.attacks.canaries import draw_canaries
from fedprivacy.attacks.canary_evidence import estimate
from fedprivacy.attacks.gaussian_score_bound import ScoreMoments
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.randomness.streams import Streams
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Scenario
from fedprivacy.verification.verify import checked_document
from scenarios.cli.main import app
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.experiments.audit import audit
from scenarios.experiments.audit_run import Audited

TEXT = """
name = "audited"
seed = 1
[data]
name = "synthetic"
records = 60
test_records = 50
features = 500
partition = "iid"
clients = 12
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 2.5
delta = 1e-5
"""
CANARIES = 1000


def played(
    out: Path, *overrides: str, canaries: int = CANARIES, report: bool = False, **options: Any
) -> dict[str, Any]:
    return audit(
        Scenario.from_text(TEXT, overrides=overrides), out, canaries=canaries, report=report, **options
    )


def by_observer(document: dict[str, Any]) -> dict[str, Any]:
    return {one["observer"]: one for one in document["observers"]}


@pytest.fixture
def half_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks the mechanism on purpose: it states the noise that it should and draws half of it."""
    half = property(lambda self: self.noise_multiplier * self.clipping_norm / 2)
    monkeypatch.setattr(Gaussian, "standard_deviation", half)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The record of a small audit, which may be shown."""
    document = played(tmp_path_factory.mktemp("stored"), canaries=40)
    folder = Path(document["path"])
    assert write_report(checked_document(folder), folder).exists()
    return (folder / "run.json").read_text()


def test_without_noise_everybody_learns_nearly_all_that_so_many_canaries_can_prove(tmp_path: Path) -> None:
    document = played(tmp_path, "privacy.trust=none")
    for one in document["observers"]:
        proved = one["one_run"]
        assert proved["epsilon"] > 0.9 * proved["ceiling"] > 4
        assert one["canary_clients"]["epsilon"] is None
        assert one["canary_clients"]["low"] >= 1e4
        assert one["verdict"]["holds"] is None
        assert one["if_gaussian"] is None  # there is no noise
        assert "nothing is claimed" in one["verdict"]["words"]
    assert not document["refuted"]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("overrides", "observer"),
    [
        ([], "participant"),
        (["privacy.adjacency=zero-out"], "outsider"),
        (["privacy.trust=local"], "server"),
    ],
)
def test_with_the_claimed_noise_the_bound_is_below_the_claim(
    tmp_path: Path, overrides: list[str], observer: str
) -> None:
    document = played(tmp_path, *overrides)
    assert not document["refuted"]
    one = by_observer(document)[observer]
    assert 0.2 < one["one_run"]["epsilon"] < one["guarantee"]["epsilon"] == pytest.approx(2.5, rel=1e-3)
    assert one["verdict"]["holds"] is True
    assert one["canary_clients"]["low"] < 2.5 < one["canary_clients"]["high"]
    # Seed 1 alone; of seeds 1 to 20 docs/attacks.md has the figures.
    assert 0.5 * 2.5 < one["if_gaussian"]["epsilon"] < 2.5
    assert 0.7 * 2.5 < one["if_gaussian"]["expected"] < 2.5
    assert "if it is Gaussian, it is at least" in one["verdict"]["words"]


SEPARATED = ("sampling={name='separated', cohort=4, separation=3}", "server.rounds=5")


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("bands", [[], ["privacy.bands=3"]])
def test_canaries_that_come_every_few_rounds_keep_the_claim_with_correlated_noise_too(
    tmp_path: Path, bands: list[str]
) -> None:
    document = played(tmp_path, *SEPARATED, *bands)
    one = by_observer(document)["participant"]
    assert not document["refuted"]
    assert 0.2 < one["one_run"]["epsilon"] < one["guarantee"]["epsilon"] == pytest.approx(2.5, rel=1e-3)
    assert "canaries" in document["audited"]["words"]
    assert one["canary_clients"] is None  # an estimate takes everybody to be asked
    assert one["if_gaussian"] is None  # so does a bound from scores


@pytest.mark.exhaustive
def test_correlated_noise_of_half_the_size_is_refuted(tmp_path: Path, half_noise: None) -> None:
    document = played(tmp_path, *SEPARATED, "privacy.bands=3", trials=4)
    assert by_observer(document)["participant"]["verdict"]["holds"] is False


CYCLIC = ("sampling={name='cyclic-poisson', rate=0.3}", "privacy.bands=3", "server.rounds=6")


def test_canaries_in_groups_keep_the_claim_of_amplified_bands(tmp_path: Path) -> None:
    one = by_observer(document := played(tmp_path, *CYCLIC))["participant"]
    assert not document["refuted"]
    assert 0.2 < one["one_run"]["epsilon"] < one["guarantee"]["epsilon"] == pytest.approx(2.5, rel=1e-3)
    assert any("secret coin of its own" in text for text in one["guarantee"]["assumptions"])


@pytest.mark.exhaustive
def test_amplified_bands_with_half_the_noise_are_refuted(tmp_path: Path, half_noise: None) -> None:
    document = played(tmp_path, *CYCLIC, trials=6)
    assert by_observer(document)["participant"]["verdict"]["holds"] is False


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("overrides", "observers", "trials"),
    [
        (["sampling.name=poisson", "sampling.rate=0.9"], ["participant", "outsider"], 4),
        (["privacy.trust=local"], ["server"], 1),
    ],
)
def test_with_half_the_noise_the_claim_is_refuted(
    tmp_path: Path, half_noise: None, overrides: list[str], observers: list[str], trials: int
) -> None:
    document = played(tmp_path, *overrides, trials=trials, workers=1, report=True)
    found = by_observer(document)
    assert document["refuted"]
    for name in observers:
        assert found[name]["guarantee"]["epsilon"] == pytest.approx(2.5, rel=1e-2)
        assert found[name]["verdict"]["holds"] is False
        assert found[name]["verdict"]["words"].startswith("REFUTED: the claim is false")
    page = (Path(document["path"]) / "report.html").read_text()
    assert "REFUTED" in page


def test_half_the_noise_is_refuted_in_one_run_by_the_scores(tmp_path: Path, half_noise: None) -> None:
    document = played(tmp_path)
    one = by_observer(document)["participant"]
    assert one["one_run"]["epsilon"] < 2.5  # which would not have refuted it
    assert one["if_gaussian"]["epsilon"] > 2.5
    assert one["verdict"]["holds"] is False
    assert "as the ledger accounts for it" in one["verdict"]["words"]


def test_a_final_model_of_several_rounds_has_no_bound_from_scores(tmp_path: Path) -> None:
    found = by_observer(played(tmp_path, "server.rounds=2", canaries=60))
    assert found["participant"]["if_gaussian"] is not None
    assert found["outsider"]["if_gaussian"] is None


@pytest.mark.exhaustive
def test_the_numbers_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one, two = (played(tmp_path, canaries=60, trials=2, workers=workers) for workers in (1, 2))
    assert one["observers"] == two["observers"]


def test_its_claims_are_those_of_the_scenario_with_canaries_in_it(tmp_path: Path) -> None:
    document = played(tmp_path, "sampling.name=poisson", "sampling.rate=0.5", canaries=20)
    ledger = document["ledgers"][0]
    assert ledger["population"] == 12 + 20
    claimed = {one.observer: one.epsilon for one in guarantees(ledger)}
    assert {name: one["guarantee"]["epsilon"] for name, one in by_observer(document).items()} == claimed
    assert (
        document["audited"]["noise_multiplier"]
        == plan_of(
            Scenario.from_text(TEXT, overrides=["sampling.name=poisson", "sampling.rate=0.5"])
        ).noise_multiplier
    )
    assert "20 canary clients beside its 12" in document["audited"]["words"]
    for one in document["observers"]:
        if one["guarantee"]["epsilon"] is not None:
            assert "proves nothing: even if every guess were right" in one["verdict"]["words"]


def test_canaries_are_clipped_and_orthogonal() -> None:
    canaries = draw_canaries(12, 50, 200, 2.0, "replace-one", Streams(1))
    raw = canaries.updates(np.arange(50)).numpy()
    assert np.allclose(np.linalg.norm(raw, axis=1), 8.0, rtol=1e-5)  # longer than the bound: it is clipped
    assert np.allclose(canaries.directions @ canaries.directions.T, np.eye(50), atol=1e-5)
    assert set(canaries.signs) == {1.0, -1.0}
    assert canaries.middle == 0.0
    other = draw_canaries(12, 50, 200, 2.0, "add-remove", Streams(1))
    assert set(other.signs) == {1.0, 0.0}
    assert other.middle == 0.5
    assert not canaries.silent().updates(np.arange(50)).any()


def test_canaries_have_records_more_or_fewer_by_their_coins() -> None:
    fleet = Audited(Scenario.from_text(TEXT), plan_of(Scenario.from_text(TEXT)), 200).fleet()
    assert fleet.canaries is not None
    full, present = fleet.people.partition, fleet.canaries.present
    assert (full.sizes[:12] == 5).all()
    assert set(full.sizes[12:]) == {2, 5, 50}
    owned = fleet.canaries.owned(full)
    assert (owned.sizes[:12] == 5).all()
    assert (owned.sizes[12:] == np.where(present, full.sizes[12:], 1)).all()
    for client in (0, 11, 12, 17, 211):
        assert (owned.records(client) == full.records(client)[: owned.sizes[client]]).all()


def test_canaries_train_with_the_others_and_answer_what_was_planted() -> None:
    """One whose record can't be trained on fails like any client: its label does not exist."""
    fleet = Audited(Scenario.from_text(TEXT), plan_of(Scenario.from_text(TEXT)), 10).fleet()
    assert fleet.canaries is not None
    broken = fleet.people.partition.records(13)[0]
    order = np.where(fleet.people.partition.order == broken, 60, fleet.people.partition.order)
    order[fleet.people.partition.offsets[12]] = 61  # of the first canary, in good order
    data = fleet.people.dataset
    data = replace(data, x=np.concatenate([data.x, data.x[:2]]), y=np.append(data.y, [99, 0]))
    partition = replace(fleet.people.partition, order=order)
    fleet = replace(fleet, people=replace(fleet.people, dataset=data, partition=partition))
    owners = {client for client in range(22) if 60 in partition.records(client)}
    assert 13 in owners
    weights = np.zeros(fleet.parameters, np.float32)
    request = TrainRequest(0, 0, 0, np.arange(22), weights, fleet.plan, "each")
    reply, _ = answer(fleet, None, request)
    assert set(range(22)) - set(reply.clients.tolist()) == owners
    planted = fleet.canaries.signs[:, None] * fleet.canaries.directions
    for client, update in zip(reply.clients, reply.updates, strict=True):
        if client >= 12:
            assert np.allclose(update, planted[client - 12], atol=1e-6)


def test_a_fleet_without_canaries_is_untouched() -> None:
    fleet = Audited(Scenario.from_text(TEXT), plan_of(Scenario.from_text(TEXT)), 10).fleet()
    assert fleet.plan.population == 22
    assert fleet.canaries is not None
    assert fleet.canaries.first == 12
    assert EmbeddedGrid(make_app(fleet), [{}]) is not None


def test_the_estimate_is_that_of_two_normal_distributions() -> None:
    stream, coins = np.random.default_rng(0), np.arange(8000) < 4000
    found = estimate(ScoreMoments.of(stream.normal(coins, 1), coins), 1e-5)
    assert found["low"] < 4.377 < found["high"]  # the epsilon of mu = 1 at delta = 1e-5
    assert estimate(ScoreMoments.of(np.arange(18.0) < 9, np.arange(18) < 9), 1e-5)["epsilon"] is None
    assert estimate(ScoreMoments.of(np.arange(10.0), np.arange(10) < 1), 1e-5) == {
        "epsilon": None, "low": 0.0, "high": None, "delta": 1e-5, "distance": None
    }  # fmt: skip


def test_an_estimate_alone_refutes_nothing_and_says_so() -> None:
    said = verdict({"epsilon": 1.0}, None, {"low": 3.0})
    assert said["holds"] is None
    assert "an estimate is no bound" in said["words"]
    assert "above the claim" in said["words"]


def test_a_bound_above_the_claim_that_takes_noise_for_gaussian_refutes_nothing_and_says_why(
    stored: str,
) -> None:
    """Unless it is far above, by less chance than all checks together may take."""
    one = by_observer(json.loads(stored))["participant"]
    given, proved, found = one["guarantee"], one["one_run"], one["if_gaussian"]
    least = given["epsilon"] + 0.1
    words = {}
    for p_value in (0.02, 1e-9):
        said = verdict(given, proved, None, {**found, "epsilon": least, "p_value": p_value})
        words[said["holds"]] = said["words"]
    assert "is above the claim, which by itself refutes nothing: it rests on a shape" in words[True]
    assert "too large in 5 % of audits. What refutes is the bound that assumes nothing" in words[True]
    assert words[False].startswith("REFUTED")
    assert "by itself refutes nothing" not in words[False]
    assert "above the claim" not in verdict(given, proved, None, {**found, "p_value": 0.5})["words"]


def another_coin(scores: dict[str, Any]) -> None:
    scores["present"]["count"] += 1
    scores["absent"]["count"] -= 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one["guarantee"].update(epsilon=9.0), "guarantee"),
        (lambda one: one["one_run"].update(ceiling=9.0), "one_run"),
        (lambda one: one["one_run"].update(checks=10**6), "one_run"),
        (lambda one: one["one_run"].update(delta=0.5), "one_run"),
        (lambda one: one["if_gaussian"].update(epsilon=9.0), "if_gaussian"),
        (lambda one: one["if_gaussian"].update(confidence=0.99), "if_gaussian"),
        (lambda one: one.update(if_gaussian=None), "if_gaussian"),
        (lambda one: one["scores"]["present"].update(mean=99.0), "if_gaussian"),
        (lambda one: one["scores"]["absent"].update(variance=0.0, count=0), r"scores: are of \d+ canaries"),
        (lambda one: one["canary_clients"].update(epsilon=0.1), "canary_clients"),
        (lambda one: one["one_run"]["guesses"].pop(), r"guesses: has 2 entries, an audit has 3"),
        (lambda one: one["one_run"]["guesses"][0].update(made=2, right=2), r"guesses\[0\].made: says 2"),
        (lambda one: one["one_run"]["guesses"][0].update(right=5), r"guesses\[0\].right: says 5"),
        (lambda one: another_coin(one["scores"]), r"scores\.present\.count: says"),
        (lambda one: one.update(one_run=None), "does not fit the method"),
        (lambda one: one.update(observer="server"), r"observers\[1\].observer: says server"),
        (lambda one: one.update(observer="nobody"), r"observers\[1\].observer: says nobody"),
        (lambda one: one["verdict"].update(holds=True, words="consistent."), "verdict"),
    ],
)
def test_a_changed_record_is_not_shown(tmp_path: Path, stored: str, change: Any, says: str) -> None:
    document = json.loads(stored)
    change(by_observer(document)["participant"])
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=says):
        checked_document(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("words", "Audited was all."),
        ("canaries", 41),
        ("trials", 2),
        ("clients", 13),
        ("rounds", 2),
        ("clipping_norm", 2.0),
        ("false_alarm", 0.01),
        ("neighbours", None),
    ],
)
def test_a_record_that_describes_another_audit_is_not_shown(
    tmp_path: Path, stored: str, key: str, value: Any
) -> None:
    document = json.loads(stored)
    document["audited"][key] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"run\.json: audited\.{key}: "):
        checked_document(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--canaries", "3"], "must be from 10"),
        (["--method", "magic"], "There are: one-run, canary-clients, both"),
        (["--trials", "0"], "--trials 0"),
        (["--set", "privacy.unit=example", "--set", "privacy.trust=local"], "an audit has canary clients"),
        (["--canaries", "100000", "--set", "data.features=9000"], "Choose"),
        (
            ["--set", "privacy.clipping_quantile=0.5", "--set", "privacy.clipping_count_noise=1000.0"],
            "changes from round to round",
        ),
        (["--set", "privacy.encoding=signs"], "clipped and not encoded"),
        (
            ["--set", "privacy.clipping_layers=equal", "--set", "model={name='mlp', hidden=[3]}"],
            "clipped as a whole and not by layer",
        ),
    ],
)
def test_what_cannot_be_audited_is_refused_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    with pytest.raises(InputError, match=says):
        app(["audit", str(file), "--out", str(tmp_path / "out"), *arguments], standalone_mode=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("source", ["common-disease", "attack-vs-privacy"])
def test_statistics_and_attacks_are_not_audited(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match=r"audit|replay"):
        app(["audit", source, "--out", str(tmp_path)], standalone_mode=False)


def test_the_exit_code_is_one_only_where_it_is_asked_for(
    tmp_path: Path, half_noise: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace("epsilon = 2.5", "epsilon = 0.5"))
    # A tenth of the noise, to be sure of it with few canaries.
    tenth = property(lambda self: self.noise_multiplier * self.clipping_norm / 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "standard_deviation", tenth)
        common = ["audit", str(file), "--canaries", "400", "--workers", "1", "--out", str(tmp_path)]
        assert not app(common, standalone_mode=False)
        result, *observers = capsys.readouterr().out.splitlines()
        assert "REFUTED with 95 % confidence against the " in result
        assert any("epsilon = 0.5" in line and "REFUTED: canaries" in line for line in observers)
        assert len(observers) <= 5
        assert app([*common, "--strict", "--json"], standalone_mode=False) == 1
        assert json.loads(capsys.readouterr().out)["refuted"] is True
