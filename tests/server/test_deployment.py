"""A run over nodes of owners: what its record says of what it cannot see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Context, RecordDict
from torch import nn

from clients.app import app as client_app
from clients.node import _of_run
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.messages.protocol import TrainReply, TrainRequest, parts_of
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import _population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import write
from fedprivacy.scenario import Scenario
from fedprivacy.training.features import encode_all
from fedprivacy.verification.verify import checked_document
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.runner import resume
from server.aggregation import nobody_took_part
from server.app import app as server_app
from server.messages import request_to


def played(out: Path, text: str, configs: list[dict[str, Any]], **run_config: Any) -> dict[str, Any]:
    """The record of a Flower run over these nodes; node state does not outlive it."""
    before = set(out.glob("*"))
    config = {"scenario": text, "out": str(out), **run_config}
    grid = EmbeddedGrid(client_app, configs, config)
    context = Context(
        run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config=config
    )
    server_app(grid, context)
    [path] = set(out.glob("*")) - before
    return json.loads((path / "run.json").read_text())


def refused(out: Path, text: str, configs: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a run in which everybody's budget is spent."""
    before = set(out.glob("*"))
    with pytest.raises(
        RunError,
        match="no client's data are in the model: of 9 requests to clients in all 3 rounds, 9 were ",
    ) as error:
        played(out, text, configs, noise="system", pinned=True)
    [path] = set(out.glob("*")) - before
    document = json.loads((path / "run.json").read_text())
    assert (document["status"], document["error"]) == ("failed", f"RunError: {error.value}")
    assert [event["refusals"] for event in document["rounds"]] == [3, 3, 3]
    return document


def final(document: dict[str, Any]) -> np.ndarray:
    checkpoint = RunDirectory.open(Path(document["path"])).load_checkpoint()
    assert checkpoint is not None
    return checkpoint.tensors["weights"]


def assumed(document: dict[str, Any], observer: str = "server") -> str:
    """What a guarantee against an observer rests on."""
    [found] = [one for one in document["privacy"]["guarantees"] if one["observer"] == observer]
    return "; ".join(found["assumptions"])


@pytest.fixture
def scattered(make_scenario, tmp_path: Path) -> str:
    """A scenario on scattering coefficients of 28 x 28 pixels, whose bits depend on the number of threads."""
    x = np.random.default_rng(5).random((24, 28, 28), np.float32)
    y = np.arange(24) % 2
    np.savez(tmp_path / "images.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    data = f"data={{name='npz', path='{tmp_path / 'images.npz'}', partition='iid', clients=12}}"
    return make_scenario(data, "model.features='scatternet'", "server.rounds=1").to_toml()


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_a_server_makes_features_with_one_thread(
    scattered: str, threads: Callable[[int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def counted(encoder: nn.Module, *records: Any) -> torch.Tensor:
        counts.append(torch.get_num_threads())
        return encode_all(encoder, *records)

    monkeypatch.setattr("server.app.encode_all", counted)
    threads(4)
    played(tmp_path, scattered, [{"partition-id": 0, "num-partitions": 1}])
    assert counts == [1]


def test_a_node_trains_to_the_same_bits_at_every_number_of_threads(
    scattered: str, threads: Callable[[int], None]
) -> None:
    scenario, replies = Scenario.from_text(scattered), []
    plan = plan_of(scenario)
    assert plan.frozen is not None
    weights = np.zeros(plan.frozen.trained, np.float32)
    request = TrainRequest(0, 0, 0, np.arange(12), weights, plan, "sum")
    for number in (1, 4):
        _of_run.cache_clear()
        _population.cache_clear()  # with the records of the other node, and their features
        threads(number)
        grid = EmbeddedGrid(client_app, [{"partition-id": 0, "num-partitions": 1}], {"scenario": scattered})
        [reply] = grid.send_and_receive([request_to(1, "train", "0/0", *request.parts())])
        assert not reply.has_error(), reply.error.reason
        replies.append(TrainReply.of(*parts_of(reply), parameters=len(weights), observe="sum").updates)
    assert replies[0].any()
    assert replies[0].tobytes() == replies[1].tobytes()


@pytest.fixture
def tested(tmp_path: Path) -> str:
    """A scenario setting that names held-out records of the server."""
    x = np.random.default_rng(9).standard_normal((50, 4))
    np.savez(tmp_path / "public.npz", x_test=x, y_test=(x[:, 0] > 0).astype(np.int64))
    return f"data.test={tmp_path / 'public.npz'}"


def test_a_run_over_pinned_nodes_is_played_once_and_its_record_claims_no_more_than_it_knows(
    owners, make_scenario, on_nodes_text, tested: str, tmp_path: Path
) -> None:
    text = make_scenario(tested, text=on_nodes_text).to_toml()
    configs = [owners.config(node) for node in range(3)]
    first = played(tmp_path / "runs", text, configs, noise="system", pinned=True)
    assert first["status"] == "finished"
    assert [event["refusals"] for event in first["rounds"]] == [0, 0, 0]
    assert first["final"]["accuracy"] is not None
    assert "stated by the submitter of the run; no message shows it" in assumed(first)
    assert "the code that came with the run to its node is this code" in assumed(first)
    assert "seeded" not in assumed(first)
    assert "no client's records make its training hang or kill its process" in assumed(first)
    assert first["randomness"] == {
        "server": "operating system's entropy",
        "clients": "operating system's entropy, stated by the submitter of the run",
    }
    # Another run of whatever kind gets no second answer to any round: its model stays where it began.
    again = refused(tmp_path / "runs", text, configs)
    assert len({event["loss"] for event in again["rounds"]}) == 1
    for document in (first, again):
        path = Path(document["path"])
        assert checked_document(path) == document
        page = write(document, path).read_text()
        assert "comes from their operating systems" in page
        assert "stated by the submitter of the run" in page
        with pytest.raises(InputError, match="made by `flwr run`"):
            resume(path)


def test_correlated_noise_of_the_operating_system_is_drawn_round_by_round(
    make_scenario, base_text, tmp_path
) -> None:
    bands = ("sampling={name='separated', cohort=3, separation=4}", "server.rounds=6", "privacy.bands=4")
    text = make_scenario(*bands, text=base_text).to_toml()
    runs = [played(tmp_path, text, [{}], noise="system") for _ in range(2)]
    assert [run["status"] for run in runs] == ["finished", "finished"]
    assert not np.allclose(final(runs[0]), final(runs[1]))
    assert runs[0]["ledger"]["claims"][1]["event"]["count"] == 2


def test_of_nodes_that_are_not_pinned_their_noise_is_assumed(make_scenario, base_text, tmp_path) -> None:
    text = make_scenario("privacy.trust=local", text=base_text).to_toml()
    system = [played(tmp_path, text, [{}], noise="system") for _ in range(2)]
    assert not np.allclose(final(system[0]), final(system[1]))
    assert "by the plan that came with the run" in assumed(system[0])
    assert "this is assumed, and no message shows it" in assumed(system[0])
    assert system[0]["randomness"]["clients"] == "operating system's entropy, assumed"
    seeded = [played(tmp_path, text, [{}], **config) for config in ({}, {"noise": "seeded"})]
    assert np.array_equal(final(seeded[0]), final(seeded[1]))
    assert TrainingAssumption.SIMULATED in assumed(seeded[0])
    assert seeded[0]["randomness"]["clients"] == "simulation-grade randomness, assumed"


def test_central_noise_and_cohorts_come_from_the_servers_operating_system(
    make_scenario, base_text, tmp_path
) -> None:
    asked = make_scenario("sampling={name='poisson', rate=0.5}", text=base_text).to_toml()
    system = [played(tmp_path, asked, [{}], noise="system") for _ in range(4)]
    cohorts = {tuple(event["cohort"] for event in one["rounds"]) for one in system}
    assert len(cohorts) > 1  # all four alike: once in some 1e5 times
    assert not np.allclose(final(system[0]), final(system[1]))
    told = assumed(system[0], "participant")
    assert "operating system's entropy at the server" in told
    assert "nodes" not in told  # no noise of theirs is in it
    assert "simulation-grade" in assumed(played(tmp_path, asked, [{}], pinned=True), "participant")


def test_a_wrong_source_of_noise_is_refused_before_anything_is_written(
    make_scenario, base_text, tmp_path
) -> None:
    with pytest.raises(InputError, match="run config: noise = 'dice': must be"):
        played(tmp_path / "runs", make_scenario(text=base_text).to_toml(), [{}], noise="dice")
    assert not (tmp_path / "runs").exists()


def test_of_records_under_central_trust_what_the_nodes_draw_is_said_too() -> None:
    """There the batches amplify, and clients draw them."""
    both = Stated(noise="system").randomness(server=True, nodes=True)
    assert "at the server" in both
    assert "this is assumed" in both
    assert Stated(pinned=True).randomness(server=True, nodes=True) == TrainingAssumption.SIMULATED


def test_of_pinned_nodes_in_a_seeded_run_nothing_better_is_claimed() -> None:
    """`federation up --scenario X --seeded-noise`: each holds its plan, and draws from the seed in it."""
    stated = Stated(pinned=True, noise="seeded")
    assert stated.randomness(server=False, nodes=True) == TrainingAssumption.SIMULATED
    assert stated.to_json(held=False) == {
        "server": "simulation-grade randomness",
        "clients": "simulation-grade randomness, assumed",
    }


def test_without_held_out_records_nothing_is_known_of_the_model(
    owners, make_scenario, on_nodes_text, tmp_path: Path
) -> None:
    text = make_scenario(text=on_nodes_text).to_toml()
    document = played(tmp_path / "runs", text, [owners.config(node) for node in range(3)])
    assert document["status"] == "finished"
    assert document["final"] == {"accuracy": None, "loss": None, "per_class": None}
    assert any("names no held-out records" in note for note in document["notes"])
    page = write(document, Path(document["path"])).read_text()
    assert "no round of this run was evaluated" in page


def test_a_node_that_has_nothing_to_give_costs_its_own_clients_alone(
    owners, make_scenario, on_nodes_text, tmp_path: Path
) -> None:
    configs = [owners.config(node) for node in range(3)]
    owners.give(1, y_train=np.full(20, 7))
    document = played(tmp_path / "runs", make_scenario(text=on_nodes_text).to_toml(), configs)
    assert document["status"] == "finished"
    assert {kind for event in document["rounds"] for kind in event["faults"]} == {"no_node"}
    [said] = document["dealing"]["errors"].values()
    assert "data: its data do not fit the scenario" in said
    assert "label" not in said
    assert "own.npz" not in said
    assert owners.account(0).exists()
    assert not owners.account(1).exists()


@pytest.mark.parametrize("trust", ["local", "central"])
def test_records_as_unit_are_reckoned_by_what_was_agreed(
    owners, make_scenario, on_nodes_text, tmp_path: Path, trust: str
) -> None:
    steps = 2 if trust == "local" else 1
    text = make_scenario(
        *(f"privacy.trust={trust}", "privacy.unit=example", "privacy.delta=1e-4"),
        "data.records_per_client=20",
        f"training={{batches='poisson', rate=0.3, steps={steps}, learning_rate=0.5}}",
        text=on_nodes_text,
    ).to_toml()
    configs = [owners.config(node, scenario=text) for node in range(3)]
    document = played(tmp_path / "runs", text, configs, noise="system", pinned=True)
    assert document["status"] == "finished"
    assert document["privacy"]["records_per_client"] == {"smallest": 20, "median": 20, "largest": 20}
    observer = "server" if trust == "local" else "participant"
    [found] = [one for one in document["privacy"]["guarantees"] if one["observer"] == observer]
    assert found["epsilon"] is not None
    assert "batches) comes from their operating systems' entropy" in "; ".join(found["assumptions"])
    refused(tmp_path / "runs", text, configs)


def test_a_run_in_which_one_node_answers_is_a_run(
    owners, make_scenario, on_nodes_text, tested: str, tmp_path: Path
) -> None:
    """Two of three have a budget spent; the third one's data are in the model."""
    text = make_scenario(tested, text=on_nodes_text).to_toml()
    configs = [owners.config(node) for node in range(3)]
    played(tmp_path / "runs", text, configs, noise="system", pinned=True)
    owners.account(0).unlink()
    again = played(tmp_path / "runs", text, configs, noise="system", pinned=True)
    assert again["status"] == "finished"
    assert [event["refusals"] for event in again["rounds"]] == [2, 2, 2]


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([(4, 4, 0, 0)], "of 4 requests .* in its round, 4 were refused\\. "),
        (
            [(4, 3, 1, 0), (0, 0, 0, 0), (2, 1, 0, 1)],
            "of 6 requests .* in all 3 rounds, 4 were refused and 2 failed or",
        ),
        ([(4, 4, 0, 0), (4, 3, 0, 0)], None),
        ([(0, 0, 0, 0)], None),
        ([(3, 0, 0, 3)], None),
    ],
)
def test_who_refuses_everything_is_no_success(rounds: list[tuple[int, ...]], said: str | None) -> None:
    events = [
        {"cohort": cohort, "refusals": refusals, "failures": failures, "faults": {"dropped": dropped}}
        for cohort, refusals, failures, dropped in rounds
    ]
    found = nobody_took_part(events)
    assert found is None if said is None else re.search(said, str(found))


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("kind", ["training", "statistics"])
def test_against_a_server_that_reads_the_records_nothing_is_claimed(
    make_scenario, make_statistics, make_table, statistics_text, tmp_path: Path, kind: str
) -> None:
    """Its process reads the file of all records: for sizes and accuracy, or for the truth beside an answer."""
    table = make_table(a=np.random.default_rng(1).random(60).tolist())
    data = f'data={{name="npz",path="{table}"}}'
    if kind == "training":
        asked = make_scenario(data, "privacy.trust=local", "privacy.delta=1e-3")
    else:
        asked = make_statistics(
            data,
            'queries.seen={kind="mean-of-bits",column="a",above=0.5}',
            "privacy.trust=local",
            text=statistics_text,
        )
    for config in ({"noise": "system"}, {"pinned": True}, {}):
        document = played(tmp_path / "runs", asked.to_toml(), [{}], **config)
        epsilons = {one["observer"]: one["epsilon"] for one in document["privacy"]["guarantees"]}
        assert epsilons["participant"] is not None
        assert (epsilons["server"] is None) == bool(config)
        if config:
            assert assumed(document).startswith("the server's process has read the records itself")
            assert "the processes of the run that read it" in assumed(document, "participant")
        assert checked_document(Path(document["path"])) == document
        write(document, Path(document["path"]))


def test_statistics_over_pinned_nodes_say_the_same(make_statistics, statistics_text, tmp_path: Path) -> None:
    text = make_statistics("privacy.trust=local", "federation.hosts=2", text=statistics_text).to_toml()
    configs = []
    for node in range(2):
        (tmp_path / f"home-{node}").mkdir()
        config = {"partition-id": node, "num-partitions": 2, "scenario": text}
        configs.append(config | {"home": str(tmp_path / f"home-{node}")})
    document = played(tmp_path / "runs", text, configs, noise="system", pinned=True)
    assert document["status"] == "finished"
    assert "randomises its own answers, answers each query once and counts" in assumed(document)
    assert "as the submitter of the run states" in assumed(document)
    assert "seeded" not in assumed(document)
    assert checked_document(Path(document["path"])) == document
    with pytest.raises(Exception, match="nobody answered"):
        played(tmp_path / "runs", text, configs, noise="system", pinned=True)
