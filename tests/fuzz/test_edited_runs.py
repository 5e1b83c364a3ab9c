"""Edits of stored runs: each is refused, or changes nothing that is printed as a guarantee."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from edits import a_tenth_or_all, hold

from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.verification.verify import checked_document
from scenarios.cli.display import show_comparison, show_run
from scenarios.cli.display_tune import show_tune
from scenarios.experiments.comparison import compare
from scenarios.experiments.tuning import tune
from scenarios.runner import run

LOCAL = ("privacy.trust=local", "server.rounds=2")
POISSON = ("sampling.name=poisson", "sampling.rate=0.5")
CENTRAL = ("privacy.epsilon=2.0", *POISSON, "server.rounds=2")
RECORDS = (
    *("privacy.unit=example", "privacy.trust=local", "server.rounds=2", "sampling.name=poisson"),
    *("sampling.rate=0.7", "training.batches=poisson", "training.steps=2", "training.batch_size=2"),
)
AUTO = ("privacy.trust=local", "privacy.mechanism=auto", "privacy.epsilon=8.0", "server.rounds=1")
ADAPTIVE = ("privacy.clipping_quantile=0.5", "privacy.epsilon=4.0", "server.rounds=2")
STATED = (
    r"(plan|ledger|privacy|rounds|status|error|randomness|estimate|scenario\.(privacy|sampling|training)).*"
)


@pytest.fixture(scope="module")
def local_run(make_scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which every edit of every value is held; of the others those of what they share with it once."""
    return Path(run(make_scenario(*LOCAL), tmp_path_factory.mktemp("local"))["path"])


@a_tenth_or_all
def test_an_edited_run_is_refused_or_guarantees_the_same(every: int, local_run: Path) -> None:
    assert hold(local_run, show_run, every=every).refused > 700 // every


@pytest.mark.exhaustive(every=2)
@a_tenth_or_all
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(CENTRAL, id="central"),
        pytest.param(RECORDS, id="records", marks=pytest.mark.slow),
        pytest.param(AUTO, id="auto"),
        pytest.param(ADAPTIVE, id="adaptive"),
    ],
)
def test_what_a_run_by_another_plan_states_is_not_edited(
    every: int, settings: tuple[str, ...], make_scenario, local_run: Path, tmp_path: Path
) -> None:
    folder = Path(run(make_scenario(*settings), tmp_path)["path"])
    assert hold(folder, show_run, only=STATED, like=local_run, every=every).refused > 100 // every


class Fault(Exception):
    """Ends a run."""


@a_tenth_or_all
@pytest.mark.parametrize(
    ("settings", "fault"),
    [((*LOCAL, *POISSON), KeyboardInterrupt), (CENTRAL, Fault)],
    ids=["local, interrupted", "central, failed"],
)
def test_what_a_run_that_broke_off_states_is_not_edited(
    every: int,
    settings: tuple[str, ...],
    fault: type[BaseException],
    make_scenario,
    local_run: Path,
    tmp_path: Path,
) -> None:
    def stop(event: dict) -> None:
        raise fault

    with pytest.raises(fault):
        run(make_scenario(*settings), tmp_path, on_round=stop)
    [folder] = tmp_path.iterdir()
    assert hold(folder, show_run, only=STATED, like=local_run, every=every).refused > 100 // every


@a_tenth_or_all
def test_an_edited_comparison_is_refused_or_guarantees_the_same(
    every: int, make_scenario, local_run: Path, tmp_path: Path
) -> None:
    only = 'compare={trusts=["central"], epsilons=[2.0], seeds=[1]}'
    folder = Path(compare(make_scenario("server.rounds=1", only), tmp_path, workers=1)["path"])
    assert hold(folder, show_comparison, like=local_run, every=every).refused > 300 // every


WIDE = """
[compare]
trusts = ["central"]
epsilons = [2.0]
seeds = [1, 2]
[compare.option.shrunk.server]
denoise = "james-stein"
[compare.vary.training]
learning_rate = [0.1, 0.5]
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_edited_comparison_of_more_is_refused_or_guarantees_the_same(
    base_text: str, make_scenario, tmp_path: Path
) -> None:
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 2.0") + WIDE
    folder = Path(compare(make_scenario("server.rounds=1", text=text), tmp_path, workers=1)["path"])
    own = r"(options\[0\]\.(opt|diff|eps|guar|runs|seeds|noise)|variations\[0\]\.(var|eps|runs)|cells\[0\]\.seeds).*"
    assert hold(folder, show_comparison, only=own).refused > 80


GRID = "\n[tune.grid]\ntraining = {learning_rate = [0.1, 0.5]}\n"
TUNED = r"(scenario\.tune|choice|ledger|privacy|naive|tested|plans\[0\]\.mechanism|candidates|notes).*"


def choice_by(law: str, base_text: str, out: Path) -> Path:
    """The record of a choice whose number of tries has a law."""
    section = f'[tune]\nmethod = "random-stopping"\ntries = 2.0\nlaw = "{law}"{GRID}'
    scenario = TuneScenario.from_text(base_text + section, overrides=["server.rounds=1"])
    return Path(tune(scenario, out, workers=1)["path"])


@pytest.fixture(scope="module")
def poisson_choice(base_text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return choice_by("poisson", base_text, tmp_path_factory.mktemp("choice"))


@pytest.mark.exhaustive
@a_tenth_or_all
def test_an_edited_choice_is_refused_or_guarantees_the_same(every: int, poisson_choice: Path) -> None:
    assert hold(poisson_choice, show_tune, only=TUNED, every=every).refused > 200 // every


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("law", ["geometric", "logarithmic"])
def test_an_edited_choice_by_another_law_is_refused_or_guarantees_the_same(
    law: str, base_text: str, poisson_choice: Path, tmp_path: Path
) -> None:
    folder = choice_by(law, base_text, tmp_path)
    assert hold(folder, show_tune, only=TUNED, like=poisson_choice).refused > 80


FORGERIES = {
    "ledger.claims[1].event.count": lambda d: d["ledger"]["claims"][1]["event"].update(count=1),
    "ledger.claims[0]": lambda d: d["ledger"]["claims"].__setitem__(
        0, {**d["ledger"]["claims"][1], "observer": "server"}
    ),
    "ledger.adjacency": lambda d: [
        part.update(adjacency="zero-out") for part in (d["ledger"], d["privacy"], *d["privacy"]["guarantees"])
    ],
    "ledger.claims[1].assumptions": lambda d: [
        part.update(assumptions=part["assumptions"][:1])
        for part in (*d["ledger"]["claims"], *d["privacy"]["guarantees"])
    ],
    "plan": lambda d: d["plan"]["mechanism"].update(noise_multiplier=100.0),
}


@pytest.mark.parametrize("key", FORGERIES)
def test_a_forgery_of_several_fields_is_refused_at_the_first(key: str, make_scenario, tmp_path: Path) -> None:
    """Each leaves ledger and guarantees in agreement, as they were once held against each other alone."""
    folder = Path(
        run(make_scenario("privacy.epsilon=2.0", "server.rounds=2"), tmp_path, report=False)["path"]
    )
    document = json.loads((folder / "run.json").read_text())
    FORGERIES[key](document)
    if document["ledger"]["claims"]:
        document["privacy"]["guarantees"] = [one.to_json() for one in guarantees(document["ledger"])]
    (folder / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"run\.json: {re.escape(key)}"):
        checked_document(folder)
