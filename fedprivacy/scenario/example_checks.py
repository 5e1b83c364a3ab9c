"""What must hold between keys where the unit of privacy is a record, and how batches are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

from fedprivacy.errors import Finding
from fedprivacy.io.install_hint import install
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.values import Values

# Keys of [training] that DP-SGD alone knows, and what they are without it.
OF_EXAMPLES = {"projection": None, "averaging": False, "weighting": "clients", "trainer": "fedprivacy"}
# What a server that makes the step itself has in its optimizer, or not at all.
OF_CLIENTS = {"momentum": 0.0, "weight_decay": 0.0, "proximal": 0.0, **OF_EXAMPLES}
MAX_PLACES = 2 * 10**8  # in the batches of a round


def poisson_has_one_rate(v: Values) -> Iterator[Finding]:
    if v["training.batches"] != "poisson":
        return
    rate, size = v.given("training.rate"), v.given("training.batch_size")
    if rate == size:
        yield Finding(
            ("training", "rate"),
            "given together with batch_size, but each says how large a batch is" if rate else "missing",
            "Add rate = 0.1, the same for all clients, or batch_size = 32, a mean size for each."
            if not rate
            else "Keep one of them.",
        )


def batches_fit_memory(v: Values) -> Iterator[Finding]:
    """All batches of a client's round are drawn at once, some nine bytes for each place in them."""
    steps = v["training.steps"]
    if steps and v.population and steps * max(1, v.batch) > MAX_PLACES:
        yield Finding(
            ("training", "steps"),
            f"the batches of a client's round take {9e-9 * steps * max(1, v.batch):.0f} GB",
            "Set steps lower, with more server.rounds.",
            literal(steps),
        )


def only_examples_have(v: Values) -> Iterator[Finding]:
    if v["privacy.unit"] != "client":
        return
    for key, usual in OF_EXAMPLES.items():
        if v.given(f"training.{key}") and v[f"training.{key}"] not in (None, usual):
            yield Finding(
                ("training", key),
                'works with privacy.unit = "example" alone',
                'Remove it, or set privacy.unit = "example".',
                literal(v[f"training.{key}"]),
            )


def examples_are_on_the_cpu(v: Values) -> Iterator[Finding]:
    if v["training.device"] == "cuda" and v["privacy.unit"] == "example":
        yield Finding(
            ("training", "device"),
            'trains clients with privacy.unit = "client" alone: DP-SGD is computed on the CPU',
            'Set device = "cpu", or privacy.unit = "client".',
            literal("cuda"),
        )


def opacus_is_installed(v: Values) -> Iterator[Finding]:
    if v["training.trainer"] == "opacus" and find_spec("opacus") is None:
        yield Finding(
            ("training", "trainer"),
            f"needs the extra: {install('opacus')}",
            'Install it, or use trainer = "fedprivacy".',
            literal("opacus"),
        )


def examples_have_gaussian_noise(v: Values) -> Iterator[Finding]:
    if v["privacy.unit"] != "example" or v["privacy.trust"] != "local":
        return
    if v["privacy.mechanism"] not in (None, "gaussian"):
        yield Finding(
            ("privacy", "mechanism"),
            'randomises the messages of clients, and unit = "example" puts noise into each step on records',
            'Use mechanism = "gaussian", or unit = "client".',
            literal(v["privacy.mechanism"]),
        )
    if v["privacy.noise_draw"] == "sum":
        yield Finding(
            ("privacy", "noise_draw"),
            "a client's noise goes into its own steps, of which no sum can be drawn",
            'Use noise_draw = "client", or unit = "client".',
            literal("sum"),
        )


def batches_have_accountant(v: Values) -> Iterator[Finding]:
    if v["privacy.unit"] != "example" or v["privacy.trust"] not in ("local", "central"):
        return
    batches, adjacency = v["training.batches"], v["privacy.adjacency"]
    whole = batches == "shuffled" and v["training.batch_size"] in (None, "all")
    if adjacency == "add-remove" and batches in ("shuffled", "with-replacement") and not whole:
        yield Finding(
            ("privacy", "adjacency"),
            f"a record more or less changes every batch of training.batches = {literal(batches)}, which no "
            "accountant covers",
            'Use adjacency = "replace-one", or batches = "poisson", or batch_size = "all" with shuffled.',
            literal("add-remove"),
        )


def server_makes_one_step(v: Values) -> Iterator[Finding]:
    if (v["privacy.unit"], v["privacy.trust"]) != ("example", "central"):
        return
    batches, why = (
        v["training.batches"],
        "a server can add its noise to one step of a round, and not to others",
    )
    if batches in ("poisson", "with-replacement") and v["training.steps"] not in (None, 1):
        yield Finding(
            ("training", "steps"),
            why,
            "Set steps = 1, with more server.rounds.",
            literal(v["training.steps"]),
        )
    if batches == "shuffled" and v["training.batch_size"] not in (None, "all"):
        yield Finding(
            ("training", "batch_size"),
            why,
            'Set batch_size = "all" with epochs = 1, or batches = "poisson" with steps = 1.',
            literal(v["training.batch_size"]),
        )
    if batches == "shuffled" and v["training.epochs"] not in (None, 1):
        yield Finding(
            ("training", "epochs"),
            why,
            "Set epochs = 1, with more server.rounds.",
            literal(v["training.epochs"]),
        )
    for key, usual in OF_CLIENTS.items():
        if v[f"training.{key}"] not in (None, usual):
            yield Finding(
                ("training", key),
                'has no effect with unit = "example" and trust = "central", where the server makes the step',
                "Remove it; [server] has a learning_rate, and optimizers with momentum.",
                literal(v[f"training.{key}"]),
            )


EXAMPLE_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    poisson_has_one_rate,
    batches_fit_memory,
    only_examples_have,
    examples_are_on_the_cpu,
    opacus_is_installed,
    examples_have_gaussian_noise,
    batches_have_accountant,
    server_makes_one_step,
)
