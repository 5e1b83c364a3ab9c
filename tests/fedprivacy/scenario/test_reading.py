"""What a user is told about a scenario file, word by word."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.mechanisms.discrete_gaussian import DiscreteGaussian
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.scenario import Digits, Scenario

GOOD = """name = "good"
seed = 1
[data]
name = "digits"
[model]
name = "mlp"
hidden = [20, 10]
[training]
batch_size = 4
[server]
rounds = 10
optimizer = "adam"
[sampling]
name = "poisson"
rate = 0.1
[privacy]
trust = "central"
clipping_norm = 1
epsilon = 2.0
delta = 1e-5
[evaluation]
every = 2
"""


def complaints(text: str, *overrides: str) -> list[str]:
    """The lines that a user reads about a text."""
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text, "my.toml", overrides)
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, InputError)
    return str(caught.value).split("\n")


def change(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("trainable = 3", "model.trainable: 3 is a whole number, a list is needed"),
        ("freeze = []", "model.freeze: the list is empty, at least one element is needed"),
        ('weights = "w.pt"', 'model.weights = "w.pt": must name a ".safetensors" file'),
        ("lora = 3", "model.lora = 3: must be a section: lora = {rank = 4, alpha = 8.0}"),
        ("lora = {rank = 2}", "model.lora.alpha: missing"),
        ("lora = {rank = 0, alpha = 1.0}", "model.lora.rank = 0: must be at least 1"),
        (
            "lora = {rank = 2, alpa = 1.0}",
            "model.lora = {rank = 2, alpa = 1.0}: has no key alpa; it has rank, alpha and targets",
        ),
    ],
)
def test_a_choice_of_what_is_trained_that_is_none(setting: str, message: str) -> None:
    [line] = complaints(change("hidden = [20, 10]", f"hidden = [20, 10]\n{setting}"))
    assert line.startswith(f"my.toml:8: {message}")


def test_a_good_file() -> None:
    scenario = Scenario.from_text(GOOD)
    assert scenario.population == 1437
    assert scenario.model.name == "mlp"
    assert scenario.model.hidden == (20, 10)
    assert scenario.server.optimizer == "adam"
    assert scenario.server.beta2 == 0.99
    assert scenario.privacy.clipping_norm == 1.0
    assert scenario.privacy.noise_draw is None
    assert scenario.evaluation.on == "test"


# One mistake each: what is replaced in the good file, by what, and all that is said.
ONE_MISTAKE = {
    "unknown key": (
        "epsilon = 2.0",
        "epsilon = 2.0\nclipping_nrom = 2",
        ["my.toml:20: privacy.clipping_nrom: unknown key. Did you mean clipping_norm?"],
    ),
    "unknown key, nothing near": (
        "every = 2",
        "xyz = 2",
        ["my.toml:22: evaluation.xyz: unknown key. Known here: on, every, groups, edges."],
    ),
    "unknown section": (
        "[evaluation]",
        "[evalution]",
        ["my.toml:21: evalution: unknown key. Did you mean evaluation?"],
    ),
    "key in the wrong section": (
        "batch_size = 4",
        "rounds = 4",
        ["my.toml:9: training.rounds: unknown key. It belongs in [server]."],
    ),
    "key of another sampler": (
        "rate = 0.1",
        "rate = 0.1\ncohort = 5",
        [
            'my.toml:16: sampling.cohort: has no effect with name = "poisson". '
            'Remove it, or set name = "fixed" or name = "separated".'
        ],
    ),
    "momentum without momentum": (
        'optimizer = "adam"',
        'optimizer = "sgd"\nmomentum = 0.5',
        [
            'my.toml:13: server.momentum: has no effect with optimizer = "sgd". '
            'Remove it, or set optimizer = "momentum".'
        ],
    ),
    "cap on participations under central": (
        "epsilon = 2.0",
        "epsilon = 2.0\nmax_participations = 3",
        [
            'my.toml:20: privacy.max_participations: has no effect with trust = "central". '
            'Remove it, or set trust = "distributed" or trust = "local".'
        ],
    ),
    "noise draw under central": (
        "epsilon = 2.0",
        'epsilon = 2.0\nnoise_draw = "client"',
        [
            'my.toml:20: privacy.noise_draw: has no effect with trust = "central". '
            'Remove it, or set trust = "distributed" or trust = "local".'
        ],
    ),
    "budget under none": (
        'trust = "central"',
        'trust = "none"',
        [
            'my.toml:19: privacy.epsilon: has no effect with trust = "none". '
            'Remove it, or set trust = "central" or trust = "distributed" or trust = "local".',
            'my.toml:20: privacy.delta: has no effect with trust = "none". '
            'Remove it, or set trust = "central" or trust = "distributed" or trust = "local".',
        ],
    ),
    "text for a number": (
        "rounds = 10",
        'rounds = "ten"',
        ['my.toml:11: server.rounds: "ten" is text, a whole number is needed. The number of rounds.'],
    ),
    "fraction for a whole number": (
        "rounds = 10",
        "rounds = 10.0",
        [
            "my.toml:11: server.rounds: 10.0 is a number with a decimal point, a whole number is needed. "
            "The number of rounds."
        ],
    ),
    "truth for a number": (
        "rate = 0.1",
        "rate = true",
        [
            "my.toml:15: sampling.rate: true is a yes-or-no value, a number is needed. "
            "The probability that a client joins a round."
        ],
    ),
    "number for a word": (
        'name = "digits"',
        "name = 3",
        [
            "my.toml:4: data.name: 3 is a whole number, text in quotes is needed. "
            'One of "digits", "synthetic", "purchase-like", "npz", "table", "text", "flwr-datasets", "on-nodes".'
        ],
    ),
    "number for a list": (
        "hidden = [20, 10]",
        "hidden = 20",
        [
            "my.toml:7: model.hidden: 20 is a whole number, a list is needed. "
            'The sizes of the hidden layers, such as [200]; without any use the model "logistic".'
        ],
    ),
    "wrong element of a list": (
        "hidden = [20, 10]",
        'hidden = [\n20,\n"ten"]',
        [
            'my.toml:9: model.hidden[1]: "ten" is text, a whole number is needed. '
            'The sizes of the hidden layers, such as [200]; without any use the model "logistic".'
        ],
    ),
    "no hidden layer": (
        "hidden = [20, 10]",
        "hidden = []",
        [
            "my.toml:7: model.hidden: the list is empty, at least one element is needed. "
            'The sizes of the hidden layers, such as [200]; without any use the model "logistic".'
        ],
    ),
    "batch size": (
        "batch_size = 4",
        'batch_size = "al"',
        [
            'my.toml:9: training.batch_size = "al": must be "all" or a whole number of at least 1. '
            'The records of one step; "all" makes one step of them.'
        ],
    ),
    "number for a section": (
        "[evaluation]\nevery = 2\n",
        "[[evaluation]]\nevery = 2\n",
        [
            "my.toml:21: evaluation: [{every = 2}] is a list, a section is needed. "
            "Write [evaluation] on a line of its own."
        ],
    ),
    "unknown data set": (
        'name = "digits"',
        'name = "digit"',
        ['my.toml:4: data.name = "digit": unknown data set. Did you mean "digits"?'],
    ),
    "unknown model": (
        'name = "mlp"',
        'name = "cmn"',
        ['my.toml:6: model.name = "cmn": unknown model. Did you mean "cnn"?'],
    ),
    "convolutions without images": (
        'name = "digits"\n[model]\nname = "mlp"',
        'name = "synthetic"\nrecords = 1000\n[model]\nname = "cnn"',
        [
            'my.toml:7: model.name = "cnn": needs square images, and the records of data set "synthetic" are '
            'none. Use name = "logistic" or name = "mlp", or data.name = "digits".'
        ],
    ),
    "too many convolutions": (
        'name = "mlp"',
        'name = "cnn"\nchannels = [1, 1, 1, 1]',
        [
            "my.toml:7: model.channels = [1, 1, 1, 1]: nothing is left of images of 8 x 8 pixels that are "
            "halved so often. At most 3 entries."
        ],
    ),
    "scattering without images": (
        'name = "digits"\n[model]\nname = "mlp"',
        'name = "synthetic"\nrecords = 1000\n[model]\nfeatures = "scatternet"\nname = "cnn"',
        [
            'my.toml:7: model.features = "scatternet": needs square images, and the records of data set '
            '"synthetic" are none. Remove it, or take data with the shape of square images, such as (64,), '
            "(28, 28) or (32, 32, 3)."
        ],
    ),
    "unknown features": (
        'name = "mlp"',
        'name = "mlp"\nfeatures = "scatnet"',
        ['my.toml:7: model.features = "scatnet": unknown features. Did you mean "scatternet"?'],
    ),
    "too many convolutions of scattering coefficients": (
        'name = "mlp"',
        'name = "cnn"\nfeatures = "scatternet"\nchannels = [1, 1]',
        [
            "my.toml:8: model.channels = [1, 1]: nothing is left of images of 2 x 2 pixels that are halved so "
            "often. At most 1 entries."
        ],
    ),
    "huge layers on scattering coefficients": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "mlp"\nfeatures = "scatternet"\nhidden = [1_000_000, 900]',
        [
            "my.toml:8: model.hidden = [1000000, 900]: makes more than 1,000,000,000 parameters. Take smaller "
            "layers."
        ],
    ),
    "even kernels": (
        'name = "mlp"',
        'name = "cnn"\nkernel_size = 4',
        [
            "my.toml:7: model.kernel_size = 4: must be an odd number from 1 to 99. The side of the "
            "convolutions' kernels; padding with zeros keeps the image's size."
        ],
    ),
    "huge kernels": (
        'name = "mlp"',
        'name = "cnn"\nchannels = [10_000, 1_000]\nkernel_size = 99',
        [
            "my.toml:7: model.channels = [10000, 1000]: makes more than 1,000,000,000 parameters. "
            "Take smaller layers."
        ],
    ),
    "huge convolutions": (
        'name = "mlp"',
        'name = "cnn"\nchannels = [10_000, 10_000, 10_000]',
        [
            "my.toml:7: model.channels = [10000, 10000, 10000]: makes more than 1,000,000,000 parameters. "
            "Take smaller layers."
        ],
    ),
    "convolutions of many records at once": (
        'name = "digits"\n[model]\nname = "mlp"\nhidden = [20, 10]\n[training]\nbatch_size = 4',
        'name = "digits"\npartition = "iid"\nclients = 2\n[model]\nname = "cnn"\nchannels = [10_000]\nhidden = []',
        [
            'my.toml: training.batch_size = "all": one client holds 460,160,000 numbers between the layers of '
            "its model, about 14 GB. Take smaller batches or layers."
        ],
    ),
    "single answers of many clients in one message": (
        'name = "digits"\n[model]\nname = "mlp"\nhidden = [20, 10]\n[training]\nbatch_size = 4',
        'name = "digits"\n[federation]\nobserve = "each"\n[model]\nname = "mlp"\nhidden = [10_000]',
        [
            "my.toml:5: federation.chunk_size = 1024: a message with the answers of 1024 clients, of 750,010 "
            "parameters each, takes about 23 GB. At most 133."
        ],
    ),
    "code without a factory": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "code"',
        [
            'my.toml:5: model.factory: missing. Add factory = "mymodels:make". '
            'The function that makes the model, as "package.module:function".'
        ],
    ),
    "factory of another form": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "code"\nfactory = "my models.make"',
        [
            'my.toml:7: model.factory = "my models.make": must be of the form "package.module:function". '
            'The function that makes the model, as "package.module:function".'
        ],
    ),
    "options that the data says": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "code"\nfactory = "a.b:c"\noptions = {classes = 3}',
        [
            "my.toml:8: model.options = {classes = 3}: may not have classes: the data says it. "
            "What the function gets by keyword besides features and classes."
        ],
    ),
    "options that no file can keep": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "code"\nfactory = "a.b:c"\n[model.options]\nwhen = 2024-01-01',
        [
            "my.toml:8: model.options = {when = 2024-01-01}: may hold finite numbers, texts, yes-or-no values "
            "and lists. What the function gets by keyword besides features and classes."
        ],
    ),
    "options that are no section": (
        'name = "mlp"\nhidden = [20, 10]',
        'name = "code"\nfactory = "a.b:c"\noptions = 3',
        [
            "my.toml:8: model.options = 3: must be a section: options = {width = 32}, or [model.options]. "
            "What the function gets by keyword besides features and classes."
        ],
    ),
    "momentum of one": (
        "batch_size = 4",
        "momentum = 1.0",
        [
            "my.toml:9: training.momentum = 1.0: must be at least 0 and below 1. "
            "The share of the last step that is kept; it starts anew in each round."
        ],
    ),
    "negative weight decay": (
        "batch_size = 4",
        "weight_decay = -1e-4",
        [
            "my.toml:9: training.weight_decay = -0.0001: must be at least 0. "
            "Times the weights, added to the gradient; such as 1e-4."
        ],
    ),
    "FedProx by another name": (
        "batch_size = 4",
        "proximl = 0.1",
        ["my.toml:9: training.proximl: unknown key. Did you mean proximal?"],
    ),
    "unknown optimizer": (
        'optimizer = "adam"',
        'optimizer = "adamw"',
        ['my.toml:12: server.optimizer = "adamw": unknown optimizer. Did you mean "adam"?'],
    ),
    "unknown sampler": (
        'name = "poisson"',
        'name = "Poison"',
        ['my.toml:14: sampling.name = "Poison": unknown sampler. Did you mean "poisson"?'],
    ),
    "unknown trust model": (
        'trust = "central"',
        'trust = "centralised"',
        ['my.toml:17: privacy.trust = "centralised": unknown trust model. Did you mean "central"?'],
    ),
    "unknown mechanism": (
        "epsilon = 2.0",
        'epsilon = 2.0\nmechanism = "gausian"',
        ['my.toml:20: privacy.mechanism = "gausian": unknown mechanism. Did you mean "gaussian"?'],
    ),
    "shares of a cohort of random size": (
        'trust = "central"',
        'trust = "distributed"',
        [
            'my.toml:14: sampling.name = "poisson": under trust "distributed" the shares of noise and the modulus '
            "are made for a known number of clients, and a Poisson cohort has none; its secrecy would amplify "
            'nothing here. Use sampling "fixed" or "all".'
        ],
    ),
    "unknown unit": (
        "epsilon = 2.0",
        'epsilon = 2.0\nunit = "record"',
        ['my.toml:20: privacy.unit = "record": unknown unit. Known here: "client", "example".'],
    ),
    "missing key": (
        "rounds = 10\n",
        "",
        ["my.toml:10: server.rounds: missing. Add rounds = 100. The number of rounds."],
    ),
    "missing name of a section": (
        'name = "poisson"\n',
        "",
        [
            'my.toml:13: sampling.name: missing. Add name = "poisson" or "fixed" or "all" or "separated" or "cyclic-poisson".'
        ],
    ),
    "missing section": (
        '[sampling]\nname = "poisson"\nrate = 0.1\n',
        "",
        [
            "my.toml: sampling: the section is missing. "
            'Add [sampling] with name = "poisson" or "fixed" or "all" or "separated" or "cyclic-poisson".'
        ],
    ),
    "missing server": (
        '[server]\nrounds = 10\noptimizer = "adam"\n',
        "",
        ["my.toml: server: the section is missing. Add [server] with rounds = 100. The number of rounds."],
    ),
    "epsilon of zero": (
        "epsilon = 2.0",
        "epsilon = 0",
        [
            "my.toml:19: privacy.epsilon = 0: must be above 0. "
            "The privacy budget: smaller is more private, 1 to 8 is usual."
        ],
    ),
    "epsilon infinite": (
        "epsilon = 2.0",
        "epsilon = inf",
        [
            "my.toml:19: privacy.epsilon = inf: a finite number is needed. "
            "The privacy budget: smaller is more private, 1 to 8 is usual."
        ],
    ),
    "learning rate not a number": (
        "batch_size = 4",
        "learning_rate = nan",
        [
            "my.toml:9: training.learning_rate = nan: a finite number is needed. "
            "The step size of the client, such as 0.1."
        ],
    ),
    "delta too large": (
        "delta = 1e-5",
        "delta = 0.1",
        [
            "my.toml:20: privacy.delta = 0.1: must be above 0 and below "
            "1/(number of clients) = 1/1437 = 0.000696. 1e-05 is usual."
        ],
    ),
    "delta of zero": (
        "delta = 1e-5",
        "delta = 0",
        [
            "my.toml:20: privacy.delta = 0: must be above 0 and below "
            "1/(number of clients) = 1/1437 = 0.000696. 1e-05 is usual."
        ],
    ),
    "clipping norm": (
        "clipping_norm = 1",
        "clipping_norm = -1",
        [
            "my.toml:18: privacy.clipping_norm = -1: must be at least 1e-09. "
            "The largest L2 norm of an update, or of a record's gradient; the noise grows with it."
        ],
    ),
    "no clipping norm": (
        "clipping_norm = 1\n",
        "",
        [
            "my.toml:16: privacy.clipping_norm: missing. Add clipping_norm = 1.0. "
            "The largest L2 norm of an update, or of a record's gradient; the noise grows with it."
        ],
    ),
    "both budgets": (
        "epsilon = 2.0",
        "epsilon = 2.0\nnoise_multiplier = 4.0",
        [
            "my.toml:20: privacy.noise_multiplier: given together with epsilon, "
            "but each follows from the other. "
            "Keep epsilon to aim at a guarantee, or noise_multiplier to fix the noise."
        ],
    ),
    "no budget": (
        "epsilon = 2.0\n",
        "",
        [
            'my.toml:16: privacy.epsilon: missing: trust "central" needs a budget. '
            "Add epsilon = 2.0, or noise_multiplier = 4.0 to fix the noise instead."
        ],
    ),
    "sampling rate": (
        "rate = 0.1",
        "rate = 1.5",
        [
            "my.toml:15: sampling.rate = 1.5: must be above 0 and at most 1. "
            "The probability that a client joins a round."
        ],
    ),
    "cohort": (
        'name = "poisson"\nrate = 0.1',
        'name = "fixed"\ncohort = 1438',
        [
            "my.toml:15: sampling.cohort = 1438: larger than the population of 1437 clients. "
            'At most 1437, or sampling.name = "all" for everyone.'
        ],
    ),
    "fixed cohorts without an accountant": (
        'name = "poisson"\nrate = 0.1\n[privacy]',
        'name = "fixed"\ncohort = 10\n[privacy]\nadjacency = "add-remove"',
        [
            'my.toml:17: privacy.adjacency = "add-remove": no accountant supports it together with '
            'trust "central" and sampling "fixed". '
            'Use adjacency = "replace-one" or "zero-out", or sampling name = "poisson".'
        ],
    ),
    "more clients than records": (
        'name = "digits"',
        'name = "digits"\npartition = "iid"\nclients = 1438',
        [
            "my.toml:6: data.clients = 1438: more clients than the 1437 records that they can own. "
            "At most 1437."
        ],
    ),
    "more clients than private records": (
        'name = "digits"',
        'name = "digits"\npartition = "iid"\nclients = 1400\npublic_fraction = 0.1',
        [
            "my.toml:6: data.clients = 1400: more clients than the 1293 records that they can own. "
            "At most 1293."
        ],
    ),
    "clients without a partition": (
        'name = "digits"',
        'name = "digits"\nclients = 100',
        [
            'my.toml:5: data.clients: has no effect with partition = "one-per-example". '
            'Remove it, or set partition = "iid" or partition = "dirichlet" or partition = "by-label" '
            'or partition = "fixed-records".'
        ],
    ),
    "iid without clients": (
        'name = "digits"',
        'name = "digits"\npartition = "iid"',
        [
            'my.toml:3: data.clients: missing: partition "iid" needs it. '
            "Add clients = 100. The number of clients."
        ],
    ),
    "all data public": (
        'name = "digits"',
        'name = "digits"\npublic_fraction = 0.9999',
        [
            "my.toml:5: data.public_fraction = 0.9999: leaves none of 1437 training records to clients. "
            "Make it smaller."
        ],
    ),
    "no public part": (
        "every = 2",
        'on = "public"',
        [
            'my.toml:22: evaluation.on = "public": there is no public part of the data to evaluate on. '
            'Set data.public_fraction = 0.1, or on = "test".'
        ],
    ),
    "more hosts than clients": (
        "[evaluation]",
        "[federation]\nhosts = 1438\n[evaluation]",
        ["my.toml:22: federation.hosts = 1438: more hosts than the 1437 clients. At most 1437."],
    ),
    "negative seed": (
        "seed = 1",
        "seed = -1",
        ["my.toml:2: seed = -1: must be at least 0. The root of all randomness of a run, such as 1."],
    ),
    "name of a run": (
        'name = "good"',
        'name = "../up"',
        [
            'my.toml:1: name = "../up": must be letters, digits and hyphens, at most 64. '
            "The run's folder carries the name."
        ],
    ),
    "huge layers": (
        "hidden = [20, 10]",
        "hidden = [1_000_001]",
        [
            "my.toml:7: model.hidden[0] = 1000001: must be at most 1000000. "
            'The sizes of the hidden layers, such as [200]; without any use the model "logistic".'
        ],
    ),
    "huge layers together": (
        "hidden = [20, 10]",
        "hidden = [100_000, 100_000]",
        [
            "my.toml:7: model.hidden = [100000, 100000]: makes more than 1,000,000,000 parameters. "
            "Take smaller layers."
        ],
    ),
    "huge data": (
        'name = "digits"',
        'name = "synthetic"\nrecords = 1_000_000_001',
        [
            "my.toml:5: data.records = 1000000001: must be at least 1 and at most 1000000000. "
            "The number of training records."
        ],
    ),
    "huge data by its features": (
        'name = "digits"',
        'name = "synthetic"\nrecords = 90_000\nfeatures = 1_000_000',
        [
            "my.toml:5: data.records = 90000: with 1000000 features these are more than "
            "10,000,000,000 numbers. Take fewer records or features."
        ],
    ),
}


@pytest.mark.parametrize("case", ONE_MISTAKE)
def test_one_mistake(case: str) -> None:
    old, new, said = ONE_MISTAKE[case]
    assert complaints(change(old, new)) == said


def test_noise_of_a_sum_is_not_seen_message_by_message() -> None:
    text = (
        change('trust = "central"', 'trust = "local"\nnoise_draw = "sum"')
        + '[federation]\nobserve = "each"\n'
    )
    assert complaints(text) == [
        'my.toml:18: privacy.noise_draw = "sum": one draw of noise for a sum cannot be seen '
        'in single messages, and federation.observe = "each" shows these: each needs a draw of its own. '
        'Use noise_draw = "client", or observe = "sum".'
    ]


def test_many_mistakes_are_told_at_once() -> None:
    text = """name = "several"
sed = 1
[data]
name = "digitz"
partion = "iid"
public_fraction = 1
[model]
name = "logistic"
hidden = [3]
[server]
rounds = "ten"
learning_rate = -1
[sampling]
name = "fixed"
cohort = 5000
[privacy]
trust = "central"
adjacency = "add-remove"
epsilon = -1
noise_multiplier = 2
delta = 2
clipping_norm = 0
[federation]
hosts = 1.5
[compare]
trusts = ["none", "none"]
epsilons = []
seeds = [1, -1]
[compare.local]
server.round = 3
sever.rounds = 3
privacy.epsilon = 3
[compare.centrel]
"""
    assert [line.split(". ")[0] for line in complaints(text)] == [
        "my.toml:2: sed: unknown key",
        'my.toml:4: data.name = "digitz": unknown data set',
        "my.toml:5: data.partion: unknown key",
        "my.toml:6: data.public_fraction = 1: must be at least 0 and below 1",
        'my.toml:9: model.hidden: has no effect with name = "logistic"',
        'my.toml:11: server.rounds: "ten" is text, a whole number is needed',
        "my.toml:12: server.learning_rate = -1: must be above 0",
        'my.toml:18: privacy.adjacency = "add-remove": no accountant supports it together with '
        'trust "central" and sampling "fixed"',
        "my.toml:19: privacy.epsilon = -1: must be above 0",
        "my.toml:20: privacy.noise_multiplier: given together with epsilon, but each follows from the other",
        "my.toml:21: privacy.delta = 2: must be above 0 and below 1/(number of clients)",
        "my.toml:22: privacy.clipping_norm = 0: must be at least 1e-09",
        "my.toml:24: federation.hosts: 1.5 is a number with a decimal point, a whole number is needed",
        'my.toml:26: compare.trusts = ["none", "none"]: the list names something twice',
        "my.toml:27: compare.epsilons: the list is empty, at least one element is needed",
        "my.toml:28: compare.seeds[1] = -1: must be at least 0",
        "my.toml:30: compare.local.server.round: unknown key",
        "my.toml:31: compare.local.sever: unknown key",
        "my.toml:32: compare.local.privacy.epsilon: the comparison sets it, alike for all trust models",
        "my.toml:33: compare.centrel: unknown key",
    ]


def test_a_wrong_word_does_not_hide_the_section_around_it() -> None:
    text = change('trust = "central"\nclipping_norm = 1', 'trust = "centrl"\nclipping_norm = 0\nxyz = 1')
    assert [line.split(":")[1] for line in complaints(text)] == ["17", "18", "19"]


def test_a_broken_section_does_not_hide_what_depends_on_another() -> None:
    text = change("rate = 0.1", "rate = 7").replace("delta = 1e-5", "delta = 0.01")
    assert [line.split(" = ")[0] for line in complaints(text)] == [
        "my.toml:15: sampling.rate",
        "my.toml:20: privacy.delta",
    ]


@pytest.mark.parametrize("partition", ["one-per-example", "iid"])
@pytest.mark.parametrize("trust", ["none", "local"])
def test_fixed_cohorts_are_fine_without_amplification(trust: str, partition: str) -> None:
    clients = "clients = 50\n" if partition == "iid" else ""
    budget = "clipping_norm = 1.0\nepsilon = 1.0\n" if trust == "local" else ""
    text = (
        f'name = "f"\n[data]\nname = "digits"\npartition = "{partition}"\n{clients}'
        f'[model]\nname = "logistic"\n[server]\nrounds = 3\n[sampling]\nname = "fixed"\ncohort = 50\n'
        f'[privacy]\ntrust = "{trust}"\nadjacency = "replace-one"\n{budget}'
    )
    assert Scenario.from_text(text).population == (50 if partition == "iid" else Digits.train_records)


@pytest.mark.parametrize(
    ("data", "population"),
    [
        ('name = "digits"', 1437),
        ('name = "digits"\npublic_fraction = 0.1', 1437 - 144),
        ('name = "digits"\npartition = "iid"\nclients = 10\npublic_fraction = 0.1', 10),
        ('name = "synthetic"\nrecords = 1000\npublic_fraction = 0.25', 750),
    ],
)
def test_population_needs_no_data(data: str, population: int) -> None:
    assert Scenario.from_text(change('name = "digits"', data)).population == population


@pytest.mark.parametrize(("clients", "usual"), [(1437, "1e-05"), (99_999, "1e-06"), (1_000_000, "1e-07")])
def test_the_usual_delta_goes_with_the_population(clients: int, usual: str) -> None:
    text = change('name = "digits"', f'name = "synthetic"\nrecords = {clients}').replace("1e-5", "0.5")
    assert complaints(text)[0].endswith(f"{usual} is usual.")
    assert Scenario.from_text(text, overrides=[f"privacy.delta={usual}"])


class TestFiles:
    """Files that are no scenario."""

    def said(self, path: Path) -> str:
        with pytest.raises(ScenarioError) as caught:
            Scenario.read(path)
        return str(caught.value).replace(str(path), "FILE")

    def test_missing(self, tmp_path: Path) -> None:
        assert self.said(tmp_path / "no.toml") == (
            "FILE: no such file. `fedprivacy scenarios` lists what is ready to run."
        )

    def test_folder(self, tmp_path: Path) -> None:
        assert self.said(tmp_path) == "FILE: a folder, not a file. Name the .toml file in it."

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_no_permission(self, tmp_path: Path) -> None:
        file = tmp_path / "secret.toml"
        file.write_text(GOOD)
        file.chmod(0)
        assert self.said(file) == "FILE: may not be read. Ask for the right to read it."

    def test_not_utf8(self, tmp_path: Path) -> None:
        file = tmp_path / "latin.toml"
        file.write_bytes(b'name = "x"\n# caf\xe9\n')
        assert self.said(file) == "FILE:2: not text in UTF-8. Save it as UTF-8 text; is this the right file?"

    def test_too_large(self, tmp_path: Path) -> None:
        file = tmp_path / "large.toml"
        file.write_text(GOOD + "#" * 2**20)
        assert (
            self.said(file) == "FILE: larger than 1 MB. A scenario is a short text; is this the right file?"
        )

    def test_impossible_name(self) -> None:
        with pytest.raises(ScenarioError, match=r"cannot be read: File name too long\. Check the name\."):
            Scenario.read("x" * 5000)
        with pytest.raises(ScenarioError, match="cannot be read: embedded null byte"):
            Scenario.read("a\0b")

    @pytest.mark.parametrize("text", ["", "\n \n", "# only a comment\n"])
    def test_empty(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "empty.toml"
        file.write_text(text)
        assert self.said(file) == (
            "FILE: the file is empty. `fedprivacy scenarios` lists ready ones to start from."
        )

    def test_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        file = tmp_path / "notepad.toml"
        file.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
        assert Scenario.read(file) == Scenario.from_text(GOOD)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a = 1\nb = ten\n", 'my.toml:2: not TOML: invalid value in "b = ten".'),
            (
                "a = 1\n\n[b\n",
                "my.toml:3: not TOML: expected ']' at the end of a table declaration in \"[b\".",
            ),
            ("a = 1\na = 2", 'my.toml:2: not TOML: cannot overwrite a value in "a = 2".'),
            ("a = 1\nb = ", 'my.toml:2: not TOML: invalid value in "b =".'),
            ("a: 1\n", "my.toml:1: not TOML: expected '=' after a key in a key/value pair in \"a: 1\"."),
        ],
    )
    def test_not_toml(self, text: str, said: str) -> None:
        remedy = " A line is `key = value` or `[section]`, and text stands in quotes."
        assert complaints(text) == [said + remedy]

    @pytest.mark.parametrize("text", ["a = " + "[" * 9999 + "]" * 9999, "a = " + "9" * 5000])
    def test_made_to_break_the_reader(self, text: str) -> None:
        assert len(complaints(text)) == 1


class TestOverrides:
    """`--set a.b=value`."""

    def test_values_are_toml_or_text(self) -> None:
        scenario = Scenario.from_text(
            GOOD,
            overrides=[
                "server.rounds=3",
                "model.hidden=[7]",
                "name=other",
                'model.activation="tanh"',
                "seed = 5",
            ],
        )
        assert (scenario.server.rounds, scenario.name, scenario.seed) == (3, "other", 5)
        given = scenario.model.model_dump(exclude_none=True)
        assert given == {"name": "mlp", "hidden": (7,), "activation": "tanh"}

    def test_the_last_one_holds(self) -> None:
        assert Scenario.from_text(GOOD, overrides=["seed=5", "seed=6"]).seed == 6
        assert complaints(GOOD, "server.rounds=-5", "server.rounds=-6") == [
            "--set server.rounds=-6: must be at least 1. The number of rounds."
        ]

    def test_another_partition_takes_the_number_of_clients_along(self) -> None:
        iid = change('name = "digits"', 'name = "digits"\npartition = "iid"\nclients = 1437')
        assert Scenario.from_text(iid).population == 1437
        assert Scenario.from_text(iid, overrides=["data.partition=one-per-example"]).data.clients is None
        [line] = complaints(iid, "data.partition=one-per-example", "data.clients=9")
        assert line.startswith("--set data.clients=9: has no effect")

    def test_a_value_cannot_smuggle_in_another_key(self) -> None:
        scenario = Scenario.from_text(GOOD, overrides=["description=1\nseed = 9"])
        assert (scenario.description, scenario.seed) == ("1\nseed = 9", 1)

    def test_mistakes(self) -> None:
        assert complaints(
            change("rate = 0.1", "rate = 2"),
            "server.rounds=ten",
            "privacy.epsilon=-1",
            "privacy.epsilom=1",
            "nonsense",
            "=3",
            "a b=3",
            "name.first=x",
            "evaluation={every = 0}",
        ) == [
            "--set nonsense: not of the form key=value. Write, for instance, --set server.rounds=10.",
            "--set =3: not of the form key=value. Write, for instance, --set server.rounds=10.",
            "--set a b=3: not of the form key=value. Write, for instance, --set server.rounds=10.",
            "--set name.first=x: leads through a key that is not a section.",
            '--set server.rounds=ten: "ten" is text, a whole number is needed. The number of rounds.',
            "--set privacy.epsilom=1: unknown key. Did you mean epsilon?",
            "--set privacy.epsilon=-1: must be above 0. "
            "The privacy budget: smaller is more private, 1 to 8 is usual.",
            "--set evaluation={every = 0}: evaluation.every = 0: must be at least 1. "
            "The rounds from one measurement to the next.",
            "my.toml:15: sampling.rate = 2: must be above 0 and at most 1. "
            "The probability that a client joins a round.",
        ]

    def test_contradictions(self) -> None:
        assert complaints(GOOD, "evaluation=3", "evaluation.every=3")[0] == (
            "--set evaluation=3 --set evaluation.every=3: these contradict each other."
        )

    def test_another_kind_of_section_takes_the_keys_of_the_old_along(self) -> None:
        scenario = Scenario.from_text(
            GOOD,
            overrides=[
                "sampling.name=fixed",
                "sampling.cohort=9",
                "server.optimizer=sgd",
                "model.name=logistic",
            ],
        )
        assert scenario.sampling.model_dump() == {"name": "fixed", "cohort": 9}
        assert scenario.model.model_dump(exclude_none=True) == {"name": "logistic"}

    def test_turning_privacy_off_and_local(self) -> None:
        off = Scenario.from_text(GOOD, overrides=["privacy.trust=none"])
        assert (off.privacy.trust, off.privacy.epsilon, off.privacy.clipping_norm) == ("none", None, 1.0)
        local = Scenario.from_text(GOOD, overrides=["privacy.trust=local"])
        assert (local.privacy.epsilon, local.privacy.max_participations) == (2.0, 10)

    def test_noise_replaces_the_budget(self) -> None:
        scenario = Scenario.from_text(GOOD, overrides=["privacy.noise_multiplier=3"])
        assert (scenario.privacy.epsilon, scenario.privacy.noise_multiplier) == (None, 3.0)

    def test_what_was_set_is_never_dropped(self) -> None:
        assert complaints(GOOD, "sampling.rate=0.2", "sampling.name=all") == [
            '--set sampling.rate=0.2: has no effect with name = "all". Remove it, or set name = "poisson" or name = "cyclic-poisson".'
        ]
        assert complaints(GOOD, "privacy.epsilon=1", "privacy.noise_multiplier=1")[0].startswith(
            "--set privacy.noise_multiplier=1: given together with epsilon"
        )

    def test_a_typo_in_the_file_is_no_key_of_another_kind(self) -> None:
        said = complaints(change("rate = 0.1", "rte = 0.1"), "sampling.name=all")
        assert said == ["my.toml:15: sampling.rte: unknown key. Known here: name."]


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(st.characters(codec="utf-8"), max_size=10),
    st.sampled_from(["digits", "fixed", "local", "none", "iid", "all", "each", "public", "momentum", "sum"]),
    st.dates(),
    st.lists(st.integers(-2, 2) | st.sampled_from(["none", "local"]), max_size=3),
    st.dictionaries(
        st.sampled_from(["name", "server", "sampling", "rounds", "rate"]), st.integers(), max_size=2
    ),
)
KEYS = """
    name seed data data.name data.partition data.clients data.records data.public_fraction model.name
    model.hidden training training.batch_size training.epochs server.rounds server.optimizer server.momentum
    sampling sampling.name sampling.rate sampling.cohort privacy privacy.trust privacy.epsilon privacy.delta
    privacy.noise_multiplier privacy.adjacency privacy.max_participations privacy.noise_draw privacy.unit
    federation.observe federation.hosts evaluation.on compare compare.trusts compare.epsilons compare.seeds
    compare.local compare.local.server compare.local.server.rounds compare.central.sampling.name
    compare.none.privacy.trust compare.none.privacy xyz xyz.abc
"""


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS.split()), VALUES, min_size=1, max_size=4))
def test_whatever_is_written_is_a_scenario_or_is_explained(changes: dict[str, Any]) -> None:
    """No other error, no words of pydantic, a place for each problem, whether in the file or set."""
    overrides = [f"{key}={_toml(value)}" for key, value in changes.items()]
    found = scenario_or_error(GOOD, overrides)
    if isinstance(found, Scenario):
        assert Scenario.from_text(found.to_toml()) == found
    else:
        assert found.problems
        assert "Input should" not in str(found)
        assert "Value error" not in str(found)
        for problem in found.problems:
            assert problem.key.startswith("--set ") or problem.file


def scenario_or_error(text: str, overrides: list[str]) -> Scenario | ScenarioError:
    try:
        return Scenario.from_text(text, overrides=overrides)
    except ScenarioError as error:
        return error


def _toml(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return tomli_w.dumps({"value": value}).partition(" = ")[2].strip("\n")


def test_local_trust_cannot_promise_to_hide_who_answers() -> None:
    text = (
        'name = "f"\n[data]\nname = "digits"\n[model]\nname = "logistic"\n[server]\nrounds = 3\n[sampling]\n'
        'name = "all"\n[privacy]\ntrust = "local"\nadjacency = "add-remove"\nclipping_norm = 1.0\nepsilon = 1.0\n'
    )
    with pytest.raises(ScenarioError, match=r"privacy.adjacency = .* the server sees who answers"):
        Scenario.from_text(text)


def test_a_rate_beyond_the_accountants_is_refused() -> None:
    text = (
        'name = "f"\n[data]\nname = "digits"\n[model]\nname = "logistic"\n[server]\nrounds = 3\n[sampling]\n'
        'name = "poisson"\nrate = 1e-13\n[privacy]\ntrust = "none"\n'
    )
    with pytest.raises(ScenarioError, match=r"sampling.rate = 1e-13: below 1e-12"):
        Scenario.from_text(text)


def test_a_misspelt_key_is_told_once_and_not_also_as_missing() -> None:
    text = """
nam = "x"
[dat]
name = "digits"
[model]
nme = "logistic"
[server]
roundz = 3
[sampling]
name = "poisson"
rte = 0.5
[privacy]
trust = "central"
clip_norm = 1.0
epsilo = 2.0
"""
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text)
    assert [(p.key, p.remedy) for p in caught.value.problems] == [
        ("nam", "Did you mean name?"),
        ("dat", "Did you mean data?"),
        ("model.nme", "Did you mean name?"),
        ("server.roundz", "Did you mean rounds?"),
        ("sampling.rte", "Did you mean rate?"),
        ("privacy.clip_norm", "Did you mean clipping_norm?"),
        ("privacy.epsilo", "Did you mean epsilon?"),
    ]


def test_a_default_is_not_judged_in_place_of_the_key_that_was_misspelt(base_text: str) -> None:
    text = base_text.replace("delta = 1e-3", "detla = 1e-7").replace("records = 60\n", "records = 600_000\n")
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text.replace('partition = "iid"\nclients = 12\n', ""))
    assert [p.key for p in caught.value.problems] == ["privacy.detla"]


def test_a_key_set_into_an_unknown_section_is_told_at_its_option(base_text: str) -> None:
    with pytest.raises(ScenarioError, match=r"^--set serve\.rounds=3: unknown key\. Did you mean server\?$"):
        Scenario.from_text(base_text, overrides=["serve.rounds=3"])


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (("privacy.adjacency=add-remove",), "a client that leaves takes its share of the noise along"),
        (("privacy.unit=example", "privacy.adjacency=zero-out"), "none to gradients of records"),
        (("sampling.name=poisson", "sampling.rate=0.5"), "a Poisson cohort has none"),
        (("privacy.min_survivors=13",), "no round has more than 12 clients. At most 12."),
        (
            ("sampling={name='fixed', cohort=5}", "privacy.min_survivors=6"),
            "no round has more than 5 clients",
        ),
        (
            ("privacy.colluders=12",),
            "a sum may have 12 clients, and without honest ones nothing in it is private",
        ),
        (("privacy.colluders=5", "privacy.min_survivors=5"), "At most 4."),
        (("federation.observe=each",), "a secure sum hides single messages"),
        (("privacy.clipping_quantile=0.5",), 'has no effect with trust = "distributed"'),
        (("privacy.bands=2",), 'has no effect with trust = "distributed"'),
        (("privacy.encoding=signs",), 'has no effect with trust = "distributed"'),
        (("privacy.mechanism=gaussian",), "unknown mechanism"),
        (("privacy.bits=29",), "must be at least 2 and at most 28"),
        (("server.denoise=james-stein",), "knows Gaussian noise alone"),
    ],
)
def test_what_noise_in_shares_cannot_have(make_scenario, overrides: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(problem)):
        make_scenario("privacy.trust=distributed", *overrides)


def test_shares_have_defaults_that_follow_the_other_keys(make_scenario) -> None:
    privacy = make_scenario("privacy.trust=distributed").privacy
    shown = (
        privacy.mechanism,
        privacy.bits,
        privacy.min_survivors,
        privacy.colluders,
        privacy.max_participations,
    )
    assert shown == ("skellam", 18, None, 0, 3)
    # Another trust model takes its own mechanism, and drops the keys of this one.
    there = make_scenario("privacy.trust=distributed", "privacy.bits=20", "privacy.max_participations=2")
    for trust in ("central", "local", "none"):
        assert not hasattr(
            there.from_text(there.to_toml(), overrides=[f"privacy.trust={trust}"]).privacy, "bits"
        )
    with pytest.raises(ScenarioError, match="unknown mechanism"):
        make_scenario("privacy.mechanism=skellam")


def test_shares_are_made_for_the_survivors_of_nearly_all_rounds(make_scenario) -> None:
    def shares(*overrides: str):
        return plan_of(make_scenario("privacy.trust=distributed", *overrides)).shares

    assert (shares().clients, shares().min_survivors) == (12, 12)
    assert shares("federation.dropout=0.3").min_survivors == 3
    assert shares("federation.dropout=0.3", "privacy.min_survivors=9", "privacy.colluders=2").honest == 7
    assert shares("sampling={name='fixed', cohort=5}").clients == 5
    assert isinstance(shares("privacy.mechanism=discrete-gaussian"), DiscreteGaussian)
    with pytest.raises(InputError, match="bits = 4: too few for 12 clients"):
        shares("privacy.bits=4")
    with pytest.raises(InputError, match="the modulus has room for noise down to epsilon"):
        plan_of(make_scenario("privacy.trust=distributed", "privacy.bits=8", "privacy.epsilon=0.05"))
