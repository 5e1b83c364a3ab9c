"""An attack scenario from end to end: the result document, stored runs, workers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.kill_and_resume import ATTACKED
from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load, loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks import attacker_seats
from scenarios.attacks.replay import replay as replay_with_report

SETTINGS = (
    "server.rounds=3",
    "privacy={trust='none'}",
    "game={members=40, nonmembers=50, repeats=2}",
    "attacks.look.rounds=2",
    "attacks.inside={kind='active-gradient-ascent', seat='participant', targets_per_round=45, tries=10}",
)
LOCAL = (
    'privacy={trust="local", clipping_norm=1.0, epsilon=1.0, delta=1e-3}',
    "server.rounds=8",
    "game.warm_up=2",
)


def scenario(*overrides: str) -> AttackScenario:
    found = loads(ATTACKED, overrides=[*SETTINGS, *overrides])
    assert isinstance(found, AttackScenario)
    return found


def replay(*args, **options) -> dict:
    return replay_with_report(*args, report=False, **options)


def without_times(attacks: list[dict]) -> list[dict]:
    return [{key: value for key, value in attack.items() if key != "seconds"} for attack in attacks]


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> dict:
    return replay(scenario(), tmp_path_factory.mktemp("out"), workers=1)


def test_the_document_says_what_was_played_and_found(played) -> None:
    assert (played["kind"], played["status"], played["error"]) == ("replay", "finished", None)
    told = {attack["name"]: attack for attack in played["attacks"]}
    assert list(told) == ["look", "climb", "inside"]
    assert [told[name]["attack"] for name in told] == ["passive", *["active-gradient-ascent"] * 2]
    assert [told[name]["seat"] for name in told] == ["server", "server", "participant"]
    assert [told[name]["targets_per_round"] for name in told] == [None, 30, 45]
    assert [told[name]["rounds"] for name in told] == [2, 3, 5]
    for attack in told.values():
        assert (attack["members"], attack["nonmembers"], attack["seeds"]) == (40, 50, 2)
        assert attack["targets_lost"] == 0
        assert attack["auc"]["low"] <= attack["auc"]["value"] <= attack["auc"]["high"]
        assert {"supervised", "clustered", "cosine"} <= set(attack["scores"])
        assert set(attack["score"]) <= set(attack["scores"])
        assert attack["bound"]["words"].startswith("No guarantee against")
        assert attack["guarantee"]["epsilon"] is None
        proved = attack["empirical_epsilon"]
        assert 0 <= attack["epsilon_lower_bound"] == proved["epsilon"] <= proved["ceiling"]
        # Of 40 that were drawn blind about half were measured, in each of two runs.
        assert re.search(r"(3\d|4\d) fair and independent coins", proved["method"])
        assert (attack["trust"], attack["epsilon"]) == ("none", None)
        assert attack["blind"]["low"] < 0.5 < attack["blind"]["high"]
    assert told["look"]["story"] is None
    assert len(told["climb"]["story"]) == 2
    for story in told["climb"]["story"]:
        assert story["member"][1] + story["nonmember"][1] > story["member"][0] + story["nonmember"][0]
    assert played["verdict"]["holds"] is None


def test_it_is_written_to_the_run_directory_with_a_scenario_that_reads_again(played) -> None:
    path = Path(played["path"])
    assert json.loads((path / "run.json").read_text()) == json.loads(json.dumps(played))
    assert load(path / "scenario.toml") == scenario()


def test_a_stored_run_is_attacked_again_with_the_same_scores_and_without_training(played, tmp_path) -> None:
    alone = scenario().model_copy(update={"attacks": {"climb": scenario().attacks["climb"]}})
    told: list[str] = []
    again = replay(
        alone, tmp_path, workers=1, stored=Path(played["path"]), on_attack=lambda what, *_: told.append(what)
    )
    assert without_times(again["attacks"]) == without_times([played["attacks"][1]])
    assert told == ["climb (seed 1)", "climb (seed 2)"]
    assert not list(Path(again["path"]).glob("run-*"))


@pytest.mark.exhaustive
def test_what_a_passive_attacker_saw_is_scored_again_without_playing_a_round(
    played, tmp_path, monkeypatch
) -> None:
    """Also fewer of its rounds; more of them are played, and what others were answered is spent for them."""

    def refuse(*_: object) -> None:
        raise AssertionError("a round was played")

    stored, look = Path(played["path"]), scenario().attacks["look"]
    with monkeypatch.context() as patched:
        patched.setattr(attacker_seats, "attack_from_seat", refuse)
        for asked in (look, look.model_copy(update={"rounds": 1, "skip": 1})):
            alone = scenario().model_copy(update={"attacks": {"look": asked}})
            again = replay(alone, tmp_path, workers=1, stored=stored)
            if asked is look:
                assert without_times(again["attacks"]) == without_times([played["attacks"][0]])
            assert again["attacks"][0]["observed"]["last"] == 5
        longer = scenario().model_copy(update={"attacks": {"look": look.model_copy(update={"rounds": 3})}})
        with pytest.raises(AssertionError, match="a round was played"):
            replay(longer, tmp_path, workers=1, stored=stored)


SHARED = (
    'privacy={trust="central", clipping_norm=1.0, epsilon=8.0, delta=1e-3}',
    "game.repeats=1",
    "game.warm_up=1",
    "server.rounds=5",
    "attacks={long={kind='passive', rounds=4}, short={kind='passive', rounds=2}}",
)


def test_what_a_transcript_holds_costs_nothing_more(tmp_path) -> None:
    """Also where the noise of the global models is used up."""
    asked = scenario(*SHARED)
    whole = replay(asked, tmp_path, workers=1)
    short = asked.model_copy(update={"attacks": {"short": asked.attacks["short"]}})
    again = replay(short, tmp_path, workers=1, stored=Path(whole["path"]))
    assert without_times(again["attacks"]) == without_times([whole["attacks"][1]])
    assert len(json.loads((Path(whole["path"]) / "run-1" / "spent.json").read_text())) == 1
    more = asked.model_copy(
        update={"attacks": {"more": asked.attacks["long"].model_copy(update={"rounds": 5})}}
    )
    with pytest.raises(InputError, match="take 10 rounds, and the noise of its global models is made for 5"):
        replay(more, tmp_path, workers=1, stored=Path(whole["path"]))


def test_rounds_that_the_victim_refused_are_not_said_to_be_seen(tmp_path) -> None:
    """Five answers, two of them in the warm-up."""
    one = "attacks={look={kind='passive', rounds=20}}"
    more = ("game.warm_up=2", "server.rounds=5", "game.repeats=1")
    document = replay(scenario(*LOCAL, *more, one), tmp_path, workers=1)
    [look] = document["attacks"]
    assert look["observed"] == {"first": 3, "last": 5, "count": 3}
    assert look["rounds_refused"] == 17
    with pytest.raises(ScenarioError, match="given before the first round that is observed"):
        scenario(*LOCAL, *more, "attacks={look={kind='passive', rounds=1, skip=3}}")


def test_a_transcript_whose_accuracies_are_gone_is_refused(played, tmp_path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(played["path"], copied)
    [index] = copied.glob("run-1/seen/*/*/transcript.json")
    text = json.loads(index.read_text())
    index.write_text(json.dumps({**text, "facts": {}}))
    look = scenario().model_copy(update={"attacks": {"look": scenario().attacks["look"]}})
    with pytest.raises(InputError, match="the transcript is damaged"):
        replay(look, tmp_path / "out", workers=1, stored=copied)


def test_nothing_is_kept_of_what_was_seen_where_none_of_it_is_wanted(tmp_path) -> None:
    document = replay(
        scenario("game.transcripts=false", "game.repeats=1", "attacks={one={kind='passive', rounds=1}}"),
        tmp_path,
        workers=1,
    )
    assert not list(Path(document["path"]).rglob("seen"))
    assert not any("sensitive" in note for note in document["notes"])


@pytest.mark.exhaustive
def test_the_game_is_played_at_each_epsilon_with_clipping_alone_and_without_privacy(tmp_path) -> None:
    privacy = 'privacy={trust="local", clipping_norm=1.0, epsilon=1.0, delta=1e-3}'
    more = ("game.epsilons=[1.0, 50.0]", "game.clipped=true", "game.unprotected=true")
    more = (*more, "game.warm_up=2", "server.rounds=6")
    one = "attacks={look={kind='passive', rounds=3}}"
    document = replay(scenario(privacy, *more, one), tmp_path, workers=1)
    told = document["attacks"]
    assert [(attack["trust"], attack["mechanism"], attack["epsilon"]) for attack in told] == [
        ("local", "gaussian", 1.0), ("local", "gaussian", 50.0), ("none", "clip-only", None), ("none", None, None),
    ]  # fmt: skip
    assert "clipping alone is a heuristic" in told[2]["guarantee"]["words"]
    for attack, most in zip(told, (1.0, 50.0, None, None), strict=True):
        epsilon = attack["guarantee"]["epsilon"]
        assert epsilon is None if most is None else 0.99 * most < epsilon <= most
        assert attack["bound"] == bound_of_ledger(document["ledgers"][attack["ledger"]], "server").to_json()
    folders = {
        str(path.parent.relative_to(document["path"])) for path in Path(document["path"]).rglob("spent.json")
    }
    assert folders == {
        f"{name}/run-{seed}"
        for name in ("epsilon-1", "epsilon-50", "clipping-alone", "no-privacy")
        for seed in (1, 2)
    }
    found = document["verdict"]  # each attack by the ledger of its own run
    assert found["checked"] == ["look (epsilon 1)", "look (epsilon 50)"]
    assert found["unbounded"] == ["look (clipping alone)", "look (no privacy)"]
    assert found["holds"]
    labels: list[str] = []
    again = replay(
        scenario(privacy, *more, one), tmp_path, workers=1, stored=Path(document["path"]),
        on_attack=lambda what, *_: labels.append(what),
    )  # fmt: skip
    assert "look (clipping alone, seed 1)" in labels
    assert without_times(again["attacks"]) == without_times(told)
    assert checked_document(Path(document["path"]))["attacks"]
    for at, mechanism in ((2, None), (3, "clip-only")):
        changed = json.loads(json.dumps(document))
        changed["attacks"][at]["mechanism"] = mechanism
        (Path(document["path"]) / "run.json").write_text(json.dumps(changed))
        with pytest.raises(InputError, match=r"attacks\[.\].mechanism: says"):
            checked_document(Path(document["path"]))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("game.victim=1", "another run than the scenario's: its members"),
        ("game.members=30", "another run than the scenario's: its members"),
        ("game.nonmembers=30", "another run than the scenario's: its members"),
        ("training.learning_rate=0.2", "another run than the scenario's"),
        ("game.warm_up=2", "another run than the scenario's"),
        ("data.flip=0.3", "another run than the scenario's"),
        ("game.repeats=3", "holds no trained run of seed 3"),
        ("seed=9", "holds no trained run of seed 9"),
    ],
)
def test_a_stored_run_with_other_members_or_settings_is_refused(played, tmp_path, override, message) -> None:
    """Else its scores would be held against memberships that it was not trained with."""
    with pytest.raises(InputError, match=message):
        replay(scenario(override), tmp_path / "out", workers=1, stored=Path(played["path"]))
    assert not (tmp_path / "out").exists()


def test_a_game_that_one_of_the_seeds_cannot_draw_is_refused_before_anything_is_written(tmp_path) -> None:
    asked = ("game.members=81", "game.repeats=20")  # of 180 half are expected; the first seed has enough
    with pytest.raises(InputError, match=r"game\.members = 81: by fair coins"):
        replay(scenario(*asked), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_targets_that_a_spent_victim_cost_are_told_and_the_bound_stands_beside(tmp_path) -> None:
    """Twelve answers, two in the warm-up, two to `look`, six to `climb`: with the last two, a participant
    can raise 45 targets and watch them, and the other 45 stay unasked.
    """
    document = replay(
        scenario(*LOCAL, "server.rounds=12", "game.repeats=1", "attacks.climb.targets_per_round=15"),
        tmp_path,
        workers=1,
    )
    look, climb, inside = document["attacks"]
    assert (look["targets_lost"], look["members"], look["nonmembers"]) == (0, 40, 50)
    assert climb["targets_lost"] == 0
    assert inside["targets_lost"] == 45
    assert inside["members"] + inside["nonmembers"] == 45
    for attack in document["attacks"]:
        bound = bound_of_ledger(document["ledgers"][0], attack["seat"])
        assert 0.99 < attack["guarantee"]["epsilon"] <= 1.0
        assert attack["bound"]["auc"] == bound.curve.auc < 0.7
        assert attack["auc"]["low"] < attack["bound"]["auc"]
        assert "AUC at most 0." in attack["bound"]["words"]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_number_of_workers_changes_no_number(played, tmp_path) -> None:
    two = replay(scenario(), tmp_path, workers=2)
    assert without_times(two["attacks"]) == without_times(played["attacks"])
