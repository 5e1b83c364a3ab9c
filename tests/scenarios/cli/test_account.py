"""`fedprivacy account`, and `--account` of the commands that do work."""

from __future__ import annotations

import csv
import html
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import fedprivacy as fp
from fedprivacy.account.account import Account
from fedprivacy.account.assumptions import AccountAssumption
from fedprivacy.account.charge import Charge
from fedprivacy.account.entering import create
from fedprivacy.account.policy import Policy
from fedprivacy.documents.redaction import public
from fedprivacy.errors import HeldError, InputError
from fedprivacy.io.lock import alone
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import read_document
from fedprivacy.report import words
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import load
from scenarios import runner
from scenarios.authoring.catalogue import find
from scenarios.budgets.attack_works import audit_works
from scenarios.cli.main import app

CENTRAL = "privacy={trust='central', clipping_norm=1.0, epsilon=1.0, delta=1e-5}"
FEW = ("--set", "server.rounds=2")


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: str | Path) -> str:
    result = call(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def refusal(*words: str | Path) -> str:
    result = call(*words)
    assert isinstance(result.exception, InputError), (result.output, result.exception)
    return str(result.exception)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "clients.account"
    done("account", "new", target, "--epsilon", "4", "--delta", "1e-5")
    return target


@pytest.fixture
def charge(tmp_path: Path) -> Charge:
    target = tmp_path / "small.account"
    create(target, Policy.of_options(4.0, 1e-5, "client", "replace-one"))
    return Charge(target, "run")


def test_a_run_is_charged_and_one_too_many_refused_before_anything_is_written(
    path: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run = ("run", "digits", *FEW, "--account", path, "--out", out)
    done(*run, "--seed", "1")
    (directory,) = out.iterdir()
    receipt = json.loads((directory / "account.json").read_text())
    assert receipt["entry"] == Account.read(path).lines.digests[1]
    message = refusal(*run, "--seed", "2", "--set", "privacy.epsilon=3.9", "--set", "server.rounds=50")
    assert "Nothing was entered. The largest plan that fits: the first " in message
    assert len(list(out.iterdir())) == 1
    options = shlex.split(message.partition(" rounds: ")[2].removesuffix("."))
    assert options[2].startswith("--set")
    fewer = ("account", "plan", path, "digits", "--seed", "2", *options)
    assert "digits: fits." in done(*fewer)
    one_more = options[1].replace(rounds := options[1].split("=")[1], str(int(rounds) + 1))
    assert "does not fit" in done(*fewer, "--set", one_more)
    shown = done("account", "show", path)
    assert "at most epsilon = 4 at delta = 1e-05" in " ".join(shown.split())
    document = json.loads(done("account", "show", path, "--json"))
    assert document["public"]
    assert "account" not in document
    rows = list(csv.DictReader(io.StringIO(done("account", "export", path, "--csv"))))
    assert [(row["name"], row["state"], row["rounds"]) for row in rows] == [("digits", "started", "2")]
    done("rm", directory, "--yes")


def test_plans_enter_together_and_are_run_later(path: Path, tmp_path: Path) -> None:
    printed = done("account", "enter", path, "digits", "digits", *FEW, "--seed", "7")
    assert "--seed 7" in printed
    assert "--seed 8" in printed
    spent = Account.read(path).spent("outsider")
    done("run", "digits", *FEW, "--seed", "8", "--account", path, "--out", tmp_path / "out")
    assert Account.read(path).spent("outsider") == spent
    plans = json.loads(done("account", "show", path, "--json"))["entries"][0]["plans"]
    assert [plan["state"] for plan in plans] == ["entered", "started"]
    assert "fits" in done("account", "plan", path, "star-wars-survey", "--same-population")
    assert "same seed" in refusal("account", "plan", path, "digits", "--seed", "7")


def ended(path: Path) -> list[tuple[str, str]]:
    return [(end["outcome"], end["run"]) for end in Account.read(path).ended.values()]


class Stopped(Exception):
    """Raised within a run."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Stopped])
def test_what_broke_off_stays_charged_and_is_resumed_without_another_charge(
    make_scenario, charge: Charge, tmp_path: Path, kind: type[BaseException]
) -> None:
    def stop(event: dict) -> None:
        if event["round"] == 1:
            raise kind

    with pytest.raises(kind):
        runner.run(make_scenario(CENTRAL), tmp_path / "out", on_round=stop, report=False, charge=charge)
    (directory,) = (tmp_path / "out").iterdir()
    before = Account.read(charge.path)
    assert ended(charge.path) == [("interrupted", directory.name)]
    with alone(directory), pytest.raises(HeldError):  # it is at work, and has not ended
        runner.resume(directory, report=False, charge=charge)
    document = runner.resume(directory, report=False, charge=charge)
    assert document["status"] == "finished"
    after = Account.read(charge.path)
    assert after.entries == before.entries
    assert ended(charge.path) == [("finished", directory.name)]
    runner.resume(directory, report=False, charge=charge)
    assert Account.read(charge.path).lines == after.lines


def test_an_account_that_cannot_note_the_end_of_a_run_keeps_its_charge(
    make_scenario, charge: Charge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_it(event: dict) -> None:
        charge.path.write_bytes(charge.path.read_bytes().replace(b'"entry"', b'"Entry"', 1))

    document = runner.run(
        make_scenario(CENTRAL), tmp_path / "out", on_round=break_it, report=False, charge=charge
    )
    assert document["status"] == "finished"
    assert "the line was changed" in (printed := capsys.readouterr().err)
    assert "The account does not note that the run has finished." in printed


def test_a_run_that_began_without_an_account_does_not_enter_later(
    make_scenario, charge: Charge, tmp_path: Path
) -> None:
    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(make_scenario(CENTRAL), tmp_path / "out", on_round=stop, report=False)
    (directory,) = (tmp_path / "out").iterdir()
    with pytest.raises(InputError, match="was begun without an account"):
        runner.resume(directory, report=False, charge=charge)


def test_the_cells_of_a_comparison_enter_together(path: Path, tmp_path: Path) -> None:
    compare = ("compare", "digits", *FEW, "--set", "compare.trusts=['central']", "--account", path)
    few = ("--set", "compare.epsilons=[1.0]", "--workers", "1", "--out", tmp_path / "out")
    done(*compare, *few, "--set", "compare.seeds=[1, 2]", "--set", "compare.baselines=false")
    (entry,) = Account.read(path).entries.values()
    assert [part["rounds"] for part in entry["parts"]] == [2, 2]
    (directory,) = (tmp_path / "out").iterdir()
    assert ended(path) == [("finished", directory.name)] * 2
    shown = done("account", "show", path).split()
    assert shown.count("finished") == 2
    assert "finished" not in done("account", "show", path, "--json")
    assert "finished" not in done("account", "export", path, "--csv")
    none = ("compare", "digits", *FEW, "--set", "compare.trusts=['none']", "--account", path, *few)
    message = refusal(*none, "--set", "compare.baselines=false")
    assert "no guarantee against the participant" in message
    assert "Not one of them fits by itself." in message


def test_a_refused_comparison_names_the_options_that_fit(path: Path, tmp_path: Path) -> None:
    out = ("--account", path, "--out", tmp_path / "out")
    trusts = ("--set", "compare.trusts=['none', 'central']", "--set", "compare.seeds=[1, 2, 3, 4]")
    compare = ("compare", "digits", *FEW, "--workers", "1", *out, *trusts)
    message = refusal(*compare, "--set", "compare.epsilons=[0.2, 0.9]")
    assert "no guarantee against the participant" in message  # trust "none", and clipping alone
    assert message.endswith(
        "The largest part of it that fits has 4 of 16 runs: --set 'compare.trusts=[\"central\"]' --set "
        "'compare.epsilons=[0.2]' --set compare.baselines=false"
    )
    done("run", "digits", *FEW, "--seed", "9", "--set", "privacy.epsilon=3", *out)
    dear = ("--set", "compare.epsilons=[1.0, 1.2]")
    message = refusal(*compare, *dear)
    options = shlex.split(message.partition(" runs: ")[2])
    (seeds,) = [word for word in options if word.startswith("compare.seeds=")]
    assert seeds in ("compare.seeds=[1, 2]", "compare.seeds=[1, 2, 3]")
    more = seeds.replace("]", ", 4]")
    assert "it would exceed" in refusal(*compare, *dear, *options, "--set", more)
    done(*compare, *dear, *options)
    *_, entry = Account.read(path).entries.values()
    assert len(entry["parts"]) == seeds.count(",") + 1


def test_statistics_enter(tmp_path: Path) -> None:
    path, out = tmp_path / "people.account", tmp_path / "out"
    done("account", "new", path, "--epsilon", "5", "--delta", "1e-6", "--observer", "server")
    small = ("--set", "data.clients=100", "--account", path, "--out", out)
    done("run", "star-wars-survey", *small)
    (entry,) = Account.read(path).entries.values()
    assert entry["parts"][0]["work"] == "statistics"
    assert ended(path) == [("finished", next(out.iterdir()).name)]


@pytest.mark.exhaustive
def test_a_choice_of_settings_enters(path: Path, tmp_path: Path) -> None:
    tune = ("tune", "tuned", *FEW, "--out", tmp_path / "out", "--workers", "1", "--account")
    assert "adjacency is add-remove, and the policy's is replace-one" in refusal(*tune, path)
    outsider = tmp_path / "outsider.account"
    new = ("account", "new", outsider, "--epsilon", "20", "--delta", "1e-4", "--adjacency", "add-remove")
    done(*new, "--observer", "outsider")
    small = tmp_path / "small.account"
    done(
        *(small if word == outsider else "5" if word == "20" else word for word in new),
        "--observer",
        "outsider",
    )
    message = refusal(*tune, small, "--set", "server.rounds=40", "--set", "privacy.epsilon=3")
    assert "of its 40 rounds of each candidate: --set server.rounds=" in message
    options = shlex.split(message.partition(" candidate: ")[2].removesuffix("."))
    assert "tuned: fits." in done("account", "plan", small, "tuned", *options)
    done(*tune, outsider)
    (entry,) = Account.read(outsider).entries.values()
    assert entry["parts"][0]["work"] == "tuning"
    (directory,) = (tmp_path / "out").iterdir()
    before = outsider.read_bytes()
    assert ended(outsider) == [("finished", directory.name)]
    done("tune", "--resume", directory, "--account", outsider)
    assert outsider.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "work"),
    [
        (("run", "digits", "--limits"), "--limits"),
        (("compare", "star-wars-survey"), "a comparison of statistics"),
    ],
)
def test_work_on_simulated_data_that_no_event_covers_is_not_charged(
    path: Path, tmp_path: Path, words: tuple[str, ...], work: str
) -> None:
    before = path.read_bytes()
    options = ("--account", path, "--out", tmp_path / "out")
    assert f"has no records of clients, so {work} of it cannot reveal any" in refusal(*words, *options)
    assert path.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_comparison_of_which_no_run_fits_names_a_run_that_does(tmp_path: Path) -> None:
    small = tmp_path / "small.account"
    create(small, Policy.of_options(0.3, 1e-5, "client", "replace-one"))
    options = ("--workers", "1", "--out", tmp_path / "out", "--account", small)
    compare = ("compare", "digits", "--set", "compare.trusts=['central']", "--set", "compare.baselines=false")
    message = refusal(*compare, *options, "--set", "compare.epsilons=[1.0, 2.0]")
    assert "Not one of them fits by itself. The largest plan that fits: the first " in message
    named = shlex.split(message.rpartition("rounds: ")[2].rstrip("."))
    done(*compare, *options, *named)
    (entry,) = Account.read(small).entries.values()
    assert len(entry["parts"]) == 1


def test_an_audit_is_charged_for_its_trials_and_its_results_are_the_operators(
    path: Path, tmp_path: Path
) -> None:
    audit = ("audit", "digits", *FEW, "--canaries", "50", "--method", "one-run", "--workers", "1")
    options = ("--out", tmp_path / "out", "--account", path)
    printed = done(*audit, *options, "--trials", "2")
    assert "too few canaries to tell" in printed
    (entry,) = Account.read(path).entries.values()
    assert [part["work"] for part in entry["parts"]] == ["audit", "audit"]
    claim = entry["parts"][0]["claims"]["outsider"]
    assert AccountAssumption.OPERATOR_ALONE in claim["assumptions"]
    assert ended(path) == [("finished", run.name) for run in (tmp_path / "out").iterdir()] * 2
    (directory,) = (tmp_path / "out").iterdir()
    page = (directory / "report.html").read_text()
    assert words.RESULTS_WITHHELD in html.unescape(page)
    assert "anaries prove" not in page
    assert "anaries prove" in (directory / "operator.html").read_text()
    assert not {"observers", "refuted", "ledgers"} & public(read_document(directory / "run.json")).keys()
    assert "Give --operator" in refusal("export", directory, "--csv", "--out", tmp_path)
    assert "operator-only" in repr(fp.read(directory))
    assert "seen by the operator alone" in " ".join(done("account", "show", path).split())


def test_the_exit_code_of_a_charged_audit_has_no_verdict(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    audit = ("audit", "digits", "--strict", "--account", path, "--out", tmp_path / "out")
    assert "an exit code is as public as the log" in refusal(*audit)
    assert path.read_bytes() == before


def test_options_that_cannot_run_are_refused_before_the_charge(path: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.account"
    create(records, Policy.of_options(20.0, 1e-5, "example", "replace-one"))
    before, out = (path.read_bytes(), records.read_bytes()), ("--out", tmp_path / "out")
    wide = ("--set", 'model={name="mlp",hidden=[64]}', "--canaries", "100000")
    assert "51,975 or fewer" in refusal("audit", "digits", *FEW, *wide, "--account", path, *out)
    one = ("--set", 'approaches={output={kind="output-perturbation"}}', "--set", "study.epsilons=[0.25]")
    gpu = ("--engine", "ray", "--workers", "1", "--gpus-per-worker", "0.5")
    study = ("run", "private-erm", *one, "--set", "study.records=[200]", "--set", "study.repeats=2")
    assert "silos compute on CPUs" in refusal(*study, *gpu, "--account", records, *out)
    assert (path.read_bytes(), records.read_bytes()) == before


def test_too_many_trials_of_an_audit_are_refused_with_the_number_that_fits(tmp_path: Path) -> None:
    small = tmp_path / "small.account"
    create(small, Policy.of_options(8.0, 1e-5, "client", "replace-one"))
    audit = ("audit", "digits", "--account", small, "--out", tmp_path / "out", "--canaries", "50")
    message = refusal(*audit, "--trials", "40")
    trials = int(message.rpartition("--trials ")[2].rstrip("."))
    before = small.read_bytes()
    account = Account.read(small)
    scenario = load(find("digits"))
    assert isinstance(scenario, Scenario)
    people = population(scenario.data)
    plan = plan_of(scenario)

    def parts(count: int) -> list[dict[str, Any]]:
        works = audit_works(scenario, plan, people, "", canaries=50, trials=count)
        return [work.part(account.policy, account.key) for work in works]

    assert account.refusal(parts(trials)) is None
    assert account.refusal(parts(trials + 1)) is not None
    assert small.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_policy_that_covers_the_server_admits_no_audit(tmp_path: Path) -> None:
    small = tmp_path / "small.account"
    create(small, Policy.of_options(8.0, 1e-5, "client", "replace-one", ["server"]))
    local = "privacy={trust='local', clipping_norm=1.0, epsilon=8.0, delta=1e-5}"
    message = refusal("audit", "digits", "--set", local, *FEW, "--account", small, "--out", tmp_path / "out")
    assert "an audit trains without noise too, which the server sees" in message


def test_a_replay_is_charged_once_and_attacked_no_further(path: Path, tmp_path: Path) -> None:
    small = {
        "game.members": 20, "game.nonmembers": 40, "model.hidden": [16], "attacks.passive.rounds": 2,
        "server.rounds": 100, "game.warm_up": 1, "privacy": {"trust": "central", "clipping_norm": 1.0,
        "noise_multiplier": 60.0, "delta": 1e-5},
    }  # fmt: skip
    quiet: dict[str, Any] = {"workers": 1, "progress": False, "account": path}
    result = fp.replay("active-gradient-ascent", attacks="passive", set=small, out=tmp_path / "out", **quiet)
    assert result.document["for_operator"] is True
    assert not {"attacks", "verdict"} & public(result.document).keys()
    assert result.document["attacks"]
    (entry,) = Account.read(path).entries.values()
    assert [(part["work"], part["rounds"]) for part in entry["parts"]] == [("attacks", 100)]
    (directory,) = (tmp_path / "out").iterdir()
    before = path.read_bytes()
    done("replay", "--resume", directory, "--account", path, "--workers", "1")
    assert path.read_bytes() == before
    assert "for its own attacks alone" in refusal("replay", directory, "--out", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_study_is_charged_for_every_estimate(tmp_path: Path) -> None:
    small = tmp_path / "records.account"
    create(small, Policy.of_options(8.0, 1e-5, "example", "replace-one"))
    keys = {"study.repeats": 2, "study.epsilons": [0.25], "study.records": [200]}
    approaches = {
        "output": {"kind": "output-perturbation"},
        "grid": {"kind": "exponential-grid", "points": 5},
    }
    options: dict[str, Any] = {"out": tmp_path / "out", "progress": False, "account": small}
    result = fp.run("private-erm", set={**keys, "approaches": approaches}, **options)
    assert result.document["for_operator"] is True
    assert not {"exact", "finding", "slopes"} & public(result.document).keys()
    (entry,) = Account.read(small).entries.values()
    assert [(part["work"], part["rounds"]) for part in entry["parts"]] == [("estimates", 4)]
    assert "4 estimates" in done("account", "show", small)


def test_wrong_options_are_refused(path: Path, tmp_path: Path) -> None:
    run = ("run", "digits", "--account")
    assert "No such file" in refusal(*run, tmp_path / "missing")
    assert "Give --account" in refusal("run", "digits", "--same-population")
    assert "there already" in refusal("account", "new", path, "--epsilon", "1", "--delta", "1e-5")
    new = ("account", "new", tmp_path / "other", "--epsilon", "1", "--delta", "1e-5")
    for option, value in (
        ("--unit", "person"),
        ("--adjacency", "swap"),
        ("--observer", "nobody"),
        ("--observer", "server=x"),
        ("--order", "2"),
    ):
        assert refusal(*new, option, value).startswith(f"{option} ")
    assert not (tmp_path / "other").exists()
