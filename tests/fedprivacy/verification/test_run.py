"""Honest runs are read again as they were written; what their rounds cannot be is refused."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.population.clients import population
from fedprivacy.records.run_record import broken_off, heard_of
from fedprivacy.report import render
from fedprivacy.verification.rebuild import check_survivors
from fedprivacy.verification.verify import checked_document
from scenarios.runner import resume, run

NONE = ("privacy={trust='none'}",)
CLIPPED = ("privacy={trust='none', clipping_norm=1.0}",)
LOCAL = ("privacy.trust=local",)
TWICE = (*LOCAL, "privacy.max_participations=2", "server.rounds=4")
RECORDS = ("privacy.unit=example", "training={batches='poisson', steps=2, batch_size=2, learning_rate=0.5}")
RAGGED = ("data.partition=dirichlet", "data.alpha=1.0", "data.records=200", "privacy.delta=1e-4")
POISSON = ("sampling={name='poisson', rate=0.5}",)
FIXED = ("sampling={name='fixed', cohort=4}",)
SHARED = ("privacy.trust=distributed",)
APART = ("sampling={name='separated', cohort=3, separation=3}", "server.rounds=5")
PATIENT = ("server.patience=1", "data.public_fraction=0.3", "server.rounds=6", "server.learning_rate=30.0")
GROUPED = (*LOCAL, *POISSON, "privacy.groups.careful={share=0.25, noise_multiplier=5.0}")
HONEST = {
    "no privacy": NONE,
    "clipping alone": CLIPPED,
    "no privacy, records": (*NONE, "privacy.unit=example"),
    "central": (),
    "central, epsilon": ("privacy.epsilon=2.0",),
    "central, add-remove": (*POISSON, "privacy.adjacency=add-remove"),
    "central, zero-out": (*FIXED, "privacy.adjacency=zero-out"),
    "central, Poisson": (*POISSON, "privacy.epsilon=2.0"),
    "central, almost nobody": ("sampling={name='poisson', rate=0.01}",),
    "central, fixed": (*FIXED, "privacy.epsilon=2.0"),
    "separated": (*APART, "privacy.epsilon=2.0"),
    "bands": (*APART, "privacy.bands=3", "server={rounds=5, optimizer='momentum'}"),
    "adaptive clipping": ("privacy.clipping_quantile=0.5", "privacy.epsilon=4.0"),
    "student-t": ("privacy.mechanism=student-t", "privacy.encoding=signs"),
    "signs": ("privacy.encoding=signs", "privacy.epsilon=4.0"),
    "levels": ("privacy.encoding=levels", *LOCAL),
    "top-k": ("privacy.encoding=top-k", *LOCAL),
    "local": LOCAL,
    "local, epsilon": (*LOCAL, "privacy.epsilon=4.0", "privacy.noise_draw=sum"),
    "local, Poisson": (*LOCAL, *POISSON),
    "local, fixed": (*LOCAL, *FIXED),
    "local, twice at most": TWICE,
    "local, twice at most, Poisson": (*TWICE, *POISSON),
    "local, separated": (*LOCAL, *APART),
    "distributed": SHARED,
    "distributed, epsilon": (*SHARED, "privacy.epsilon=4.0", "privacy.colluders=2", "privacy.bits=20"),
    "distributed, discrete Gaussian": (*SHARED, "privacy.mechanism=discrete-gaussian", "privacy.adjacency=zero-out", "privacy.noise_draw=sum"),
    "distributed, fixed": (*SHARED, *FIXED, "privacy.epsilon=4.0", "privacy.max_participations=2"),
    "distributed, separated": (*SHARED, *APART, "privacy.epsilon=4.0"),
    "distributed, void rounds": (*SHARED, "federation.dropout=0.3", "privacy.min_survivors=9"),
    "privunit": ("privacy={trust='local', mechanism='privunit', epsilon=8.0, clipping_norm=1.0, delta=1e-3}",),
    "auto": ("privacy={trust='local', mechanism='auto', epsilon=8.0, clipping_norm=1.0, delta=1e-3}",),
    "records, local": (*LOCAL, *RECORDS),
    "records, local, Poisson": (*LOCAL, *RECORDS, *POISSON, *RAGGED),
    "records, central": ("privacy.unit=example", "training={batches='poisson', steps=1, rate=0.5, learning_rate=0.5}"),
    "records, central, ragged": (*RECORDS, "training.steps=1", *RAGGED),
    "records, shuffled": (*LOCAL, "privacy.unit=example", "training.epochs=2", "training.batch_size=2"),
    "records, with replacement": (
        *(*LOCAL, "privacy.unit=example"),
        "training={batches='with-replacement', steps=2, batch_size=2, learning_rate=0.5}",
    ),
    "early stopping": PATIENT,
    "early stopping, local": (*PATIENT, *LOCAL),
    "dropout": ("federation.dropout=0.4",),
    "dropout, local": ("federation.dropout=0.4", *LOCAL),
    "evaluated on public records, at times": ("data.public_fraction=0.3", "evaluation={on='public', every=2}"),
    "groups, central": (*POISSON, "privacy.groups.light={share=0.25, weight=0.5}", "privacy.groups.rare={clients=[1, 2], rate=0.2}"),
    "groups, central, epsilon": (*POISSON, "privacy.epsilon=4.0", "privacy.groups.light={share=0.25, epsilon=2.0}", "privacy.groups.rare={clients=[1, 2], epsilon=2.0, through='rate'}"),
    "groups, local": GROUPED,
    "groups, local, epsilon": (*LOCAL, *POISSON, "privacy.epsilon=4.0", "privacy.noise_draw=sum", "privacy.groups.careful={share=0.25, epsilon=2.0}"),
    "two hosts": ("federation.hosts=2", *LOCAL),
}  # fmt: skip


def read_again(document: dict[str, Any], *, shown: bool = True) -> None:
    """The record is accepted, and its page states the guarantees that are in it."""
    checked = checked_document(Path(document["path"]))
    assert checked == document
    if not shown:
        return
    page = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", render(checked))))
    groups = document["privacy"].get("groups", ())
    for part in (document["privacy"], *groups):
        for guarantee in part["guarantees"]:
            assert guarantee["words"] in page
    assert ("Budgets that differ" in page) == bool(groups)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("settings", HONEST.values(), ids=HONEST)
def test_an_honest_run_is_read_again(settings: tuple[str, ...], make_scenario, tmp_path: Path) -> None:
    chosen = "auto" in str(settings)  # what else could be chosen is found for the report alone
    read_again(run(make_scenario(*settings), tmp_path, report=chosen))


@pytest.mark.parametrize("trust", ["none", "central", "local"])
def test_held_out_records_of_clients_may_belong_to_them(trust: str, make_scenario, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y, users = rng.normal(size=(24, 4)), rng.integers(0, 2, 24), np.repeat(range(6), 4)
    np.savez(
        tmp_path / "d.npz",
        x_train=x,
        y_train=y,
        user_train=users,
        x_test=x[::4],
        y_test=y[::4],
        user_test=users[::4],
    )
    data = f"data={{name='npz', path='{tmp_path / 'd.npz'}', partition='by-user'}}"
    settings = NONE if trust == "none" else (f"privacy.trust={trust}",)
    document = run(make_scenario(data, *settings), tmp_path / "runs", report=False)
    (tmp_path / "d.npz").unlink()  # no file that a record names is opened
    read_again(document)


@pytest.mark.parametrize("settings", [(), LOCAL, SHARED], ids=["central", "local", "distributed"])
def test_faults_of_clients_are_no_forgery(
    settings: tuple[str, ...], make_scenario, tmp_path: Path, monkeypatch
) -> None:
    asked = make_scenario(*settings, "data.partition=one-per-example", "data.records=12")
    people = population(asked.data)
    x, y = people.dataset.x.copy(), people.dataset.y.copy()
    x[3], y[5] = np.nan, 99
    broken = replace(people, dataset=replace(people.dataset, x=x, y=y))
    monkeypatch.setattr("scenarios.runner.population", lambda options: broken)
    document = run(asked, tmp_path, report=False)
    assert document["rounds"][0]["faults"] == {"raised": 1, "not_finite": 1}
    read_again(document)


def test_an_opened_sum_of_too_few_survivors_is_refused(make_scenario, tmp_path: Path) -> None:
    void = HONEST["distributed, void rounds"]
    document = run(make_scenario(*void), tmp_path, report=False)
    assert any(event.get("void") for event in document["rounds"])
    check_survivors(document["rounds"], 9, "run.json", "Run it again.")
    opened = [{key: value for key, value in event.items() if key != "void"} for event in document["rounds"]]
    with pytest.raises(
        InputError, match=r"run\.json: rounds\[\d\]: has . survivors at most; a sum of fewer than 9"
    ):
        check_survivors(opened, 9, "run.json", "Run it again.")


class Fault(Exception):
    """Ends a run."""


def stopping(fault: type[BaseException], number: int) -> Callable[[dict[str, Any]], None]:
    def stop(event: dict[str, Any]) -> None:
        if event["round"] == number:
            raise fault

    return stop


BROKEN = {
    "central": (),
    "local": (*LOCAL, *POISSON),
    "records": (*LOCAL, *RECORDS),
    "early stopping": ("server.patience=3", "data.public_fraction=0.3"),
    "no privacy": NONE,
    "groups": GROUPED,
}


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(
    ("settings", "fault"),
    [*((settings, KeyboardInterrupt) for settings in BROKEN.values()), ((), Fault), (BROKEN["local"], Fault)],
    ids=[*BROKEN, "central, failed", "local, failed"],
)
def test_a_run_that_breaks_off_is_read_again_however_far_it_came(
    settings: tuple[str, ...], fault: type[BaseException], make_scenario, tmp_path: Path, monkeypatch
) -> None:
    """Before round 0, in the middle, once more after it was gone on with, and with its last round."""
    asked = make_scenario(*settings, "server.rounds=4")

    def stored() -> dict[str, Any]:
        [path] = tmp_path.iterdir()
        return json.loads((path / "run.json").read_text())

    def broken(*_: object, **__: object) -> None:
        raise fault

    with monkeypatch.context() as early:
        early.setattr("server.app.deal_hosts", broken)
        with pytest.raises(fault):
            run(asked, tmp_path, report=False)
    read_again(stored(), shown=False)
    assert stored()["rounds"] == []
    [path] = tmp_path.iterdir()
    for number in (1, 2, 3):
        with pytest.raises(fault):
            resume(path, on_round=stopping(fault, number), report=False)
        assert len(stored()["rounds"]) == number + 1
        read_again(stored(), shown=number == 1)
    resume(path, report=False)
    assert stored()["status"] == "finished"
    read_again(stored(), shown=False)


MORE = {
    "fixed": (FIXED, 5),
    "all": ((), 13),
    "separated": (APART, 4),
    "local": ((*LOCAL, *POISSON), 13),
}


@pytest.mark.parametrize(("settings", "cohort"), MORE.values(), ids=MORE)
def test_a_round_of_more_clients_than_may_be_asked_is_refused(
    settings: tuple[str, ...], cohort: int, make_scenario, tmp_path: Path
) -> None:
    document = run(make_scenario(*settings), tmp_path, report=False)
    path = Path(document["path"])
    document["rounds"][1].update(cohort=cohort, contributed=cohort)
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"run\.json: rounds\[1\]\.cohort: says {cohort} clients"):
        checked_document(path)


@pytest.mark.parametrize("status", ["interrupted", "failed"])
@pytest.mark.parametrize("settings", [(), (*LOCAL, *POISSON), GROUPED], ids=["central", "local", "groups"])
def test_a_run_that_was_heard_of_from_afar_is_read_again_however_much_was_heard(
    settings: tuple[str, ...], status: str, make_scenario, tmp_path: Path
) -> None:
    asked, begun = make_scenario(*settings), []

    def listen(event: dict[str, Any]) -> None:
        [path] = tmp_path.iterdir()
        begun.append(json.loads((path / "run.json").read_text()))

    whole = run(asked, tmp_path, on_round=listen, report=False)
    for rounds in range(4):
        heard = broken_off(heard_of(begun[0], asked, whole["rounds"][:rounds]), status, "the line was cut")
        (Path(whole["path"]) / "run.json").write_text(json.dumps(heard))
        read_again(json.loads(json.dumps(heard)), shown=False)


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(lambda groups: groups[::-1], id="in another order"),
        pytest.param(
            lambda groups: [
                {**one, "clients": one["clients"] + more} for one, more in zip(groups, (1, -1), strict=True)
            ],
            id="a client in another group",
        ),
        pytest.param(lambda groups: groups[:1], id="a group left out"),
    ],
)
def test_groups_of_clients_that_the_counts_of_answers_do_not_have_are_refused(
    forged: Callable[[list[Any]], list[Any]], make_scenario, tmp_path: Path
) -> None:
    document = run(make_scenario(*LOCAL, *RECORDS, *POISSON), tmp_path, report=False)
    groups, path = document["ledger"]["clients"], Path(document["path"])
    assert len(groups) > 1
    document["ledger"]["clients"] = forged(groups[:2]) + groups[2:]
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"run\.json: ledger\.clients: "):
        checked_document(path)


FORGED = {
    "another epsilon": (("privacy", "groups", 0, "guarantees", 0, "epsilon"), 0.5),
    "another event": (("ledger", "groups", 0, "claims", 0, "event", "count"), 1),
    "an assumption left out": (("ledger", "groups", 0, "claims", 0, "assumptions"), ["none"]),
    "another size": (("privacy", "groups", 0, "clients"), 4),
    "more answers of nobody": (("ledger", "groups", 0, "participations"), {"1": 3}),
    "a group left out": (("ledger", "groups"), []),
    "another noise": (("plan", "groups", 0, "noise_multiplier"), 6.0),
    "another share": (("plan", "groups", 0, "share"), 0.5),
}


@pytest.mark.parametrize(("place", "value"), FORGED.values(), ids=FORGED)
def test_what_a_group_did_not_have_is_refused(
    place: tuple[str | int, ...], value: Any, make_scenario, tmp_path: Path
) -> None:
    document = run(make_scenario(*GROUPED), tmp_path, report=False)
    path, part = Path(document["path"]), document
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"run\.json: .*groups"):
        checked_document(path)
