"""The registry; that each of its mechanisms keeps its claim is `test_claims.py`."""

from __future__ import annotations

import doctest
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from claims import checks
from claims.vectors import NORM, GaussianClaim
from scipy import stats

from fedprivacy.mechanisms import bits, catalogue, categories, central, coins, local, registry
from fedprivacy.mechanisms.registry import HEURISTICS, REGISTRY, title
from fedprivacy.plan import from_scenario

ROOT = Path(__file__).parents[3]


def test_it_holds_what_a_client_may_do_to_an_update_and_no_heuristic() -> None:
    assert {name: local.local_class(name).name for name in local.LOCAL} == {
        name: name for name in local.LOCAL
    }
    assert set(local.LOCAL) <= set(REGISTRY)
    assert catalogue.ClipOnly.name not in REGISTRY
    assert catalogue.ClipOnly.name in HEURISTICS
    assert set(catalogue.MECHANISMS) == {
        catalogue.ClipOnly.name,
        *registry.family("update", "local update", "central update"),
    }


def test_titles_are_told_apart_and_an_unknown_name_stays_as_it_is() -> None:
    titles = [title(name) for name in REGISTRY]
    assert len(set(titles)) == len(titles)
    assert title("no-such-mechanism") == "no-such-mechanism"


@pytest.mark.parametrize("module", [bits, categories, central, coins, from_scenario, local, registry])
def test_the_examples_of_the_docstrings_hold(module) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# A file with one mechanism of each family that other rooms choose from, and its lines of the registry.
TOYS = """
from dataclasses import dataclass
from typing import ClassVar
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.kary import KaryRandomizedResponse

class ToyUpdate(Gaussian):
    name: ClassVar[str] = "toy-update"
    title: ClassVar[str] = "toy update"

class ToyOracle(KaryRandomizedResponse):
    name: ClassVar[str] = "toy-oracle"
    title: ClassVar[str] = "toy oracle"
    procedure: ClassVar[str] = "each client names its category"
"""
USED = """
import sys
import fedprivacy.mechanisms
from fedprivacy.mechanisms.registry import REGISTRY, Entry, title

fedprivacy.mechanisms.__path__.append(sys.argv[1])
REGISTRY["toy-update"] = Entry("local update", "toys:ToyUpdate")
REGISTRY["toy-oracle"] = Entry("category", "toys:ToyOracle")

from fedprivacy.scenario.loading import load
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.report.statistics.figures import DOES
from fedprivacy.statistics.plan import plan_of as statistics_plan_of
from scenarios.authoring.catalogue import find

assert title("toy-oracle") == "toy oracle"
local = ["privacy.trust=local", "privacy.epsilon=4.0"]
plan = plan_of(load(find("digits"), [*local, "privacy.mechanism=toy-update"]), 650)
assert plan.mechanism.name == "toy-update"
assert Plan.from_json(plan.to_json()) == plan

names = load(find("first-names"), ["privacy.trust=local", "queries.names.local=toy-oracle"])
assert [query.mechanism.name for query in statistics_plan_of(names).asks] == ["toy-oracle"]
assert DOES["local", "toy-oracle"] == "each client names its category"
"""


def test_a_new_mechanism_is_one_file_and_one_line(tmp_path: Path) -> None:
    """What scenarios accept, plans calibrate and read back, and pages describe follows from the registry."""
    (tmp_path / "toys.py").write_text(TOYS)
    python(USED, tmp_path)


# A mechanism of the server's sum with a key of its own: it draws `spare` times the noise that it accounts for.
SERVER = """
from dataclasses import dataclass
from typing import ClassVar
from dp_accounting import dp_event as dp
from pydantic import BaseModel, Field
from fedprivacy.mechanisms.central import CentralMechanism

class SpareOptions(BaseModel):
    spare: float | None = Field(None, ge=1, le=10, description="How many times the needed noise is drawn.")

@dataclass(frozen=True)
class ToyServer(CentralMechanism):
    clipping_norm: float
    noise_multiplier: float
    spare: float
    name: ClassVar[str] = "toy-server"
    title: ClassVar[str] = "toy server"
    drawn: ClassVar[list] = []

    @classmethod
    def of_scenario(cls, settings):
        spare = settings.options(SpareOptions).spare or 2.0
        return cls(settings.clipping_norm, settings.noise_multiplier, spare)

    @property
    def words(self):
        return f"noise multiplier {self.noise_multiplier:.4g}, {self.spare:g} times the needed one"

    def event(self):
        return dp.GaussianDpEvent(self.noise_multiplier / self.spare)

    def draw(self, dimension, stream):
        noise = stream.standard_normal(dimension) * self.noise_multiplier * self.clipping_norm
        self.drawn.append(noise)
        return noise
"""
SERVED = """
import json
import sys
from pathlib import Path
import pytest
import fedprivacy.mechanisms
from fedprivacy.mechanisms.registry import REGISTRY, Choice, Entry

folder = Path(sys.argv[1])
fedprivacy.mechanisms.__path__.append(str(folder))
REGISTRY["toy-server"] = Entry("central update", "toy_server:ToyServer", Choice(options="toy_server:SpareOptions"))

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.toy_server import ToyServer
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.loading import load
from fedprivacy.verification.verify import checked_document
from scenarios.authoring.catalogue import find
from scenarios.authoring.key_reference import Options
from scenarios.runner import run

def scenario(*changes):
    return load(find("digits"), ["server.rounds=2", "privacy.trust=central", "privacy.epsilon=4.0", *changes])

toy = scenario("privacy.mechanism=toy-server", "privacy.spare=1.5")
# The key and the value are in the reference, the saved copy and the messages.
assert "needed noise" in Options(toy, ("privacy",)).about("spare")
assert toy.from_text(toy.to_toml()) == toy
for changes, message in {
    ("privacy.mechanism=toy-servr",): '"toy-server"',
    ("privacy.mechanism=toy-server", "privacy.spare=0.5"): "privacy.spare",
    ("privacy.spare=1.5",): 'privacy.spare=1.5: has no effect without mechanism = "toy-server"',
    ("privacy.mechanism=toy-server", "privacy.trust=local"): 'unknown mechanism',
    ("privacy.mechanism=toy-server", "server.denoise=james-stein"): 'not that of "toy-server"',
    ("privacy.mechanism=toy-server", "privacy.encoding=signs"): 'privacy.encoding=signs: has no effect without',
    ("privacy.mechanism=toy-server", "privacy.clipping_quantile=0.5"): 'quantile=0.5: has no effect without',
    ("privacy.mechanism=toy-server", "privacy.degrees=5.0"): 'privacy.degrees=5.0: has no effect without',
}.items():
    with pytest.raises(InputError) as refused:
        scenario(*changes)
    assert message in str(refused.value), refused.value
assert scenario("privacy.mechanism=toy-server").privacy.spare is None

gaussian, plan = plan_of(scenario()), plan_of(toy)
assert plan.noise_multiplier == pytest.approx(1.5 * gaussian.noise_multiplier, rel=1e-4)
assert Plan.from_json(plan.to_json()) == plan

document = run(toy, folder)
path = Path(document["path"])
stored = json.loads((path / "run.json").read_text())
assert stored["privacy"]["mechanism"] == "toy-server"
epsilons = {g["observer"]: g["epsilon"] for g in stored["privacy"]["guarantees"]}
assert epsilons["server"] is None
assert 3.9 < epsilons["outsider"] <= 4.0
assert "1.5 times the needed one" in (path / "report.html").read_text()

# The claim follows from the plan, and neither another epsilon nor less noise passes.
assert checked_document(path)["privacy"]["guarantees"] == stored["privacy"]["guarantees"]
for damage in (
    lambda d: d["privacy"]["guarantees"][-1].update(epsilon=1.0),
    lambda d: d["plan"]["mechanism"].update(noise_multiplier=plan.noise_multiplier / 2),
    lambda d: d["plan"]["mechanism"].update(spare=1.0),
):
    damaged = json.loads(json.dumps(stored))
    damage(damaged)
    (path / "run.json").write_text(json.dumps(damaged))
    with pytest.raises(InputError):
        checked_document(path)

# Each round has a draw of all coordinates, at the plan's size.
draws = ToyServer.drawn
weights = RunDirectory(path).load_checkpoint().tensors["weights"]
assert [len(noise) for noise in draws] == [len(weights)] * 2
deviation = plan.noise_multiplier * plan.clipping_norm
assert all(abs(noise.std() / deviation - 1) < 0.2 for noise in draws)
"""


def test_a_new_mechanism_of_the_server_is_one_file_and_one_line(tmp_path: Path) -> None:
    """Its keys, messages, plan, run, epsilon, verification and page follow from the registry."""
    (tmp_path / "toy_server.py").write_text(SERVER)
    python(SERVED, tmp_path)


@pytest.mark.parametrize("check", ["distribution", "privacy"])
def test_a_new_mechanism_of_the_server_has_a_claim(check: str) -> None:
    """A claim of its own holds, and fails with half the noise."""
    module = types.ModuleType("toy_server")
    sys.modules[module.__name__] = module  # where a dataclass looks up its types
    exec(SERVER, module.__dict__)
    try:
        claimed = module.ToyServer(NORM, 3.0, 1.0)
        halved = claimed.with_noise(1.5)
        claim = ToyServerClaim()
        getattr(claim, check)(claimed, claimed)
        with pytest.raises(AssertionError):
            getattr(claim, check)(claimed, halved)
    finally:
        del sys.modules[module.__name__]


class ToyServerClaim(GaussianClaim):
    def distribution(self, claimed: Any, drawn: Any) -> None:
        noise = drawn.draw(20_000, checks.stream("noise"))
        checks.follows(noise, stats.norm(scale=claimed.event().noise_multiplier * NORM).cdf)

    def privacy(self, claimed: Any, drawn: Any) -> None:
        deviation = drawn.noise_multiplier * NORM
        one, other = (stats.norm(at, deviation).pdf for at in (NORM, -NORM))
        checks.hockey_stick(one, other, self.epsilon(claimed), self.delta, (-100.0, 100.0), (-NORM, NORM))


def test_keys_of_mechanisms_are_distinct() -> None:
    """Two classes of options with one key would hide one another."""
    kinds = [
        kind
        for name in central.CENTRAL
        if (place := REGISTRY[name].choice.options)
        for kind in [registry.class_at(place)]
    ]
    keys = [key for kind in kinds for key in kind.__annotations__]
    assert len(set(keys)) == len(keys)


def python(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
