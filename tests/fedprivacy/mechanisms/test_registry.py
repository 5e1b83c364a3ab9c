"""The registry; that each of its mechanisms keeps its claim is `test_claims.py`."""

from __future__ import annotations

import doctest
import itertools
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from claims import checks
from claims.vectors import NORM, GaussianClaim
from scipy import stats

from fedprivacy.errors import InputError
from fedprivacy.mechanisms import bits, catalogue, categories, central, coins, local, registry
from fedprivacy.mechanisms.options import AdaptiveOptions, BandedOptions
from fedprivacy.mechanisms.registry import GAUSSIAN_VARIANTS, HEURISTICS, REGISTRY, title
from fedprivacy.plan import from_scenario
from fedprivacy.scenario import privacy
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import find

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
        *registry.family("update", "local update", "gaussian variant", "central update", "shared update"),
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
plan = plan_of(load(find("digits"), [*local, "privacy.mechanism=toy-update"]))
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
SERVER = '''
from dataclasses import dataclass, replace
from typing import ClassVar
from dp_accounting import dp_event as dp
from pydantic import BaseModel, Field
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.mechanisms.central import CentralMechanism
from fedprivacy.mechanisms.gaussian import Gaussian

class SpareOptions(BaseModel):
    spare: float | None = Field(None, ge=1, le=10, description="How many times the needed noise is drawn.")
    floor: float = Field(0.5, ge=0, description="Without effect, but not None by default.")

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

    def with_noise(self, noise_multiplier):
        return replace(self, noise_multiplier=noise_multiplier)

    def event(self):
        return dp.GaussianDpEvent(self.noise_multiplier / self.spare)

    def draw(self, dimension, stream):
        noise = stream.standard_normal(dimension) * self.noise_multiplier * self.clipping_norm
        self.drawn.append(noise)
        return noise

@dataclass(frozen=True)
class ToyTwin(Gaussian):
    """Gaussian noise of another name, which keeps the length of an update and shares a class of keys."""
    dimension: int
    name: ClassVar[str] = "toy-twin"

    @classmethod
    def of_scenario(cls, settings):
        return cls(settings.clipping_norm, settings.noise_multiplier, settings.dimension())

@dataclass(frozen=True)
class ToyLength(ToyTwin):
    """It keeps the length in another field, where no stored plan is read for it."""
    dimension: ClassVar[None] = None
    length: int
    name: ClassVar[str] = "toy-length"

@dataclass(frozen=True)
class ToyPure(ToyServer):
    """It states an epsilon, which no accountant doubles."""
    name: ClassVar[str] = "toy-pure"

    def event(self):
        return dp.SelfComposedDpEvent(PureDpEvent(1 / max(self.noise_multiplier, 1e-3)), 1)
'''
SERVED = """
import json
import sys
from pathlib import Path
import pytest
import fedprivacy.mechanisms
from fedprivacy.mechanisms.registry import REGISTRY, Entry

folder = Path(sys.argv[1])
fedprivacy.mechanisms.__path__.append(str(folder))
SPARE = "toy_server:SpareOptions"
REGISTRY["toy-server"] = Entry("central update", "toy_server:ToyServer", SPARE)
for name, kind in {"toy-twin": "ToyTwin", "toy-length": "ToyLength", "toy-pure": "ToyPure"}.items():
    REGISTRY[name] = Entry("central update", f"toy_server:{kind}", SPARE)

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.toy_server import ToyServer
from fedprivacy.plan.from_scenario import plan_of, stored_plan
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.changes import lay
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
    ("privacy.floor=0.7",): 'privacy.floor=0.7: has no effect without mechanism = "toy-server"',
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
# The default of a key without effect is no mistake, is not saved, and goes with the mechanism.
assert scenario("privacy.floor=0.5") == scenario() == Scenario.from_text(scenario().to_toml())
assert "floor" not in scenario().to_toml() and "floor = 0.5" in toy.to_toml()
assert scenario("privacy.mechanism=toy-twin", "privacy.floor=0.7").privacy.floor == 0.7
assert "floor" not in lay({"privacy": {"floor": 0.7}}, {("privacy", "mechanism"): "gaussian"})["privacy"]

# A stored plan is read back without the model from the field `dimension`, and from no other.
twin = scenario("privacy.mechanism=toy-twin")
assert stored_plan(twin, plan_of(twin)) == plan_of(twin)
assert plan_of(twin).sum_deviation(9) is None  # as denoising is refused for it
length = scenario("privacy.mechanism=toy-length")
with pytest.raises(InputError, match="no length of updates"):
    stored_plan(length, plan_of(length))
# No false epsilon: the accountants would charge a replaced client as a zeroed one.
with pytest.raises(InputError, match="mechanism toy-pure: no accountant doubles"):
    plan_of(scenario("privacy.mechanism=toy-pure"))

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


@pytest.mark.exhaustive
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
        present, absent = (stats.norm(at, deviation).pdf for at in (NORM, -NORM))
        bounds = (-100.0, 100.0)
        checks.hockey_stick(present, absent, self.epsilon(claimed), self.delta, bounds, (-NORM, NORM))


def test_keys_of_mechanisms_are_distinct() -> None:
    """Two classes of options with one key, or one with a key of the section, would hide one another."""
    places = dict.fromkeys(entry.options for entry in REGISTRY.values() if entry.options)
    own = [key for place in places for key in registry.class_at(place).__annotations__]
    keys = [*privacy._Central.model_fields, *BandedOptions.model_fields, *AdaptiveOptions.model_fields, *own]
    assert len(set(keys)) == len(keys)


def test_keys_choose_built_in_variants_of_gaussian_noise_alone() -> None:
    """Of two such keys one would be ignored without a word."""
    assert registry.family("update") == ("gaussian",)
    assert set(GAUSSIAN_VARIANTS.values()) == set(registry.family("gaussian variant"))
    values = {"clipping_quantile": 0.5, "bands": 2, "encoding": "signs"}
    assert values.keys() == GAUSSIAN_VARIANTS.keys()
    apart = ("privacy.trust=central", "sampling={name='separated', cohort=4, separation=8}")
    for key, value in values.items():
        gaussian = {"mechanism": "gaussian", key: value}
        assert from_scenario.central_mechanism(gaussian).name == GAUSSIAN_VARIANTS[key]
        assert load(find("digits"), [*apart, f"privacy.{key}={value}"])
    for pair in itertools.combinations(values, 2):
        with pytest.raises(InputError) as refused:
            load(find("digits"), [*apart, *(f"privacy.{key}={values[key]}" for key in pair)])
        assert len(refused.value.problems) == 1, refused.value


def python(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
