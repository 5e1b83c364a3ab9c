"""Opacus makes the same steps as our own trainer, on the same batches, with noise of the same size."""

from __future__ import annotations

import copy
import re
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from clients.fleet import Fleet
from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.batches import PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.scenario import Cnn, Logistic, Mlp
from fedprivacy.training import dp_sgd
from fedprivacy.training.task import LocalTraining, Task
from fedprivacy.training.trainers import trainer_of
from scenarios.experiments.comparison import compare
from scenarios.runner import resume, run

pytest.importorskip("opacus", reason='the other trainer needs the extra "opacus"')

from fedprivacy.training import opacus_trainer

STREAMS = Streams(11, run="some")
MODELS = {
    "logistic": Logistic(name="logistic"),
    "mlp": Mlp(name="mlp", hidden=(6, 5), activation="tanh"),
    "cnn": Cnn(name="cnn", channels=(3,), hidden=(4,)),  # 9 features are an image of 3 x 3
}
BATCHES = {
    "poisson": PoissonBatches(6, rate=0.3),
    "poisson by size": PoissonBatches(6, batch_size=4),
    "shuffled": ShuffledBatches(3, 4),
    "all": ShuffledBatches(3),
    "with replacement": ReplacementBatches(5, 4),
}
SIZES = np.array([5, 13])


class Problem:
    """Two clients with records that were made up, and a model that is not at a special point."""

    def __init__(self, model: str = "mlp", sizes: np.ndarray = SIZES, scale: float = 1.0) -> None:
        rng = np.random.default_rng(0)
        self.sizes, self.clients = sizes, np.arange(10, 10 + len(sizes))
        self.x = torch.from_numpy(scale * rng.standard_normal((sizes.sum(), 9)).astype(np.float32))
        self.y = torch.from_numpy(rng.integers(0, 3, sizes.sum()))
        self.records = np.split(rng.permutation(sizes.sum()), np.cumsum(sizes)[:-1])
        self.module = build(MODELS[model], (9,), 3, seed=1)
        start = flat_weights(self.module)
        self.weights = start + rng.normal(0, 0.1, len(start)).astype(np.float32)

    def train(
        self,
        options: LocalTraining,
        trainer=opacus_trainer.train_examples,
        clipping_norm: float | None = 1.0,
        noise: Gaussian | None = None,
        streams: Streams = STREAMS,
        round: int = 2,
        which: slice = slice(None),
        **others: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        task = Task(
            self.module, self.weights, self.x, self.y, self.records[which], self.clients[which], options,
            streams, round, self.sizes[which],
        )  # fmt: skip
        updates, zeroed = trainer(task, clipping_norm, noise, **others)
        return updates.numpy(), zeroed


def agree(problem: Problem, options: LocalTraining, clipping_norm: float | None = 1.0) -> np.ndarray:
    found, zeroed = problem.train(options, clipping_norm=clipping_norm)
    expected, also = problem.train(options, dp_sgd.train_examples, clipping_norm)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5
    assert np.abs(found).max() > 1e-2  # they moved at all
    assert np.array_equal(zeroed, also)
    return found


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batches", BATCHES)
def test_the_same_steps_without_noise(model: str, batches: str) -> None:
    agree(Problem(model), LocalTraining(BATCHES[batches], 0.5))


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("batches", ["poisson", "shuffled"])
@pytest.mark.parametrize(
    "options",
    [
        {"momentum": 0.9},
        {"weight_decay": 0.3},
        {"proximal": 0.7},
        {"projection": 1.0},
        {"averaging": True},
        {"momentum": 0.5, "weight_decay": 0.1, "proximal": 0.5, "projection": 2.0, "averaging": True},
    ],
)
def test_the_same_steps_with_every_option(batches: str, options: dict) -> None:
    problem, asked = Problem(), LocalTraining(BATCHES[batches], 0.2, **options)
    found = agree(problem, asked)
    plain, _ = problem.train(LocalTraining(BATCHES[batches], 0.2))
    assert np.abs(found - plain).max() > 1e-3  # the option says something here


@pytest.mark.parametrize("clipping_norm", [0.02, 0.5, 100.0, None])
def test_the_same_bound_on_a_record(clipping_norm: float | None) -> None:
    """Small enough for every record, for some, for none; and no bound."""
    problem = Problem(scale=3.0)
    agree(problem, LocalTraining(ShuffledBatches(4, 3), 1.0 if clipping_norm == 0.02 else 0.1), clipping_norm)


def test_no_record_moves_the_sum_by_more_than_the_bound() -> None:
    problem, options = Problem("logistic", scale=10.0), LocalTraining(PoissonBatches(1, rate=1.0), 1.0)
    full, _ = problem.train(options)
    own, moved = problem.records[0], []
    for out in range(len(own)):
        problem.records[0] = np.delete(own, out)  # the rate and the denominator are those of the agreed size
        without, _ = problem.train(options)
        moved.append(np.linalg.norm((full - without)[0] * SIZES[0]))
        assert np.array_equal(full[1], without[1])
    assert 1 - 1e-6 < max(moved) <= 1 + 1e-12


def test_batches_without_records_move_nothing_but_by_noise() -> None:
    problem, options = Problem("cnn"), LocalTraining(PoissonBatches(4, rate=1e-9), 0.5)
    quiet, zeroed = problem.train(options)
    assert not quiet.any()
    assert not zeroed.any()
    loud, _ = problem.train(options, noise=Gaussian(1.0, 1.0))
    assert np.isfinite(loud).all()
    assert loud.all()


def test_a_client_that_failed_answers_without_its_data() -> None:
    problem, options = Problem(), LocalTraining(ShuffledBatches(2, 4), 0.5)
    noise = Gaussian(1.0, 1.0)
    blank, zeroed = problem.train(options, noise=noise, blank=True)
    problem.x += 100.0
    assert np.array_equal(problem.train(options, noise=noise, blank=True)[0], blank)
    assert not zeroed.any()
    assert not problem.train(options, blank=True)[0].any()


@pytest.mark.exhaustive
def test_the_noise_has_its_standard_deviation() -> None:
    """Chi-square and Kolmogorov-Smirnov on 13,000 draws in all; false alarms: 1e-6 each, at a fixed seed."""
    problem = Problem("mlp", np.array([400, 800]))
    noise, steps = Gaussian(0.5, 3.0), 10
    options = LocalTraining(PoissonBatches(steps, rate=0.25), 0.1)
    samples = []
    for round in range(60):
        # Without data the update is the sum of the steps' noise.
        updates, _ = problem.train(options, clipping_norm=0.5, noise=noise, round=round, blank=True)
        expected = 0.1 * 1.5 * np.sqrt(steps) / (0.25 * problem.sizes)
        samples.append(updates / expected[:, None])
    draws = np.concatenate([sample.ravel() for sample in samples])
    assert len(draws) > 10_000
    assert 1e-6 < stats.chi2(len(draws)).cdf((draws**2).sum()) < 1 - 1e-6
    assert stats.kstest(draws, "norm").pvalue > 1e-6
    assert len(np.unique(draws)) == len(draws)  # no two clients, rounds or parameters share a draw


def test_the_noise_is_added_to_the_gradient_of_the_data() -> None:
    problem, noise = Problem("logistic"), Gaussian(1.0, 1e-3)
    options = LocalTraining(ShuffledBatches(1), 1.0)
    quiet, _ = problem.train(options)
    loud, _ = problem.train(options, noise=noise)
    alone, _ = problem.train(options, noise=noise, blank=True)
    assert np.abs(loud - quiet - alone).max() < 1e-12


def test_draws_depend_on_seed_run_round_and_client_alone() -> None:
    problem, noise = Problem(), Gaussian(1.0, 2.0)
    options = LocalTraining(PoissonBatches(3, rate=0.5), 0.5, momentum=0.5)
    state = torch.get_rng_state()
    first, _ = problem.train(options, noise=noise)
    torch.randn(3)
    torch.set_rng_state(state)
    again, _ = problem.train(options, noise=noise)
    chunks = [problem.train(options, noise=noise, which=slice(i, i + 1))[0] for i in range(2)]
    assert np.array_equal(first, again)
    assert np.array_equal(first, np.concatenate(chunks))
    assert torch.equal(torch.get_rng_state(), state)  # nobody drew from torch's one generator
    for other in ({"round": 3}, {"streams": Streams(12, run="some")}, {"streams": Streams(11, run="other")}):
        assert not np.isclose(problem.train(options, noise=noise, **other)[0], first).any()


def test_the_model_that_is_given_stays_as_it_is() -> None:
    problem = Problem()
    before = copy.deepcopy(problem.module)
    problem.train(LocalTraining(ShuffledBatches(2), 0.5))
    for one, other in zip(problem.module.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
        assert not hasattr(one, "grad_sample")
    assert not any(layer._forward_hooks or layer._backward_hooks for layer in problem.module.modules())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_broken_record_counts_as_zero(model: str, broken: float) -> None:
    problem, options = Problem(model), LocalTraining(ShuffledBatches(2, 4), 0.5)
    victim = problem.records[1][3]
    problem.x[victim, 4] = broken
    updates, zeroed = problem.train(options)
    expected, also = problem.train(options, dp_sgd.train_examples)
    assert np.isfinite(updates).all()
    assert zeroed.tolist() == also.tolist() == [0, 2]  # once a pass, of the one client
    assert np.abs(updates - expected).max() <= 1e-5
    noisy, _ = problem.train(options, noise=Gaussian(1.0, 1.0))
    assert np.isfinite(noisy).all()


class Choosy(nn.Module):
    """Raises at one record, after a layer that Opacus has seen, and where records are too large together."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(9, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.first(x).tanh()
        if x[:, 0].sum() > 1000:
            raise ArithmeticError
        return self.last(inner)


class Raising(torch.autograd.Function):
    """The identity, which raises on the way back at some records."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, back: torch.Tensor) -> torch.Tensor:
        [x] = ctx.saved_tensors
        if (x.abs() > 1000).any():
            raise ArithmeticError
        return back


class ChoosyBack(Choosy):
    """Raises on the way back, between two layers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(Raising.apply(self.first(x)))


def choosy(module: nn.Module) -> Problem:
    """A client with all records in each batch, whose agreed size does not change with them."""
    problem = Problem()
    problem.module, problem.weights = module, flat_weights(module)
    return problem


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("module", [Choosy(), ChoosyBack()], ids=["forward", "back"])
@pytest.mark.parametrize("most", [None, 4], ids=["whole", "in pieces"])
@pytest.mark.parametrize("clipping_norm", [0.5, None])
def test_a_record_that_raises_counts_as_zero_and_changes_no_other(
    module: nn.Module, most: int | None, clipping_norm: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, options = choosy(module), LocalTraining(PoissonBatches(3, rate=1.0), 0.5, momentum=0.5)
    if most:
        monkeypatch.setattr(opacus_trainer, "MOST_NUMBERS", most * len(problem.weights))
    own, noise = problem.records[1], Gaussian(0.5, 2.0)
    problem.x[own[[2, 7]], 0] = 1e6
    problem.x[own[4], 1] = torch.nan
    for added in (None, noise) if clipping_norm else (None,):
        found, zeroed = problem.train(options, clipping_norm=clipping_norm, noise=added)
        assert zeroed.tolist() == [0, 3 * 3]
        problem.records[1] = np.delete(own, [2, 7])
        without, also = problem.train(options, clipping_norm=clipping_norm, noise=added)
        assert also.tolist() == [0, 3]
        assert np.abs(found - without).max() <= 1e-12 * np.abs(without).max()
        assert (np.abs(found).max(axis=1) > 1e-2).all()
        problem.records[1] = own
    found, _ = problem.train(options, clipping_norm=clipping_norm)
    expected, zeroed = problem.train(options, dp_sgd.train_examples, clipping_norm)
    assert zeroed.tolist() == [0, 3 * 3]
    assert np.abs(found - expected).max() <= 1e-5


def test_records_that_raise_together_alone_are_taken_one_by_one() -> None:
    problem, options = choosy(Choosy()), LocalTraining(PoissonBatches(2, rate=1.0), 0.5)
    problem.x[problem.records[1][:3], 0] = 400.0
    for bad in (False, True):
        if bad:
            problem.x[problem.records[1][5], 0] = 1e6
        found, zeroed = problem.train(options)
        expected, also = problem.train(options, dp_sgd.train_examples)
        assert zeroed.tolist() == also.tolist() == [0, 2 * bad]
        assert np.abs(found - expected).max() <= 1e-5
        assert np.abs(found[1]).max() > 1e-2


@pytest.mark.parametrize("label", [-100, -1, 3])
def test_a_label_of_no_class_counts_as_zero(label: int) -> None:
    """Torch takes -100 for a record to skip, and then divides by the others alone: Opacus would not know."""
    problem, options = Problem("logistic"), LocalTraining(PoissonBatches(1, rate=1.0), 1.0)
    victim = problem.records[1][3]
    problem.y[victim] = label
    found, zeroed = problem.train(options)
    problem.records[1] = np.delete(problem.records[1], 3)
    without, _ = problem.train(options)
    assert zeroed.tolist() == [0, 1]
    assert np.abs(found - without).max() <= 1e-12


def test_a_client_all_of_whose_records_raise_answers_with_its_noise() -> None:
    problem, options = choosy(Choosy()), LocalTraining(PoissonBatches(2, rate=1.0), 0.5)
    problem.x[problem.records[1], 0] = 1e6
    noise = Gaussian(1.0, 2.0)
    found, zeroed = problem.train(options, noise=noise)
    blank, _ = problem.train(options, noise=noise, blank=True)
    assert zeroed.tolist() == [0, 2 * 13]
    assert np.array_equal(found[1], blank[1])


def test_large_batches_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, noise = Problem(), Gaussian(1.0, 1.0)
    options = LocalTraining(PoissonBatches(4, rate=0.8), 0.5, momentum=0.5, proximal=0.5)
    whole, _ = problem.train(options, noise=noise)
    monkeypatch.setattr(opacus_trainer, "MOST_NUMBERS", 3 * len(problem.weights))  # three records
    pieces, _ = problem.train(options, noise=noise)
    assert np.allclose(pieces, whole, rtol=0, atol=1e-12)


def test_a_generator_takes_all_of_its_state_from_the_stream() -> None:
    """Torch itself would take 32 bits of a seed, and give two of a million clients the same noise."""
    same = [torch.randn(4, generator=torch.Generator().manual_seed(7 + n * 2**32)) for n in range(2)]
    assert torch.equal(*same)
    stream, drawn = STREAMS.noise("opacus"), opacus_trainer.generator_of(STREAMS.noise("opacus"))
    # The numbers are those of the Mersenne Twister with that state, by another's code.
    twister = np.random.MT19937()
    words = stream.integers(2**32, size=624).astype(np.uint32)
    twister.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 624}}
    expected = twister.random_raw(700) % 2**20
    assert torch.randint(2**20, (700,), generator=drawn).tolist() == expected.tolist()


HOSPITALS = """
name = "hospitals"
seed = 1
[data]
name = "synthetic"
records = 600
test_records = 500
features = 4
partition = "iid"
clients = 3
public_fraction = 0.0
[model]
name = "logistic"
[training]
batches = "poisson"
steps = 5
rate = 0.15
learning_rate = 0.5
[server]
rounds = 4
[sampling]
name = "all"
[privacy]
trust = "local"
unit = "example"
adjacency = "add-remove"
epsilon = 4.0
delta = 1e-4
clipping_norm = 1.0
[federation]
chunk_size = 2
"""
OPACUS = "training.trainer=opacus"


def test_one_word_of_a_scenario_switches(make_scenario, tmp_path) -> None:
    documents = [
        run(make_scenario(*words, text=HOSPITALS), tmp_path / str(n), report=False)
        for n, words in enumerate([(), (OPACUS,), (OPACUS, "federation.chunk_size=1")])
    ]
    ours, theirs, alone = (document["final"] for document in documents)
    assert ours["accuracy"] > 0.75
    assert theirs["accuracy"] == pytest.approx(ours["accuracy"], abs=0.05)
    assert theirs["loss"] != ours["loss"]  # the noise is another's
    assert theirs == alone
    guarantees = [document["privacy"] for document in documents]
    assert guarantees[0] == guarantees[1] == guarantees[2]
    assert "opacus" in documents[1]["versions"]
    assert "opacus" not in documents[0]["versions"]


def test_a_run_goes_on_with_the_same_opacus_alone(make_scenario, tmp_path) -> None:
    path = Path(run(make_scenario(OPACUS, text=HOSPITALS), tmp_path, report=False)["path"])
    text = (path / "run.json").read_text().replace('"finished"', '"running"')
    (path / "run.json").write_text(re.sub(r'"opacus": "[^"]*"', '"opacus": "1.0"', text))
    with pytest.raises(InputError, match=r"begun with opacus 1\.0 \(here 1\."):
        resume(path)


@pytest.mark.parametrize("trust", ["none", "local"])
def test_without_noise_both_trainers_end_at_the_same_model(make_scenario, trial, trust: str) -> None:
    """On full batches: others are drawn anew in each run."""
    full = "training={epochs=5, learning_rate=0.5}"
    quiet = "privacy={trust='none', unit='example', clipping_norm=0.5}"
    near = "privacy={trust='local', unit='example', clipping_norm=0.5, noise_multiplier=1e-4, delta=1e-4}"
    asked = quiet if trust == "none" else near
    ours, theirs = (
        trial(make_scenario(asked, full, *words, text=HOSPITALS)).play() for words in ((), (OPACUS,))
    )
    assert np.abs(ours).max() > 0.1
    assert np.abs(ours - theirs).max() < (1e-5 if trust == "none" else 1e-3)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("mean", ["rate=0.15", "batch_size=12"])
def test_the_accountant_of_opacus_agrees_over_a_whole_run(
    make_scenario, tmp_path, monkeypatch: pytest.MonkeyPatch, mean: str
) -> None:
    """What Opacus' accountant was told in each step of each client, against the run's own ledger."""
    from opacus.accountants import PRVAccountant

    told: list[tuple[float, float]] = []
    step = PRVAccountant.step

    def overheard(self: PRVAccountant, *, noise_multiplier: float, sample_rate: float) -> None:
        told.append((noise_multiplier, sample_rate))
        step(self, noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    monkeypatch.setattr(PRVAccountant, "step", overheard)
    text = HOSPITALS.replace("rate = 0.15", mean)
    document = run(make_scenario(OPACUS, text=text), tmp_path, report=False)
    [(noise, rate)] = set(told)  # the clients have as many records each
    assert len(told) == 3 * 4 * 5  # clients, rounds, steps
    accountant = PRVAccountant()
    for _ in range(4 * 5):
        step(accountant, noise_multiplier=noise, sample_rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its numerics
        expected = accountant.get_epsilon(delta=1e-4)
    spent = document["privacy"]["per_client"]["largest"]
    assert spent == pytest.approx(expected, rel=0.01)
    assert spent == pytest.approx(4.0, rel=0.01)


class Halved(nn.Module):
    """What Opacus' hooks do not see: weights that are used past their layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.layer.weight, self.layer.bias) / 2


class Twice(nn.Module):
    """A layer seen by the hooks, and past them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + nn.functional.linear(x, self.layer.weight)


class Constant(nn.Module):
    """A constant of float32, by which numbers of float64 cannot be multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.mix = nn.Linear(9, 3), torch.eye(9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x @ self.mix)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (nn.Sequential(nn.Linear(9, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)), "inplace"),
        (Halved(), "no gradients of single records"),
        (Twice(), "Opacus gets wrong gradients"),
        (Constant(), "float64"),
    ],
)
def test_a_model_that_opacus_cannot_train_is_refused_at_the_start(module: nn.Module, why: str) -> None:
    with pytest.raises(InputError, match=f'training.trainer = "opacus": the model.*{why}.*"fedprivacy"'):
        trainer_of("opacus", module, (9,), 3)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("features", [(8, 8), (64,), (8, 8, 1), (8, 8, 3)])
@pytest.mark.parametrize("channels", [(4,), (4, 8), (4, 8, 3)])
def test_convolutions_of_images_are_trained(features: tuple[int, ...], channels: tuple[int, ...]) -> None:
    """Their channels stand last in memory, in which order Opacus unfolds other pixels than the kernel sees."""
    problem = Problem()
    problem.x = torch.rand(int(SIZES.sum()), *features, generator=torch.Generator().manual_seed(3))
    problem.module = build(Cnn(name="cnn", channels=channels, hidden=(5,)), features, 3, seed=1)
    problem.weights = flat_weights(problem.module)
    opacus_trainer.check(problem.module, features, 3)
    agree(problem, LocalTraining(ShuffledBatches(4, 3), 1.0), 0.5)


class Deep(nn.Module):
    """Convolutions down to one pixel with its channels last, to which the last one adds a margin."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(4), nn.Conv2d(4, 3, 3, padding=1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x.movedim(-1, 1)).flatten(1)


def test_a_model_of_ones_own_may_have_its_channels_last() -> None:
    opacus_trainer.check(Deep(), (4, 4, 3), 3)


@pytest.mark.parametrize("command", [run, partial(compare, workers=1)])
def test_a_refused_model_leaves_nothing_behind(make_scenario, tmp_path, monkeypatch, command) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "inplace_model.py").write_text(
        "from torch import nn\n"
        "def make(features, classes):\n"
        "    return nn.Sequential(nn.Linear(features[0], 4), nn.ReLU(inplace=True), nn.Linear(4, classes))\n"
    )
    words = (
        "model={name='code', factory='inplace_model:make'}",
        "compare={epsilons=[2.0], trusts=['local']}",
    )
    asked = make_scenario(OPACUS, *words, text=HOSPITALS)
    with pytest.raises(InputError, match=r"training\.trainer"):
        command(asked, tmp_path / "runs", allow_code=True)
    assert not (tmp_path / "runs").exists()


def test_what_opacus_says_of_a_layer_is_passed_on() -> None:
    module = nn.Sequential(nn.Linear(9, 4), nn.Unflatten(1, (4, 1)), nn.LSTM(1, 3))
    with pytest.raises(InputError, match="LSTM"):
        opacus_trainer.check(module, (9,), 3)


@pytest.mark.parametrize("model", MODELS)
def test_models_by_name_are_fit(model: str) -> None:
    module = build(MODELS[model], (9,), 3, seed=0)
    assert trainer_of("opacus", module, (9,), 3) is opacus_trainer.train_examples


def test_the_fleet_tries_its_model_before_any_client_does(make_scenario) -> None:
    asked = make_scenario(OPACUS, text=HOSPITALS)
    assert Fleet.of(asked).trainer is opacus_trainer.train_examples
    assert Fleet.of(make_scenario(text=HOSPITALS)).trainer is dp_sgd.train_examples


def test_it_says_what_to_install(make_scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = make_scenario(OPACUS, text=HOSPITALS)
    monkeypatch.setitem(sys.modules, "opacus", None)
    monkeypatch.delitem(sys.modules, "fedprivacy.training.opacus_trainer")
    monkeypatch.delattr("fedprivacy.training.opacus_trainer")
    with pytest.raises(ScenarioError, match=r"training.trainer=opacus: needs the extra: .*\.\[opacus\]'"):
        make_scenario(OPACUS, text=HOSPITALS)
    with pytest.raises(InputError, match=r"cannot be imported.*pip install .*\[opacus\]'"):
        Fleet.of(asked)


def test_a_plan_at_other_noise_is_heard(make_scenario) -> None:
    """The noise multiplier that Opacus draws by is the plan's, whatever it was calibrated to."""
    fleet = Fleet.of(make_scenario(OPACUS, text=HOSPITALS))
    assert fleet.plan.step_noise is not None
    problem, options = Problem("logistic"), LocalTraining(ShuffledBatches(1), 1.0)
    one, two = (
        problem.train(options, noise=replace(fleet.plan.step_noise, noise_multiplier=z), blank=True)[0]
        for z in (1.0, 2.0)
    )
    assert np.allclose(two, 2 * one)
