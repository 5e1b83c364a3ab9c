"""Adds kinds of attacks as CONTRIBUTING says: a class in a file, here this one, and a line of the registry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from generators.scenario_keys import markdown
from pydantic import Field

from fedprivacy.attacks.passive import Passive
from fedprivacy.attacks.transcript import Judgement
from fedprivacy.attacks.trials import Ceiling, Outcome, TrialAttack, Victim, Without, observations
from fedprivacy.errors import InputError
from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.attack.branches import branches_of
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.registry import REGISTRY
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.replay import replay
from scenarios.budgets.attack_works import _is_covered

TEXT = """name = "new"
seed = 1
[data]
name = "digits"
partition = "iid"
clients = 20
public_fraction = 0.5
[model]
name = "logistic"
[training]
learning_rate = 0.1
batch_size = "all"
[server]
rounds = 4
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
warm_up = 1
members = 40
nonmembers = 40
[attacks.two]
kind = "either"
trials = 20
"""
JUDGING = '[attacks.lengths]\nkind = "by-length"\nrounds = 1\n'


class Either(TrialAttack):
    """Guesses by which of two sets of records an update was made."""

    label: ClassVar[str] = "guess of two sets"
    success: ClassVar[str] = "the attacker guesses the set"
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        *TrialAttack.rules,
        Rule("apart", lambda v: v["apart"] > v.around.of_victim, "more records than the victim has"),
    )

    kind: Literal["either"]
    seat: Literal["server"] = "server"
    apart: int = Field(10, ge=1, description="In how many records the sets differ, such as 10.")

    def chance(self, without: Without | None) -> float:
        """Half."""
        return 0.5

    def ceiling(self, ledger: Mapping[str, Any], run: Any, without: Without | None) -> Ceiling:
        """None: it has no theorem."""
        return Ceiling(None, ("nobody has proved one",))

    def check(self, victim: Victim) -> None:
        """Refuses an attack without two sets."""
        if len(victim.pools()[0]) < victim.size + self.apart:
            raise InputError("apart: too few free records.")

    def run(self, victim: Victim) -> Outcome:
        """Compares each update with those of both sets."""
        pool = victim.pools()[0]
        sets = [pool[: victim.size], pool[self.apart : victim.size + self.apart]]
        coins = victim.stream("either").integers(2, size=self.trials)
        imagined = victim.answers(sets, "imagined", noisy=False)
        right = 0
        for trials, rows in observations(victim, [sets[coin] for coin in coins], "trial"):
            gaps = np.linalg.norm(rows[:, None] - imagined, axis=2)
            right += int((gaps.argmin(axis=1) == coins[trials]).sum())
        return Outcome(right, self.trials)


class ByLength(Passive):
    """Judges targets by the length of their gradients alone."""

    label: ClassVar[str] = "gradient lengths"

    kind: Literal["by-length"]

    def features(self, judgement: Judgement) -> dict[str, Any]:
        """One score of those that a passive attack has."""
        every = super().features(judgement)
        return {name: every[name] for name in ("gradient", "loss")}


class Loud(Passive):
    """Extends a passive kind, and changes messages."""

    label: ClassVar[str] = "loud"
    active: ClassVar[bool] = True

    kind: Literal["loud"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch) -> None:
    monkeypatch.setitem(REGISTRY, "either", f"{__name__}:Either")
    monkeypatch.setitem(REGISTRY, "by-length", f"{__name__}:ByLength")
    monkeypatch.setitem(REGISTRY, "loud", f"{__name__}:Loud")


def test_a_kind_in_trials_is_read_run_charged_judged_and_shown(tmp_path: Path) -> None:
    document = replay(loads(TEXT), tmp_path, workers=1)
    folder = Path(document["path"])
    stored = json.loads((folder / "run.json").read_text())
    [trial] = stored["trials"]
    assert (trial["name"], trial["attack"], trial["means"]) == ("two", "either", Either.success)
    assert (trial["success"]["value"], trial["chance"]) == (1.0, 0.5)
    assert trial["bound"]["assumptions"] == ["nobody has proved one"]
    assert stored["verdict"]["checked"] == []
    spent = json.loads((folder / "run-1" / "spent.json").read_text())
    assert [(row["rounds"], "either" in row["key"]) for row in spent] == [(1, True)]
    page = (folder / "report.html").read_text()
    assert "guess of two sets, by the server" in page
    assert re.search(r"The attacker guesses the set without privacy in 100\.0\s%\sof trials", page)
    assert checked_document(folder)["trials"] == document["trials"]


def test_a_kind_that_judges_targets_is_one_of_the_attacks(tmp_path: Path) -> None:
    text = TEXT[: TEXT.index("[attacks.two]")] + JUDGING
    document = replay(loads(text), tmp_path, workers=1)
    [attack] = document["attacks"]
    assert attack["attack"] == "by-length"
    assert {"gradient", "loss"} <= set(attack["scores"])
    assert "cosine" not in attack["scores"]
    folder = Path(document["path"])
    assert "gradient lengths" in (folder / "report.html").read_text()
    assert (folder / "run-1" / "seen" / "passive-server" / "1" / "transcript.json").is_file()
    assert checked_document(folder)["attacks"] == document["attacks"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "trials = 20",
            "trials = 20\napart = 99",
            "attacks.two.apart = 99: more records than the victim has",
        ),
        ("trials = 20", "trials = 20\nshadows = 50", "attacks.two.shadows"),
        ('"either"', '"eithr"', "either"),
        (
            'trust = "none"',
            'trust = "distributed"\nmechanism = "discrete-gaussian"\nclipping_norm = 1.0\nnoise_multiplier = 1.0\ndelta = 1e-5',
            "is not made for noise in shares",
        ),
    ],
)
def test_what_its_keys_do_not_allow_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        loads(TEXT.replace(old, new))
    assert message in str(error.value)


def test_the_reference_of_keys_has_it() -> None:
    text = markdown()
    assert "Guesses by which of two sets of records an update was made." in text
    assert "In how many records the sets differ." in text


@pytest.mark.parametrize(("kind", "covered"), [("passive", True), ("by-length", True), ("loud", False)])
def test_an_account_covers_a_kind_by_its_traits(kind: str, covered: bool) -> None:
    """A kind that changes messages is not covered, whatever it extends."""
    scenario = loads(TEXT.split("[attacks.two]")[0] + f'[attacks.new]\nkind = "{kind}"\nrounds = 1\n')
    [branch] = branches_of(scenario.attacks, 80)
    assert _is_covered(branch) is covered


def test_a_kind_that_extends_a_published_one_is_not_published() -> None:
    text = TEXT.split("[attacks.two]")[0].replace("warm_up = 1", 'warm_up = 1\npublished = "purchase100"')
    loads(text + JUDGING.replace("by-length", "passive"))
    with pytest.raises(InputError, match="no attack here is one of the published"):
        loads(text + JUDGING)
