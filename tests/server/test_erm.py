"""A study's silos over the real apps: the bits of one process, whoever carries them, and who is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Error, Message, RecordDict

from clients.app import app as client_app
from clients.app import make_app
from clients.erm import Silos
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.documents.estimates import EstimatesCell
from fedprivacy.documents.redaction import redact
from fedprivacy.erm.federated import together
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.erm.silos import SiloGradients
from fedprivacy.erm.study import lots
from fedprivacy.erm.study.document import ABSENT, study
from fedprivacy.erm.study.lots import Lot, SiloStudy
from fedprivacy.errors import InputError, RunError
from fedprivacy.messages.protocol import parts_of
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.verification.verify import checked_document
from scenarios.cli.display_estimates import absence
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.experiments.erm_study import fit
from server.app import app as server_app
from server.erm import MESSAGE, SilosOnGrid, serve
from tests.clients.test_erm import made

Wrap = Callable[[EmbeddedGrid], Any]


def nodes(count: int) -> list[dict[str, int]]:
    return [{"partition-id": at, "num-partitions": count} for at in range(count)]


def on_grid(scenario: ErmScenario, count: int = 1, wrap: Wrap = lambda grid: grid) -> SilosOnGrid:
    """A server that asks silos on so many nodes, over a grid that a test may break."""
    silos = Silos.of(scenario)
    return SilosOnGrid(wrap(EmbeddedGrid(make_app(silos), nodes(count))), Silos.of(scenario).study)


def estimates(asking: SilosOnGrid, lot: Lot) -> np.ndarray:
    side = asking.side
    return together(side.lead(lot), side.federated(lot).steps, lambda step, at: asking(lot, step, at).rows)


def in_one_process(side: SiloStudy, lot: Lot) -> list[np.ndarray]:
    """Each estimate of a lot by the library alone, from the records that a study gives each silo."""
    x, y = side.people.first(lot.cell.records)
    held = list(zip(np.array_split(x, lot.silos), np.array_split(y, lot.silos), strict=True))
    federated, found = side.federated(lot), []
    for repeat in range(lot.first, lot.first + lot.count):
        run = f"{side.streams.run}/{lot.cell.name}/{lot.cell.epsilon!r}/{lot.cell.records}/{repeat}"
        found.append(federated.fit(held, replace(side.streams, run=run)).theta)
    return found


class Grid:
    """A grid in front of another, to be broken by its subclasses."""

    def __init__(self, grid: EmbeddedGrid) -> None:
        self.grid = grid

    def get_node_ids(self) -> Iterable[int]:
        return self.grid.get_node_ids()

    def send_and_receive(self, messages: Iterable[Message], **options: Any) -> Iterator[Message]:
        for message in messages:
            if message.metadata.message_type != MESSAGE:
                yield from self.grid.send_and_receive([message], **options)
                continue
            yield from self.asked(message)

    def asked(self, message: Message) -> Iterator[Message]:
        yield from self.grid.send_and_receive([message])


class Backwards(Grid):
    def send_and_receive(self, messages: Iterable[Message], **options: Any) -> Iterator[Message]:
        yield from reversed(list(self.grid.send_and_receive(messages, **options)))


# ------------------------------------------------------------------ the same bits


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(("hosts", "count"), [(1, 1), (2, 1), (2, 2), (5, 5), (7, 3)])
def test_flowers_apps_find_what_one_process_finds_bit_for_bit(hosts: int, count: int) -> None:
    asking = on_grid(made(f"federation.hosts={hosts}"), count, Backwards)
    assert [lot.cell.name for lot in asking.side.lots] == ["average", "local", "central", "batches"]
    for lot in asking.side.lots:
        assert estimates(asking, lot).tolist() == [t.tolist() for t in in_one_process(asking.side, lot)]


def test_lots_that_are_cut_smaller_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = on_grid(made())
    found = {lot.cell: estimates(whole, lot).tolist() for lot in whole.side.lots}
    monkeypatch.setattr(lots, "NUMBERS", 20)  # two estimates of five silos and two features
    cut = on_grid(made())
    assert [(lot.first, lot.count) for lot in cut.side.lots[:2]] == [(0, 2), (2, 1)]
    again: dict[Any, list[Any]] = {}
    for lot in cut.side.lots:
        again.setdefault(lot.cell, []).extend(estimates(cut, lot).tolist())
    assert again == found


def numbers(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["cells"]  # type: ignore[no-any-return]


def test_a_study_by_flowers_apps_is_the_study_of_one_process(tmp_path: Path) -> None:
    scenario = made()
    by_apps = fit(scenario, tmp_path / "apps")
    directory = RunDirectory.create(tmp_path / "one", "one", scenario.to_toml())
    study(scenario, Silos.of(scenario).study.people, directory)
    assert numbers(by_apps) == numbers(directory.document())
    assert fit(made("federation.hosts=3"), tmp_path / "hosts")["cells"] == numbers(by_apps)
    assert {cell["absent"] for cell in numbers(by_apps) if cell["silos"] > 1} == {0}


# ------------------------------------------------------------------ what is promised, and what travels


def test_each_observer_is_promised_what_it_was(tmp_path: Path) -> None:
    cells = {cell["approach"]: cell for cell in numbers(fit(made(), tmp_path))}
    claims = {
        name: {one["observer"]: one["epsilon"] for one in cell["guarantees"]} for name, cell in cells.items()
    }
    assert set(claims["average"].values()) == {1.0}
    assert claims["local"]["outsider"] < claims["local"]["participant"] < claims["local"]["server"]
    assert claims["local"]["server"] == pytest.approx(1.0)
    assert claims["central"]["server"] is None
    assert claims["central"]["outsider"] == pytest.approx(1.0)
    [server] = [one for one in cells["central"]["guarantees"] if one["observer"] == "server"]
    assert "the server is trusted" in server["words"]
    events = {name: [c["event"] for c in cell["claims"]] for name, cell in cells.items()}
    assert events["central"][0] is None
    assert None not in events["local"]


class Watched(Grid):
    """Keeps what nodes tell."""

    def __init__(self, grid: EmbeddedGrid) -> None:
        super().__init__(grid)
        self.seen: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def asked(self, message: Message) -> Iterator[Message]:
        for reply in self.grid.send_and_receive([message]):
            self.seen.append(parts_of(reply))
            yield reply


def test_exact_sums_leave_a_silo_under_central_trust_alone() -> None:
    asking = on_grid(made())
    watched = asking.grid = Watched(asking.grid)  # type: ignore[assignment]
    side = asking.side
    for lot in side.lots:
        if lot.cell.name not in ("local", "central"):
            continue
        watched.seen.clear()
        estimates(asking, lot)
        arrays, values = watched.seen[0]
        assert (sorted(arrays), values) == (["rows", "silos"], {})
        x, y = side.people.first(lot.cell.records)
        descent = side.federated(lot).gradient  # type: ignore[attr-defined]
        parts = zip(np.array_split(x, lot.silos), np.array_split(y, lot.silos), strict=True)
        exact = np.array([descent.objective.gradient_sum(np.zeros(2), *part) for part in parts])
        noise = arrays["rows"] - exact[:, None]  # (silos, estimates, d)
        if lot.cell.name == "central":
            assert not noise.any()
        else:
            assert len(np.unique(noise)) == noise.size
            # 30 numbers: five standard errors of a standard deviation.
            assert noise.std() == pytest.approx(descent.mechanism.standard_deviation, rel=0.65)


# ------------------------------------------------------------------ who is missing


class SecondNodeFails(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        if message.metadata.dst_node_id == 2:
            yield Message(Error(code=0, reason="the node is on fire\n\nTraceback"), reply_to=message)
        else:
            yield from self.grid.send_and_receive([message])


class SecondNodeIsSilent(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        if message.metadata.dst_node_id != 2:
            yield from self.grid.send_and_receive([message])


class SecondNodeTells(Grid):
    """Other rows than it has, or for other silos."""

    rows: Callable[[np.ndarray], np.ndarray] = staticmethod(lambda rows: rows[:, :1])
    silos: Callable[[np.ndarray], np.ndarray] = staticmethod(lambda silos: silos)

    def asked(self, message: Message) -> Iterator[Message]:
        for reply in self.grid.send_and_receive([message]):
            if message.metadata.dst_node_id == 2:
                arrays, _ = parts_of(reply)
                told = {"rows": self.rows(arrays["rows"]), "silos": self.silos(arrays["silos"])}
                reply.content["arrays"] = ArrayRecord({name: Array(one) for name, one in told.items()})
            yield reply


class SecondNodeTellsNaN(SecondNodeTells):
    rows = staticmethod(lambda rows: np.full_like(rows, np.nan))


class SecondNodeNamesOthers(SecondNodeTells):
    rows = staticmethod(lambda rows: rows)
    silos = staticmethod(lambda silos: silos - 1)


BROKEN = [
    (SecondNodeFails, "on fire"),
    (SecondNodeIsSilent, "did not answer"),
    (SecondNodeTells, "expected finite"),
    (SecondNodeTellsNaN, "expected finite"),
    (SecondNodeNamesOthers, "names silos"),
]


@pytest.mark.parametrize(("broken", "words"), BROKEN)
def test_a_silo_that_does_not_answer_counts_as_zero(broken: Wrap, words: str) -> None:
    """Silos 1 and 3 are on the second node; weights and denominators stay."""
    scenario = made("federation.hosts=2")
    asking, whole = on_grid(scenario, 2, broken), on_grid(scenario)
    for lot in asking.side.lots:
        points = np.zeros((lot.count, 2))
        told, all_told = asking(lot, 0, points), whole(lot, 0, points)
        assert (told.present, all_told.present) == (3, 5)
        assert words in str(told.first_failure)
        assert not told.rows[:, [1, 3]].any()
        assert told.rows[:, [0, 2, 4]].tolist() == all_told.rows[:, [0, 2, 4]].tolist()
    average = asking.side.lots[0]
    [lead, *_] = asking.side.lead(average)
    next(lead)
    rows = np.ones((5, 2))
    rows[[1, 3]] = 0
    assert lead.send(rows) == pytest.approx([0.6, 0.6])  # and not 1: nothing is divided by who answered


def test_who_sees_sums_with_fewer_noises_is_promised_less(tmp_path: Path) -> None:
    """Under local trust the noise of an absent silo is absent too: the claim counts those that were there."""
    scenario = made("federation.hosts=2")
    silos = Silos.of(scenario)
    directory = RunDirectory.create(tmp_path, "broken", scenario.to_toml())
    grid = SecondNodeFails(EmbeddedGrid(make_app(silos), nodes(2)))
    serve(grid, scenario, silos.study.people, directory, silos.study.streams)  # type: ignore[arg-type]
    document = directory.document()
    for cell in document["cells"]:
        claims = {one["observer"]: one["epsilon"] for one in cell["guarantees"]}
        if cell["approach"] in ("local", "batches"):
            lot = next(one for one in silos.study.lots if one.cell.name == cell["approach"])
            federated = silos.study.federated(lot)
            assert isinstance(federated, SiloGradients)
            descent: GradientPerturbation = federated.gradient
            for observer, shares in (("server", 1), ("participant", 2), ("outsider", 3)):
                cost = epsilon(descent.event_of(shares), descent.delta, "replace-one").epsilon
                assert claims[observer] == pytest.approx(cost)
        if cell["silos"] > 1:
            assert cell["bound"] is None
            assert "as planned: some did not answer" in cell["noise"]
            assert cell["absent"] == 2 * federated_steps(silos, cell["approach"])
            assert "on fire" in cell["first_absence"]
    assert ABSENT in document["notes"]
    [said] = {
        absence(EstimatesCell.model_validate(cell)).partition("First: ")[2]
        for cell in document["cells"]
        if cell["silos"] > 1
    }
    assert said == "the node is on fire"
    assert "on fire" not in json.dumps(redact(document, document["operator_only"]))


def federated_steps(silos: Silos, name: str) -> int:
    lot = next(one for one in silos.study.lots if one.cell.name == name)
    return silos.study.federated(lot).steps


class Nobody(Grid):
    def asked(self, message: Message) -> Iterator[Message]:
        yield Message(Error(code=0, reason="gone\n\x1bForged: all is well"), reply_to=message)


def test_nobody_answers(tmp_path: Path) -> None:
    scenario = made()
    silos = Silos.of(scenario)
    directory = RunDirectory.create(tmp_path, "nobody", scenario.to_toml())
    grid = Nobody(EmbeddedGrid(make_app(silos), nodes(1)))
    with pytest.raises(RunError, match=r"approaches.average: no silo answered. First: gone$"):
        serve(grid, scenario, silos.study.people, directory, silos.study.streams)  # type: ignore[arg-type]
    document = directory.document()
    assert (document["status"], len(document["cells"])) == ("failed", 1)  # the curator's


def test_the_timeout_of_a_scenario_ends_the_wait(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no silo answered\. First: the node did not answer"):
        fit(made("federation.timeout=1e-9"), tmp_path)
    assert (next(tmp_path.iterdir()) / "report.html").exists()


def test_a_sum_longer_than_its_records_can_have_is_no_sum() -> None:
    class Liar(SecondNodeTells):
        rows = staticmethod(lambda rows: rows / np.linalg.norm(rows, axis=2, keepdims=True) * 40.001)

    class Possible(SecondNodeTells):
        rows = staticmethod(lambda rows: rows / np.linalg.norm(rows, axis=2, keepdims=True) * 40)

    scenario = made("federation.hosts=2")
    for kind, present in ((Liar, 3), (Possible, 5)):
        asking = on_grid(scenario, 2, kind)
        [central] = [lot for lot in asking.side.lots if lot.cell.name == "central"]
        told = asking(central, 0, np.zeros((3, 2)))
        assert told.present == present
        assert present == 5 or "longer than" in str(told.first_failure)


def test_a_server_that_asks_twice_is_refused() -> None:
    asking = on_grid(made())
    for lot in asking.side.lots:
        assert asking(lot, 0, np.zeros((3, 2))).present == 5
        again = asking(lot, 0, np.ones((3, 2)))
        assert (again.present, again.rows.any()) == (0, False)
        assert "a silo refused" in str(again.first_failure)
    assert asking(asking.side.lots[0], 0, np.zeros((3, 2))).present == 0  # nor an earlier lot


# ------------------------------------------------------------------ as `flwr run` plays it


def by_flwr_run(scenario: ErmScenario, out: Path, **config: Any) -> dict[str, Any]:
    told = {"scenario": scenario.to_toml(), "out": str(out), **config}
    grid = EmbeddedGrid(client_app, nodes(2), told)
    server_app(grid, Context(grid.run.run_id, 0, {}, RecordDict(), dict(told)))
    [path] = out.iterdir()
    return json.loads((path / "run.json").read_text())  # type: ignore[no-any-return]


def told(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell without what is assumed of nodes that are not our own."""
    plain = {"assumptions", "words"}
    kept = [{key: g[key] for key in g.keys() - plain} for g in cell["guarantees"]]
    return {**cell, "guarantees": kept}


def test_the_apps_of_flwr_run_find_the_same_and_say_what_it_rests_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run config alone tells both apps what to do: a scenario, as one string, and a folder."""
    scenario = made("federation.hosts=2")
    document = by_flwr_run(scenario, tmp_path / "far")
    assert "run.json" in capsys.readouterr().out
    here = numbers(fit(scenario, tmp_path / "here"))
    assert [told(cell) for cell in numbers(document)] == [told(cell) for cell in here]
    assert document["randomness"]["clients"] == "simulation-grade randomness, assumed"
    for cell in numbers(document):
        for one in cell["guarantees"]:
            assert ("the submitter of the run is honest" in one["words"]) == (one["trust"] == "local")
            assert "simulation-grade" in one["words"] or one["epsilon"] is None
    checked_document(Path(document["path"]))


def test_where_noise_is_no_simulations_nothing_is_promised_against_who_has_all_records(
    tmp_path: Path,
) -> None:
    scenario = made("federation.hosts=2")
    document = by_flwr_run(scenario, tmp_path / "one", noise="system")
    again = by_flwr_run(scenario, tmp_path / "two", noise="system")
    for cell, other in zip(numbers(document), numbers(again), strict=True):
        assert cell["theta"] != other["theta"]  # nobody chose the noise
        claims = {one["observer"]: one for one in cell["guarantees"]}
        if cell["silos"] == 1:
            [only] = claims.values()
            assert "operating system's entropy at the server" in only["words"]
            continue
        assert claims["server"]["epsilon"] is None
        said = "the server is trusted" if cell["approach"] == "central" else "has read the records itself"
        assert said in claims["server"]["words"]
        assert claims["outsider"]["epsilon"] == pytest.approx(1.0, abs=1e-6) or cell["approach"] != "average"
        assert "operating system" in claims["outsider"]["words"]
    checked_document(Path(document["path"]))


def test_nobody_pins_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--pinned: no node holds a study"):
        by_flwr_run(made(), tmp_path, pinned=True)
    pinned = {"scenario": made().to_toml(), "home": str(tmp_path), "num-partitions": 1, "partition-id": 0}
    grid = EmbeddedGrid(client_app, [pinned], {"scenario": made().to_toml(), "out": ""})
    with pytest.raises(RunError, match="the node's own scenario cannot be used"):
        SilosOnGrid(grid, Silos.of(made()).study).deal()
