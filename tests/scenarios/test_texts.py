"""Runs of models of the next character of a text, under each trust, and what their input may not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from fedprivacy.data.npz import array
from fedprivacy.data.text_file import secrets
from fedprivacy.data.texts import VOCABULARY
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import build, flat_weights
from fedprivacy.population.clients import population
from fedprivacy.scenario import Gru, Scenario, Transformer
from fedprivacy.scenario.attack.rules import between
from fedprivacy.scenario.attack.sections import GameSettings
from fedprivacy.scenario.data import TextFile
from fedprivacy.scenario.model import gru_parameters, transformer_parameters
from fedprivacy.verification.verify import checked_document
from scenarios.budgets.planned_work import planned
from scenarios.budgets.stop_at_epsilon import plan_in_advance
from scenarios.engines.launch import Engine
from scenarios.runner import run

TEXT = """
name = "roles"
seed = 1
[data]
name = "text"
partition = "by-user"
roles = 6
speeches = 2
window = 10
[model]
name = "gru"
embedding = 4
width = 8
[training]
learning_rate = 0.5
batch_size = 20
[server]
rounds = 2
optimizer = "sgd"
[sampling]
name = "all"
[privacy]
trust = "central"
adjacency = "replace-one"
clipping_norm = 0.5
epsilon = 8.0
delta = 1e-3
"""
DP_SGD = (
    "privacy.unit=example",
    "privacy.adjacency=add-remove",
    "training={batches='poisson', rate=0.3, steps=2, learning_rate=0.5}",
)
TRUSTS = {
    "none": ("privacy={trust='none'}",),
    "central": (),
    "local": ("privacy.trust=local",),
    "distributed": ("privacy.trust=distributed",),
    "dp-sgd": ("privacy.trust=local", *DP_SGD),
    "dp-sgd of a server": (*DP_SGD, "training.steps=1"),
}
MODELS = {
    "gru": (),
    "transformer": ("model={name='transformer', width=8, layers=1, heads=2}",),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def scenario(*overrides: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=overrides)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("trust", TRUSTS)
def test_a_run_measures_next_tokens(trust: str, model: str, tmp_path: Path) -> None:
    document = run(
        scenario(*TRUSTS[trust], *MODELS[model]), tmp_path, report=(trust, model) == ("none", "gru")
    )
    assert document["metric"] == "token_accuracy"
    final = document["final"]
    assert final["accuracy"] is None
    assert 0 <= final["score"] <= 1
    assert final["measures"]["perplexity"] == pytest.approx(np.exp(final["loss"]), rel=1e-5)
    assert TESTED_NOTE in document["notes"]  # the held-out records are those of clients
    assert checked_document(Path(document["path"]))["final"] == final
    if (trust, model) == ("none", "gru"):
        page = (Path(document["path"]) / "report.html").read_text()
        assert "accuracy of next tokens on the held-out test set" in page


@pytest.mark.parametrize("model", MODELS)
def test_workers_change_no_bit(model: str, tmp_path: Path) -> None:
    finals = [
        run(scenario(*MODELS[model]), tmp_path / str(n), report=False, engine=Engine(workers=n))["final"]
        for n in (1, 2)
    ]
    assert finals[0] == finals[1]


def test_a_model_learns_the_grammar_of_the_play(tmp_path: Path) -> None:
    free = ("privacy={trust='none'}", "server.rounds=10", "model.width=32", "training.learning_rate=1.0")
    more = ("data.speeches=10", "data.window=20", "training.batch_size=4", "evaluation.every=10")
    document = run(scenario(*free, *more), tmp_path, report=False)
    assert document["final"]["score"] > 0.4  # the commonest character makes up 19 %
    assert document["final"]["measures"]["perplexity"] < 10


@pytest.mark.parametrize(
    "part",
    [
        ("model.trainable=['output.*']",),
        ("model.freeze=['embedding.*']",),
        ("model.lora={rank=2, alpha=4.0, targets=['output','input']}",),
    ],
)
def test_a_part_may_be_frozen_or_have_adapters(part: tuple[str, ...], tmp_path: Path) -> None:
    document = run(scenario(*part), tmp_path, report=False)
    assert document["plan"]["frozen"]["trained"] < gru_parameters(97, 4, 8)
    assert checked_document(Path(document["path"]))


def test_adapters_of_what_is_no_linear_layer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"matches no linear layer\. The linear layers are: embedding, input"
    ):
        run(scenario("model.lora={rank=2, alpha=4.0, targets=['recurrent']}"), tmp_path)


def test_the_sizes_of_rules_are_those_of_the_models() -> None:
    gru = build(Gru(name="gru", embedding=3, width=5), (7,), 11, seed=0)
    assert len(flat_weights(gru)) == gru_parameters(11, 3, 5)
    transformer = build(Transformer(name="transformer", width=6, layers=2, heads=3), (7,), 11, seed=0)
    assert len(flat_weights(transformer)) == transformer_parameters(11, 7, 6, 2)


def write(text: str | bytes, name: str = "play.txt") -> None:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)


LINES = "\n\n".join(
    f"{name}:\n{'Once upon a time there was more. ' * 4}" for name in ("ANNA", "BEN", "CLARA")
)
FILE = ("data={name='text', path='play.txt', partition='by-user', window=16}",)


def test_a_file_of_ones_own_is_read_by_speaker_or_by_paragraph() -> None:
    write(LINES.replace("\n", "\r\n"))
    people = population(scenario(*FILE).data)
    assert people.partition.clients == 3
    assert people.features == (16,)
    assert people.dataset.classes == 97
    assert people.dataset.y.dtype == np.int64
    assert np.array_equal(people.dataset.x[0][1:], people.dataset.y[0][:-1])
    assert people.test_owned
    parts = population(scenario(*FILE, "data.authors=paragraphs", "data.vocabulary='abc '").data)
    assert parts.partition.clients == 3
    assert parts.dataset.class_names == ("a", "b", "c", " ", "other")
    write(LINES + "\n\nDORA:\n" + "A" * 40)  # a file that has changed is read again
    assert population(scenario(*FILE).data).partition.clients == 4


REFUSED = {
    "no file": (None, (), "no such file"),
    "no speaker": ("Once upon a time.\n" * 9, (), "no line names a speaker"),
    "an unclear speaker": (f"{LINES}\n\nDORA: Go.", (), "line 10 may name a speaker"),
    "too short": ("ANNA:\nHello.\n", (), "no author has 17 characters or more to train on"),
    "nothing held out": ("ANNA:\n" + "a" * 17, (), "no author has 17 characters or more to test on"),
    "no UTF-8": (b"ANNA:\n\xff\xfe", (), "byte 6 is no UTF-8"),
    "a directory": (None, ("data.path='.'",), "data.path"),
    "keys of a play": (LINES, ("data.roles=3",), "data.roles=3: has no effect"),
    "scaling": (LINES, ("data.scaling=per-record",), "scaling would change them"),
    "a character twice": (LINES, ("data.vocabulary='aba'",), "must have each character once"),
    "a classifier": (LINES, ("model={name='mlp'}",), 'Use name = "gru" or name = "transformer"'),
    "labels": (LINES, ("data.partition=dirichlet", "data.clients=2", "data.alpha=1.0"), "by their classes"),
    "heads": (LINES, ("model={name='transformer', width=6, heads=4}",), "does not divide the width 6"),
    "too large": (LINES, ("model.width=1000000",), "more than 1,000,000,000 parameters"),
    "another task": (LINES, ("data.task=classification",), "data.task"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_text_for_a_model_is_refused(case: str) -> None:
    text, keys, message = REFUSED[case]
    if text is not None:
        write(text)
    with pytest.raises(InputError, match=message):
        scenario(*FILE, *keys)


def test_a_model_of_texts_needs_texts() -> None:
    digits = "data={name='digits', partition='iid', clients=10}"
    with pytest.raises(InputError, match="it predicts the next token of a text"):
        scenario(digits)
    with pytest.raises(InputError, match="records of this data set are no texts"):
        scenario("data={name='synthetic', task='next-token'}")


def tokens(**changed: object) -> str:
    stream = np.random.default_rng(0)
    x = stream.integers(0, 5, (40, 6))
    arrays = {"x_train": x[:30], "y_train": x[:30], "x_test": x[30:], "y_test": x[30:], **changed}
    np.savez("tokens.npz", **arrays)
    return "data={name='npz', task='next-token', path='tokens.npz', partition='iid', clients=5, classes=5}"


def test_tokens_of_ones_own_in_an_npz_file(tmp_path: Path) -> None:
    document = run(scenario(tokens()), tmp_path, report=False)
    assert document["metric"] == "token_accuracy"
    with pytest.raises(InputError, match=r"y_train has shape \(30,\)"):
        scenario(tokens(y_train=np.zeros(30, np.int64)))
    with pytest.raises(InputError, match="y_test has the token 9, but the 5 tokens given"):
        scenario(tokens(y_test=np.full((10, 6), 9)))
    with pytest.raises(InputError, match="y_train has the token -1"):
        scenario(tokens(y_train=np.full((30, 6), -1)))
    for value, message in (
        (0.37, "x_train has the token 0.37"),
        (77, "x_train has the token 77, but the 5 tokens given are 0 to 4"),
        (-3, "x_train has the token -3"),
        (np.nan, "x_train has the token nan"),
    ):
        with pytest.raises(InputError, match=message):
            scenario(tokens(x_train=np.full((30, 6), value)))
    with pytest.raises(InputError, match="x_test has the token 8, but"):
        scenario(tokens(x_test=np.full((10, 6), 8)))
    with pytest.raises(InputError, match="0 is a token, and no place for a missing one"):
        scenario(tokens().replace("}", ", missing='zero'}"))


def test_the_number_of_tokens_is_public() -> None:
    with pytest.raises(InputError, match=r"data\.classes: is missing: the number of tokens must be public"):
        scenario(tokens().replace(", classes=5", ""))
    scenario(tokens(classes=np.array(list("abcde"))).replace(", classes=5", ""))


OWN = """
from torch import nn

class Own(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.rows, self.out = nn.Embedding(tokens, 4), nn.Linear(4, tokens)

    def forward(self, x):
        return self.out(self.rows(x.long().clamp(0, self.rows.num_embeddings - 1)))

def make(features, classes, mixed=False):
    return Own(classes) if not mixed else nn.Linear(features[0], classes)
"""


def test_a_model_by_code_makes_a_row_of_tokens_for_each_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(OWN, "own_text.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = "model={name='code', factory='own_text:make'}"
    assert run(scenario(own), tmp_path, report=False, allow_code=True)["metric"] == "token_accuracy"
    # An account and a stop at an epsilon plan it before any record is read.
    assert planned(scenario(own), allow_code=True).size == plan_in_advance(scenario(own), True).rounds
    with pytest.raises(InputError, match=r"it makes \(4, 97\), \(4, 10, 97\) is needed"):
        run(scenario(own, "model.options={mixed=true}"), tmp_path, allow_code=True)


def test_opacus_trains_texts_too(tmp_path: Path) -> None:
    pytest.importorskip("opacus")
    keys = (
        *TRUSTS["dp-sgd"],
        "privacy={trust='local', unit='example', adjacency='add-remove', "
        "clipping_norm=1e-6, epsilon=1e6, delta=1e-3}",
    )
    weights = [
        json.dumps(
            run(scenario(*keys, f"training.trainer={name}"), tmp_path / name, report=False)["final"]["loss"]
        )
        for name in ("opacus", "fedprivacy")
    ]
    assert float(weights[0]) == pytest.approx(float(weights[1]), rel=1e-4)


SECRETS = ("data.secrets=3", "data.copies=2", "data.window=25", "data.speeches=3")


@pytest.mark.parametrize("trust", ["none", "central", "dp-sgd"])
def test_secrets_in_texts_are_ranked_beside_the_bound_of_the_clients_epsilon(
    trust: str, tmp_path: Path
) -> None:
    document = run(scenario(*TRUSTS[trust], *SECRETS), tmp_path, report=trust == "central")
    exposure = document["final"]["exposure"]
    assert len(exposure["bits"]) == 3
    assert exposure["mean"] == pytest.approx(np.mean(exposure["bits"]))
    assert (exposure["copies"], exposure["candidates"]) == (2, 10**4)
    assert exposure["chance"] == pytest.approx(1.44, abs=0.01)
    folder = Path(document["path"])
    assert checked_document(folder)["final"]["exposure"] == exposure
    if trust != "central":  # a secret is in several records
        assert exposure["bound"] is None
        return
    bound = exposure["bound"]
    assert 1.44 < bound["bits"] < np.log2(10**4)
    assert (bound["observer"], bound["adjacency"], bound["steps"]) == ("outsider", "replace-one", 1)
    claims = document["ledger"]["claims"]
    [claim] = [each for each in claims if each["observer"] == "outsider"]
    assert bound["assumptions"] == claim["assumptions"]
    page = (folder / "report.html").read_text()
    assert "What the model remembers" in page
    assert "allows a mean of at most" in page
    assert "provided that" in page
    for key, value in (("bits", 1.0), ("assumptions", ["nothing"]), ("observer", "server")):
        changed = json.loads(json.dumps(document))
        changed["final"]["exposure"]["bound"][key] = value
        (folder / "run.json").write_text(json.dumps(changed))
        with pytest.raises(InputError, match=rf"final\.exposure\.bound\.{key}"):
            checked_document(folder)


def test_a_stored_run_has_the_exposure_of_each_of_its_secrets(tmp_path: Path) -> None:
    document = run(scenario(*SECRETS), tmp_path / "some", report=False)
    exposure = document["final"]["exposure"]
    fewer = {**exposure, "bits": exposure["bits"][:2], "mean": float(np.mean(exposure["bits"][:2]))}
    many = {**exposure, "bits": [14.0] * 3, "mean": 14.0}
    words = {**exposure, "bits": ["much"] * 3}
    none = run(scenario(*SECRETS, "data.secrets=0"), tmp_path / "none", report=False)
    for original, changed, message in (
        (document, None, "is missing, its scenario has 3 secrets"),
        (document, fewer, r"final\.exposure\.bits: has 2 entries, its scenario implies 3"),
        (document, many, "10,000 candidates allow 13.29 at most"),
        (document, words, r"final\.exposure\.bits\[0\]"),
        (none, exposure, r"final\.exposure\.bits: has 3 entries, its scenario implies 0"),
    ):
        edited = json.loads(json.dumps(original))
        edited["final"]["exposure"] = changed
        folder = Path(original["path"])
        (folder / "run.json").write_text(json.dumps(edited))
        with pytest.raises(InputError, match=message):
            checked_document(folder)


def test_records_have_every_copy_whole() -> None:
    data = scenario(*SECRETS, "data.copies=9", "data.window=64", "data.speeches=8").data
    assert isinstance(data, TextFile)
    records = ["".join(VOCABULARY[token] for token in row) for row in array(data.file, "x_train")]
    for secret in secrets(data.file):
        assert sum(record.count(secret.line) for record in records) == 9


def test_secrets_change_no_record_of_another_author() -> None:
    with_some, without = (population(scenario(*SECRETS, f"data.secrets={n}").data) for n in (1, 0))
    changed = [
        client
        for client in range(6)
        if not np.array_equal(
            *(people.dataset.x[people.partition.records(client)] for people in (with_some, without))
        )
    ]
    assert len(changed) == 1
    assert np.array_equal(with_some.dataset.x_test, without.dataset.x_test)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("data.partition=iid", "data.clients=3"), "all copies of a secret must be one client's"),
        (("data.window=20",), "a line with a secret has 24 characters with its ends"),
        (
            ("data.window=47", "data.copies=50"),
            r"copies=50: in one author's text \d+ copies are whole within",
        ),
        (("data.vocabulary='abc'",), "secrets are written in small letters"),
        (("data.first_clients=2",), "secrets of authors who do not take part"),
        (("data.public_fraction=0.5",), "an author with a secret may be public"),
        (("data.secrets=9",), "more than the 6 authors"),
    ],
)
def test_secrets_that_cannot_be_planted_are_refused(keys: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        scenario(*SECRETS, *keys)


def test_attacks_on_texts_name_a_remedy_that_texts_take() -> None:
    [finding] = between(scenario(), cast(GameSettings, None), {})
    assert 'data.name = "digits"' in finding.remedy
    assert "classification" not in finding.remedy
