"""Records as the unit of privacy, from the scenario to the record of a run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
import torch

from clients.app import faults_of
from clients.fleet import Budgets, Fleet
from clients.training_handler import answer
from fedprivacy.data.datasets import Dataset
from fedprivacy.errors import InputError, Refusal
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population, population
from fedprivacy.population.partition import Partition
from fedprivacy.sampling.batches import PoissonBatches
from fedprivacy.verification.verify import checked_document
from scenarios.runner import resume, run

INSIDE = (
    "privacy={trust='local', unit='example', epsilon=4.0, delta=1e-3, clipping_norm=1.0}",
    "training={batches='poisson', steps=4, rate=0.5, learning_rate=0.5}",
)
CENTRAL = (
    "privacy={trust='central', unit='example', epsilon=4.0, delta=1e-3, clipping_norm=1.0}",
    "training={batches='poisson', steps=1, rate=0.5, learning_rate=0.5}",
)

EMBEDDING = """
from torch import nn

class Codes(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.table = nn.Embedding(10, classes)
        nn.init.zeros_(self.table.weight)

    def forward(self, x):
        return self.table(x.long()).sum(1)

def make(features, classes):
    return Codes(classes)
"""


def epsilons(document: dict) -> dict[str, float | None]:
    return {one["observer"]: one["epsilon"] for one in document["privacy"]["guarantees"]}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_who_is_protected_from_whom(make_scenario, tmp_path: Path, adjacency: str) -> None:
    inside, central = (
        run(make_scenario(*each, f"privacy.adjacency={adjacency}"), tmp_path, report=False)
        for each in (INSIDE, CENTRAL)
    )
    found = epsilons(inside)
    assert found == pytest.approx(dict.fromkeys(("server", "participant", "outsider"), 4.0), rel=1e-3)
    assert max(found.values()) <= 4.0
    assert epsilons(central) == {
        "server": None,
        "participant": pytest.approx(4.0, rel=1e-3),
        "outsider": pytest.approx(4.0, rel=1e-3),
    }
    for document in (inside, central):
        assert {one["unit"] for one in document["privacy"]["guarantees"]} == {"example"}


def test_the_event_is_that_of_the_steps_that_were_made(make_scenario, tmp_path: Path) -> None:
    """Three rounds of four steps at rate 0.5: an independent accountant says the same."""
    document = run(make_scenario(*INSIDE, "privacy.adjacency=add-remove"), tmp_path, report=False)
    accountant = dp_accounting.rdp.RdpAccountant()
    noise = document["privacy"]["noise_multiplier"]
    step = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(noise))
    accountant.compose(step, 12)
    assert 4.0 <= accountant.get_epsilon(1e-3) <= 1.25 * 4.0  # RDP is looser than PLD


def test_the_record_of_a_run_has_each_clients_epsilon(make_scenario, tmp_path: Path) -> None:
    """Clients that took part less often, or are larger, have spent less."""
    settings = ("sampling={name='poisson', rate=0.5}", "server.rounds=6", "privacy.max_participations=4")
    sized = "training={batches='poisson', steps=2, batch_size=2, learning_rate=0.5}"
    data = ("data.partition=dirichlet", "data.alpha=1.0", "data.records=200")
    document = run(make_scenario(*INSIDE, *settings, *data, sized), tmp_path)
    told = document["privacy"]["per_client"]
    assert sum(group["clients"] for group in told["groups"]) == 12
    assert told["median"] <= told["largest"] <= epsilons(document)["server"] <= 4.0
    assert len({group["epsilon"] for group in told["groups"]}) > 3
    by_cost = sorted(told["groups"], key=lambda group: (group["records"], -group["answers"]))
    dearest = max(told["groups"], key=lambda group: group["epsilon"])
    assert dearest["answers"] >= by_cost[0]["answers"] or dearest["records"] == by_cost[0]["records"]
    counted = Counter({int(k): v for k, v in document["ledger"]["participations"].items()})
    assert max(counted) == 4
    path = Path(document["path"])
    assert checked_document(path) == document
    told["largest"] /= 2
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"privacy\.per_client\.largest: says"):
        checked_document(path)


def test_noise_on_the_server_moves_the_model_by_the_mean_gradient(make_scenario, trial) -> None:
    """Without noise, all records once a round are plain gradient descent on all of them."""
    asked = make_scenario(
        "privacy={trust='central', unit='example', noise_multiplier=1e-4, delta=1e-3, clipping_norm=100.0}",
        "training={batch_size='all', learning_rate=0.5}", "data.partition=dirichlet", "data.alpha=0.5",
    )  # fmt: skip
    model = trial(asked).play()
    fleet = Fleet.of(asked)
    x, y = fleet.x, fleet.y
    layer = torch.nn.Linear(4, 2)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(layer(x), y).backward()
        optimizer.step()
    expected = torch.cat([layer.weight.reshape(-1), layer.bias]).detach().numpy()
    assert np.allclose(model, expected, atol=2e-3)


def test_silos_weigh_by_their_records(make_scenario, trial) -> None:
    data = ("data.partition=dirichlet", "data.alpha=0.5")
    full = ("privacy={trust='none', unit='example'}", "server.rounds=1")
    one_step = "training={batch_size='all', learning_rate=0.5, weighting='records'}"
    model = trial(make_scenario(*full, one_step, *data)).play()
    # One step on all records by their number is one step on all of them together.
    together = trial(
        make_scenario(*CENTRAL, "training={batch_size='all', learning_rate=0.5}", *data, "server.rounds=1",
                      "privacy={trust='central', unit='example', noise_multiplier=1e-4, delta=1e-3, "
                      "clipping_norm=1000.0}")
    ).play()  # fmt: skip
    assert np.allclose(model, together, atol=2e-3)


@pytest.mark.parametrize(
    "asked",
    [
        {"batches": PoissonBatches(400, rate=0.5)},
        {"batches": PoissonBatches(4, rate=0.01)},
        {"max_participations": 30},
        {"unit": "client", "batches": None},
    ],
)
def test_a_client_keeps_to_its_own_steps_and_batches(make_scenario, asked: dict) -> None:
    fleet = Fleet.of(make_scenario(*INSIDE))
    other = replace(fleet.plan, **asked)
    request = TrainRequest(0, 0, 0, np.arange(3), np.zeros(10, np.float32), other, "each")
    with pytest.raises(Refusal, match="requested"):
        answer(fleet, Budgets.fresh(12, 3), request)


def test_a_client_that_fails_answers_with_noise_like_any_other(make_scenario, monkeypatch) -> None:
    fleet = Fleet.of(make_scenario(*INSIDE))
    broken = replace(fleet, module=torch.nn.Linear(4, 2, bias=True))
    broken.people.dataset.y[broken.people.partition.records(1)] = 7  # no such class
    request = TrainRequest(0, 0, 0, np.arange(3), np.zeros(10, np.float32), fleet.plan, "each")
    reply, faults = answer(broken, Budgets.fresh(12, 3), request)
    assert reply.clients.tolist() == [0, 1, 2]
    assert (reply.faults.failed, reply.faults.zeroed) == (0, 0)  # the node alone knows
    assert faults.failed + faults.zeroed == 1
    assert (np.abs(reply.updates).min(axis=1) > 0).all()


def test_a_run_goes_on_where_it_broke_off(make_scenario, tmp_path: Path) -> None:
    whole = run(make_scenario(*INSIDE), tmp_path / "a", report=False)

    def stop(event) -> None:
        if event["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(make_scenario(*INSIDE), tmp_path / "b", report=False, on_round=stop)
    [folder] = (tmp_path / "b").iterdir()
    again = resume(folder)
    assert again["final"] == whole["final"]
    assert epsilons(again) == epsilons(whole)


def test_a_plan_travels_as_json(make_scenario) -> None:
    plan = plan_of(make_scenario(*INSIDE))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("privacy.mechanism=privunit",), "privacy.mechanism"),
        (("privacy.noise_draw=sum",), "privacy.noise_draw"),
        (("training={batches='poisson', steps=4}",), "training.rate: missing"),
        (
            ("training={batches='poisson', steps=4, rate=0.1, batch_size=3}",),
            "given together with batch_size",
        ),
        (("privacy.adjacency=add-remove", "training={batch_size=5}"), "more or less changes every batch"),
        (("privacy.trust=central",), "training.steps = 4: a server can add its noise to one step"),
        (
            ("privacy.trust=central", "training.steps=1", "training.momentum=0.5"),
            "where the server makes the step",
        ),
        (("privacy.unit=client", "training.averaging=true"), "training.averaging"),
        (("privacy.delta=0.02",), "1/(number of records) = 1/60"),
    ],
)
def test_what_does_not_fit_is_said(make_scenario, changes: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_scenario(*INSIDE, *changes)
    assert message in str(caught.value)


def test_clipping_alone_is_no_guarantee(make_scenario) -> None:
    plan = plan_of(make_scenario("privacy={trust='none', unit='example', clipping_norm=1.0}"))
    stated = guarantees(Ledger(plan).to_json())
    assert [one.epsilon for one in stated] == [None] * 3
    assert "heuristic" in stated[0].words


def test_delta_is_small_for_the_records_that_clients_have(make_scenario, tmp_path: Path) -> None:
    """By user the public part is one of users: what is left may be fewer records than its share says."""
    rng = np.random.default_rng(0)
    users = np.repeat([0, 1, 2, 3], [40, 5, 5, 5])
    x, y = rng.normal(size=(55, 4)).astype(np.float32), rng.integers(0, 2, 55)
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, user_train=users, x_test=x, y_test=y)
    data = f"data={{name='npz', path='{tmp_path / 'd.npz'}', partition='by-user', public_fraction=0.25"
    asked = make_scenario(*INSIDE, f"{data}, seed=0}}", "privacy.delta=0.02")
    records = int(np.diff(population(asked.data).partition.offsets).sum())
    assert records in (15, 50)
    few = make_scenario(*INSIDE, f"{data}, seed=0}}", f"privacy.delta={0.999 / 50}")
    many = few if records == 50 else few.model_copy(
        update={"privacy": few.privacy.model_copy(update={"delta": 1 / 14})}
    )  # fmt: skip
    assert plan_of(few).delta == 0.999 / 50
    with pytest.raises(InputError, match=rf"1/{records} "):
        plan_of(many.model_copy(update={"privacy": many.privacy.model_copy(update={"delta": 1 / records})}))


def test_a_plan_for_larger_clients_is_refused_and_its_batches_are_those_that_are_drawn(make_scenario) -> None:
    asked = make_scenario(*INSIDE, "training={batches='poisson', steps=2, batch_size=2}")
    plan = plan_of(asked)
    assert plan.least_records == 5
    with pytest.raises(InputError, match="clients of 6 records or more, and one has 5"):
        Fleet.of(asked, plan=replace(plan, least_records=6))
    other = replace(plan, batches=PoissonBatches(2, rate=0.1))
    assert Fleet.of(asked, plan=other).training.batches == other.batches


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(
    "change",
    [
        {"unit": "client"},
        {"delta": 1e-12},
        {"adjacency": "add-remove"},
        {"guarantees.unit": "client"},
        {"guarantees.delta": 1e-12},
        {"guarantees.assumptions": []},
        {"per_client.groups": [{"epsilon": 0.01, "clients": 12, "answers": 3, "records": None}]},
    ],
    ids=str,
)
def test_a_record_that_says_more_than_its_ledger_is_refused(make_scenario, tmp_path: Path, change) -> None:
    document = run(make_scenario(*INSIDE), tmp_path, report=False)
    path = Path(document["path"])
    checked_document(path)
    [(key, value)] = change.items()
    part, _, field = key.rpartition(".")
    held = {"": document["privacy"], "guarantees": document["privacy"]["guarantees"][0]}.get(
        part, document["privacy"]["per_client"]
    )
    held[field] = value
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"run\.json: privacy\.{part}"):
        checked_document(path)


def test_under_central_trust_clients_of_other_sizes_have_other_epsilons(
    make_scenario, tmp_path: Path
) -> None:
    sized = "training={batches='poisson', steps=1, batch_size=2, learning_rate=0.5}"
    data = ("data.partition=dirichlet", "data.alpha=1.0", "data.records=200")
    document = run(make_scenario(*CENTRAL, sized, *data), tmp_path)
    told = document["privacy"]["per_client"]
    assert told["largest"] == pytest.approx(epsilons(document)["outsider"], rel=1e-6)
    assert told["median"] < told["largest"]
    assert checked_document(Path(document["path"])) == document


def test_more_batches_than_memory_holds_are_refused(make_scenario) -> None:
    with pytest.raises(InputError, match="the batches of a client's round take 2 GB"):
        make_scenario(*INSIDE, "data.records=6000", "privacy.delta=1e-5", "training.steps=1000000")


@pytest.mark.parametrize("trainer", ["fedprivacy", "opacus"])
@pytest.mark.parametrize("plan", ["poisson", "all"])
def test_a_record_that_raises_moves_what_a_client_answers_by_no_more_than_any_other(
    make_scenario, trial, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trainer: str, plan: str
) -> None:
    """A code that an embedding does not have, through the real apps, with next to no noise.

    The sum of clipped gradients loses the record's own, here of length C; the noise is made for 2 C.
    """
    if trainer == "opacus":
        pytest.importorskip("opacus")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"embedding_{trainer}.py").write_text(EMBEDDING)
    batches = {"poisson": "'poisson', steps=1, rate=0.9999", "all": "'shuffled', batch_size='all'"}[plan]
    asked = make_scenario(
        "data.clients=1",
        "data.records=40",
        "data.features=2",
        f"model={{name='code', factory='embedding_{trainer}:make'}}",
        f"training={{batches={batches}, learning_rate=1.0, trainer='{trainer}'}}",
        "privacy={trust='local', unit='example', noise_multiplier=1e-4, delta=1e-3, clipping_norm=1.0}",
    )
    codes = np.arange(40)[:, None] % np.array([10, 7])
    x, y = codes.astype(np.float32), (codes[:, 0] > 4).astype(np.int64)
    people = Population(
        Dataset(x, y, x[:1], y[:1], 2), Partition(np.arange(40), np.array([0, 40]), np.arange(0))
    )
    sent = []
    for bad in (False, True):
        x[3, 0] = 10 if bad else 3
        fleet = Fleet.of(asked, people, allow_code=True)
        played = trial(asked, people, fleet=fleet)
        before = played.federation.weights.copy()
        sent.append((played.play(1) - before) * 40)
        faults = faults_of(played.grid.states.values(), round=0)
        assert (faults.zeroed, faults.failed) == (bad, 0)
    clean, moved = np.linalg.norm(sent[0]), np.linalg.norm(sent[0] - sent[1])
    assert clean > 5
    assert moved == pytest.approx(1.0, abs=0.01)
