"""README.md and the pages for beginners: every command in their code blocks runs, and prints what they say.

The commands of the `sh` blocks of a page, and its `python` blocks in tutorials, run in the order of the page, in one new
folder, in bash. By rule:

- `NOT_RUN` install software, change the reader's shell, run all of it, need data that is not shipped, or start a cluster
  or a federation, as tests of these engines do. That what they name exists is checked.
- `SHORTER` are run with options after them that make them quick, and change nothing else.

A `text` block is what the command above it prints; `...` in it stands for anything. Below a command that is not run it is
from a real run. A `none` block is an excerpt of a table.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from warm import ENVIRONMENT, write_command

from fedprivacy.attacks.sample_size import WIDEST, rounded_up, targets_needed
from fedprivacy.scenario.loading import loads

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TUTORIALS = sorted(f"docs/tutorials/{path.name}" for path in (ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = (
    "README.md", "docs/start.md", "docs/runs.md", "docs/budget.md", "docs/tuning.md", "docs/planning.md",
    "docs/engines.md", *TUTORIALS,
)  # fmt: skip
NOT_RUN = (
    "make demo",
    ". .venv/bin/activate",
    "fedprivacy --install-completion",
    "pip install -c constraints.txt -e '.[ray]'",
    "fedprivacy run synthetic-million --engine ray --workers 2",
    "fedprivacy run mine.toml --engine ray --ray-address 10.0.0.5:6379",
    "fedprivacy run mine.toml --engine ray --workers 4 --gpus-per-worker 0.25 --set training.device=cuda",
    "fedprivacy federation up --nodes 3 --tls",
    "fedprivacy federation up --nodes 4 --tls",
    "fedprivacy federation up --nodes 4 --tls --scenario study.toml --data own-0.npz --data own-1.npz --data own-2.npz --data own-3.npz",
    "fedprivacy run digits --engine superlink --set server.rounds=2",
    "fedprivacy run hospitals --engine superlink --set server.rounds=2 --verbose",
    "fedprivacy run study.toml --engine superlink --verbose",
    "fedprivacy federation down",
    "fedprivacy compare hospitals --verbose",
    "export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1",
    "flwr run . --stream",
)
# Are run where another page has them, with what they print if this page says it.
ELSEWHERE = {
    "README.md": {
        "fedprivacy compare local-vs-central": "docs/tutorials/compare-trusts.md",
        "fedprivacy replay active-gradient-ascent": "docs/tutorials/attack-yourself.md",
        "fedprivacy run star-wars-survey": "docs/tutorials/statistics.md",
        "fedprivacy tune tuned": "docs/tuning.md",
        "fedprivacy plan --target-accuracy .8 --epsilon 4 --trust local,central": "docs/planning.md",
    },
    "docs/start.md": {"fedprivacy run digits": "README.md"},
}
VERBOSE = " --verbose"  # which shortens a command no otherwise
SHORTER = {
    "fedprivacy run digits --set privacy.epsilon=8": "--set server.rounds=2",
    "fedprivacy run mine.toml": "--set server.rounds=2",
    "fedprivacy compare star-wars-survey": "--set compare.repeats=2 --set 'compare.clients=[100, 1000]'",
    "fedprivacy replay active-gradient-ascent": "--attack passive --set game.members=20 "
    "--set game.nonmembers=40 --set server.rounds=2 --set attacks.passive.rounds=2 --set 'model.hidden=[16]'",
    "fedprivacy replay attack-dp-sgd": "--attack passive --set game.members=20 --set game.nonmembers=40 "
    "--set 'game.epsilons=[8.0]' --set game.warm_up=2 --set attacks.passive.rounds=2 --set attacks.passive.skip=0",
    "fedprivacy audit digits": "--canaries 100 --set server.rounds=2",
    "fedprivacy compare local-vs-central": "--set 'compare.seeds=[1]' --set 'compare.epsilons=[8.0]' "
    "--set compare.none.server.rounds=2 --set compare.central.server.rounds=2",
    'fedprivacy compare mine.toml --set "compare={epsilons=[2.0], seeds=[1, 2]}"': "--set server.rounds=2",
    'fedprivacy compare patients.toml --set "compare={epsilons=[1.0, 4.0], seeds=[1, 2, 3]}"': "--set server.rounds=2",
}


def blocks(page: str) -> list[tuple[str, str]]:
    """The (command, expected output) of a page, in order; no expectation is an empty text."""
    found: list[tuple[str, str]] = []
    for kind, body in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", (ROOT / page).read_text()):
        if kind == "sh":
            found += [(re.split(r"\s+# ", line)[0], "") for line in body.splitlines()]
        elif kind == "python" and page in TUTORIALS:
            found.append((f"{shlex.quote(sys.executable)} -c {shlex.quote(body)}", ""))
        elif kind == "text" and found:
            found[-1] = (found[-1][0], body)
    return found


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)  # of the README in every run
@pytest.mark.parametrize("page", PAGES)
def test_every_command_runs_and_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "fedprivacy"
    shim.parent.mkdir()
    write_command(shim)
    work = tmp_path / "work"
    work.mkdir()
    environment = ENVIRONMENT | {"PATH": f"{shim.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for command, expected in blocks(page):
        if command in NOT_RUN or command in ELSEWHERE.get(page, ()):
            continue
        done = subprocess.run(
            ["bash", "-c", f"{command} {SHORTER.get(command.removesuffix(VERBOSE), '')}"],
            cwd=work, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        refused = expected.startswith("--set")
        assert done.returncode == (2 if refused else 0), (command, done.stderr)
        if expected:
            printed = " ".join((done.stderr if refused else done.stdout).split())
            pattern = ".*".join(map(re.escape, re.split(r" ?\.\.\. ?", " ".join(expected.split()))))
            assert re.fullmatch(pattern, printed), (command, printed)


@pytest.mark.parametrize(
    ("page", "command", "other"),
    [(page, *each) for page, skipped in ELSEWHERE.items() for each in skipped.items()],
)
def test_a_command_that_is_run_elsewhere_is(page: str, command: str, other: str) -> None:
    assert command not in ELSEWHERE.get(other, ())
    here, there = dict(blocks(page))[command], dict(blocks(other))
    assert here in ("", there.get(command))
    assert {command, command + VERBOSE} & set(there)


def test_every_command_that_is_not_run_or_shortened_stands_on_a_page() -> None:
    commands = [command for page in PAGES for command, _ in blocks(page)]
    brief = {command.removesuffix(VERBOSE) for command in commands}
    assert set(NOT_RUN) <= set(commands)
    assert set(SHORTER) <= brief
    assert len(set(commands) - set(NOT_RUN)) >= 30


def test_the_scenario_of_the_hospitals_is_one() -> None:
    (text,) = re.findall(r"(?ms)^```toml\n(.*?)^```$", (ROOT / "docs/tutorials/hospitals.md").read_text())
    assert loads(text).population == 4


def test_the_tutorial_of_attacks_states_how_many_targets_a_rate_needs() -> None:
    text = " ".join((ROOT / "docs/tutorials/attack-yourself.md").read_text().split())
    scenario = tomllib.loads((ROOT / "scenarios/active-gradient-ascent.toml").read_text())
    assert f"1 % of the {scenario['game']['nonmembers']:,} non-members" in text
    assert f"wider than {100 * WIDEST:g} points" in text
    needed = map(rounded_up, targets_needed(0.01))
    assert "about {:,} members and {:,} non-members give".format(*needed) in text


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_what_is_not_run_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?m)(?:^|`)make (\w+)", README):
        assert re.search(rf"(?m)^{target}:", makefile), target
    assert "VENV := .venv" in makefile
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "ray" in project["project"]["optional-dependencies"]
    assert (ROOT / "constraints.txt").exists()
    scenario = project["tool"]["flwr"]["app"]["config"]["scenario"]
    assert (ROOT / scenario).exists()


PAGES_WITH_LINKS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("**/*.md")),
]


@pytest.mark.parametrize("page", PAGES_WITH_LINKS)
def test_every_link_and_picture_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith(("https://", "#")):
            assert ((ROOT / page).parent / target.split("#")[0]).exists(), target
