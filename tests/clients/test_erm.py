"""What a silo tells and refuses, whatever the server asks for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from clients.app import app, make_app
from clients.erm import Silos
from clients.statistics import StatisticsClients
from fedprivacy.erm.protocol import SiloReply, SiloRequest
from fedprivacy.erm.study.people import records
from fedprivacy.errors import InputError, Refusal
from fedprivacy.messages.protocol import parts_of
from fedprivacy.scenario.erm import ErmScenario
from scenarios.engines.embedded import EmbeddedGrid
from server.messages import request_to

TEXT = """
name = "silos"
seed = 3
[data]
name = "logistic-model"
records = 200
features = 2
[objective]
loss = "logistic"
regularisation = 0.05
radius = 2.0
[approaches.curator]
kind = "output-perturbation"
[approaches.average]
kind = "objective-perturbation"
silos = 5
[approaches.local]
kind = "gradient-perturbation"
steps = 4
silos = 5
trust = "local"
[approaches.central]
kind = "gradient-perturbation"
steps = 4
silos = 5
[approaches.batches]
kind = "gradient-perturbation"
steps = 3
rate = 0.5
silos = 5
trust = "local"
[study]
repeats = 3
"""
ALL = np.arange(5)
ZERO = np.zeros((3, 2))


def made(*overrides: str) -> ErmScenario:
    """A small study with overrides as `--set` takes them."""
    return ErmScenario.from_text(TEXT, overrides=overrides)


@pytest.fixture
def silos() -> Silos:
    return Silos.of(made())


def request(who: Silos, lot: int = 1, step: int = 0, silos: Any = ALL, **changes: Any) -> SiloRequest:
    plan = who.study.plan(who.study.lots[min(lot, 3)])
    asked = {"lot": lot, "step": step, "host": 0, "silos": np.asarray(silos), "thetas": ZERO, "plan": plan}
    return SiloRequest(**asked | changes)


# ------------------------------------------------------------------ once each


def test_a_silo_tells_a_step_once_and_later_steps_only(silos: Silos) -> None:
    """Told twice at two points, a sum would lose its noise in the difference."""
    last = silos.fresh()
    told = silos.answer(request(silos, step=1), last, [0])
    assert (told.silos.tolist(), told.rows.shape) == ([0, 1, 2, 3, 4], (5, 3, 2))
    for step in (1, 0):
        again = silos.answer(request(silos, step=step, thetas=np.ones((3, 2))), last, [0])
        assert (again.silos.size, again.rows.shape) == (0, (0, 3, 2))
    assert silos.answer(request(silos, step=2), last, [0]).silos.size == 5
    assert silos.answer(request(silos, lot=0), last, [0]).silos.size == 0  # an earlier lot


def test_those_who_have_answered_refuse_and_the_others_do_not(silos: Silos) -> None:
    last = silos.fresh()
    first = silos.answer(request(silos, silos=[1, 3]), last, [0])
    rest = silos.answer(request(silos), last, [0])
    assert (first.silos.tolist(), rest.silos.tolist()) == ([1, 3], [0, 2, 4])
    whole = silos.answer(request(silos), silos.fresh(), [0]).rows
    assert first.rows.tolist() == whole[[1, 3]].tolist()  # the draw of a silo is its own
    assert rest.rows.tolist() == whole[[0, 2, 4]].tolist()


def test_no_two_numbers_share_their_noise(silos: Silos) -> None:
    """Over silos, repeats and steps, at one point: what is told less the exact sum differs each time."""
    last, told = silos.fresh(), []
    lot = silos.study.lots[1]
    x, y = silos.study.people.first(200)
    objective = silos.study.federated(lot).gradient.objective  # type: ignore[attr-defined]
    parts = zip(np.array_split(x, 5), np.array_split(y, 5), strict=True)
    exact = np.array([objective.gradient_sum(np.zeros(2), *part) for part in parts])
    for step in range(4):
        told.append(silos.answer(request(silos, step=step), last, [0]).rows - exact[:, None])
    assert len(np.unique(np.round(told, 9))) == 4 * 5 * 3 * 2


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "change",
    ["study.epsilons=[30.0]", "privacy.delta=1e-4", "approaches.local.trust=central", "study.repeats=4",
     "objective.regularisation=0.2", "approaches.local.silos=4", "approaches.local.steps=3"],
)  # fmt: skip
def test_another_plan_is_refused(silos: Silos, change: str) -> None:
    other = Silos.of(made(change))
    last = silos.fresh()
    with pytest.raises(Refusal, match="another plan"):
        silos.answer(request(silos, plan=other.study.plan(other.study.lots[1])), last, [0])
    assert (last == -1).all()


@pytest.mark.parametrize("plan", [None, "", [], 3])
def test_no_plan_is_refused(silos: Silos, plan: Any) -> None:
    with pytest.raises(Refusal, match="has no plan"):
        silos.answer(request(silos, plan=plan), silos.fresh(), [0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lot": 4}, "request for lot 4, there are 4"),
        ({"step": 4}, "request for step 4, there are 4"),
        ({"silos": [4, 5]}, "silos 0 to 4"),
        ({"silos": [-1, 0]}, "silos 0 to 4"),
        ({"silos": [1, 1]}, "named once"),
        ({"silos": [2, 1]}, "sorted"),
        ({"host": 1}, "silos of host 1"),
        ({"thetas": np.zeros((2, 2))}, "points of shape"),
        ({"thetas": np.full((3, 2), np.inf)}, "finite"),
        (
            {"thetas": np.full((3, 2), 2.0)},
            "norm 2.828: gradients are released only within the radius of 2",
        ),
        ({"thetas": np.array([[0, 0], [0, 0], [2.0 * (1 + 2e-9), 0]])}, "within the radius"),
    ],
)
def test_a_request_for_what_is_not_here_is_refused(silos: Silos, changes: dict, words: str) -> None:
    last = silos.fresh()
    of_silos = "silos" in changes or "host" in changes  # which a node refuses as one that holds its plan does
    with pytest.raises(Refusal if of_silos else InputError, match=words):
        silos.answer(request(silos, **changes), last, [0])
    assert (last == -1).all()


def test_a_point_so_far_out_that_sums_overflow_tells_nothing_of_a_record(silos: Silos) -> None:
    """At 1.79e308 x.theta is NaN for x = (1, ..., 1)/sqrt(16) and 0 for x = 0: noise hides neither."""
    wide = made("data.features=16")
    people = records(wide)
    far = np.where(np.arange(16) % 2, -1.79e308, 1.79e308)
    said = []
    for first in (np.zeros(16), np.full(16, (1 - 1e-12) / 4)):
        x = people.x.copy()
        x[0] = first
        who = Silos.of(wide, replace(people, x=x))
        last = who.fresh()
        for theta in (far, -far, np.full(16, 1.79e308)):
            with pytest.raises(InputError, match="within the radius of 2") as refused:
                who.answer(request(who, thetas=np.tile(theta, (3, 1))), last, [0])
            said.append(str(refused.value))
            lot = who.study.lots[1]
            with pytest.raises(InputError, match="within the radius of 2"):  # without the node's own check
                who.study.tell(lot, [0], 0, np.tile(theta, (3, 1)))
        assert (last == -1).all()
    assert len(set(said)) == 1  # of all records alike


def test_points_on_the_edge_of_the_radius_are_answered(silos: Silos) -> None:
    """As projections leave them, rounded."""
    edge = np.array([[2.0 * math.cos(a), 2.0 * math.sin(a) * (1 + 1e-15)] for a in (0.1, 1.0, 4.0)])
    told = silos.answer(request(silos, thetas=edge), silos.fresh(), [0])
    assert told.silos.size == 5
    assert np.isfinite(told.rows).all()


def test_a_silo_answers_where_it_lives() -> None:
    silos = Silos.of(made("federation.hosts=2"))
    node = silos.hosts_of({"partition-id": 1, "num-partitions": 2})
    assert silos.answer(request(silos, silos=[1, 3], host=1), silos.fresh(), node).silos.tolist() == [1, 3]
    with pytest.raises(Refusal, match="silos of host 1"):
        silos.answer(request(silos, silos=[2], host=1), silos.fresh(), node)
    with pytest.raises(Refusal, match="silos of host 0"):
        silos.answer(request(silos, silos=[0], host=0), silos.fresh(), node)


# ------------------------------------------------------------------ through the ClientApp


def told(message: Message) -> SiloReply:
    return SiloReply.of(*parts_of(message), requested=ALL, shape=(3, 2))


def asked_by_app(grid: EmbeddedGrid, one: SiloRequest) -> Message:
    [reply] = grid.send_and_receive([request_to(1, "query.estimate", "0/0", *one.parts())])
    return reply


def test_the_app_keeps_count_over_messages_and_not_of_what_failed(silos: Silos) -> None:
    grid = EmbeddedGrid(make_app(silos), [{}])
    assert "another plan" in asked_by_app(grid, request(silos, plan={})).error.reason
    first = told(asked_by_app(grid, request(silos)))
    assert first.silos.size == 5  # what was refused was not spent
    assert first.rows.tolist() == silos.answer(request(silos), silos.fresh(), [0]).rows.tolist()
    assert told(asked_by_app(grid, request(silos, thetas=np.ones((3, 2))))).silos.size == 0
    assert "not a request to silos" in asked_by_app(grid, request(silos, silos=np.zeros(2))).error.reason


def test_silos_and_other_clients_answer_what_they_agreed_to_alone(silos: Silos, make_statistics) -> None:
    for clients, kind in ((silos, "query.statistic"), (silos, "train")):
        [reply] = EmbeddedGrid(make_app(clients), [{}]).send_and_receive(
            [request_to(1, kind, "0/0", *request(silos).parts())]
        )
        assert "agreed to other requests" in reply.error.reason
    others = EmbeddedGrid(make_app(StatisticsClients.of(make_statistics())), [{}])
    assert "agreed to other requests" in asked_by_app(others, request(silos)).error.reason


def test_a_node_makes_its_silos_from_the_run_config(silos: Silos) -> None:
    """As under `flwr run`, where each message may meet a new process: what was answered is in Flower's state."""
    grid = EmbeddedGrid(app, [{}], {"scenario": TEXT})
    mine = silos.answer(request(silos), silos.fresh(), [0]).rows.tolist()
    assert told(asked_by_app(grid, request(silos))).rows.tolist() == mine
    assert told(asked_by_app(grid, request(silos))).silos.size == 0
