"""Rules for records as the unit of privacy, and for how batches are drawn."""

from __future__ import annotations

from importlib.util import find_spec

from fedprivacy.io.install_hint import install
from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import NOISE_OF_STEPS_HAS_NO_SUM, NOISE_OF_STEPS_IS_GAUSSIAN, ONE_STEP
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan

# Keys of [training] for DP-SGD alone, and their values without it.
OF_EXAMPLES = {"projection": None, "averaging": False, "weighting": "clients", "trainer": "fedprivacy"}
# Keys that a server that makes the step itself has in its optimizer, or not at all.
OF_CLIENTS = {"momentum": 0.0, "weight_decay": 0.0, "proximal": 0.0, **OF_EXAMPLES}
MAX_PLACES = 2 * 10**8  # in the batches of a round


def _draws_poisson(v: Values) -> bool:
    return v["training.batches"] == "poisson"


def _gives(v: Values) -> tuple[bool, bool]:
    return v.given("training.rate"), v.given("training.batch_size")


def _places(v: Values) -> int:
    """The places in the batches of a client's round, which are drawn at once, some nine bytes for each."""
    steps = v["training.steps"]
    return steps * max(1, v.batch) if steps and v.population else 0


def _of_examples(key: str, usual: object) -> Rule[Values]:
    return Rule(
        key,
        lambda v: v["privacy.unit"] == "client" and v.given(key) and v[key] not in (None, usual),
        'works with privacy.unit = "example" alone',
        'Remove it, or set privacy.unit = "example".',
    )


def _one_record_changes_all_batches(v: Values) -> bool:
    """Whether a record more or less moves others to other batches, or changes the size of all."""
    batches = v["training.batches"]
    whole = batches == "shuffled" and v["training.batch_size"] in (None, "all")
    noisy = v["privacy.unit"] == "example" and v["privacy.trust"] in ("local", "central")
    return noisy and batches in ("shuffled", "with-replacement") and not whole


def _server_steps(v: Values) -> bool:
    """Whether the server makes the one step of a round, with its noise on the gradients of records."""
    return (v["privacy.unit"], v["privacy.trust"]) == ("example", "central")


def _one_step(key: str, batches: tuple[str, ...], allowed: object, remedy: str) -> Rule[Values]:
    def broken(v: Values) -> bool:
        return _server_steps(v) and v["training.batches"] in batches and v[key] not in (None, allowed)

    return Rule(key, broken, ONE_STEP, remedy)


def _of_clients(key: str, usual: object) -> Rule[Values]:
    return Rule(
        key,
        lambda v: _server_steps(v) and v[key] not in (None, usual),
        'has no effect with unit = "example" and trust = "central", where the server makes the step',
        "Remove it; [server] has a learning_rate, and optimizers with momentum.",
    )


EXAMPLE_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "training.rate",
        lambda v: _draws_poisson(v) and _gives(v) == (True, True),
        "given together with batch_size, but each says how large a batch is",
        "Keep one of them.",
        shown=False,
    ),
    Rule(
        "training.rate",
        lambda v: _draws_poisson(v) and _gives(v) == (False, False),
        "missing",
        "Add rate = 0.1, the same for all clients, or batch_size = 32, a mean size for each.",
        shown=False,
    ),
    Rule(
        "training.steps",
        lambda v: _places(v) > MAX_PLACES,
        lambda v: f"the batches of a client's round take {9e-9 * _places(v):.0f} GB",
        "Set steps lower, with more server.rounds.",
    ),
    *(_of_examples(f"training.{key}", usual) for key, usual in OF_EXAMPLES.items()),
    Rule(
        "training.device",
        {"training.device": "cuda", "privacy.unit": "example"},
        'trains clients with privacy.unit = "client" alone: DP-SGD is computed on the CPU',
        'Set device = "cpu", or privacy.unit = "client".',
    ),
    Rule(
        "training.trainer",
        lambda v: v["training.trainer"] == "opacus" and find_spec("opacus") is None,
        lambda v: f"needs the extra: {install('opacus')}",
        'Install it, or use trainer = "fedprivacy".',
    ),
    of_plan(NOISE_OF_STEPS_IS_GAUSSIAN),
    of_plan(NOISE_OF_STEPS_HAS_NO_SUM),
    Rule(
        "privacy.adjacency",
        lambda v: v["privacy.adjacency"] == "add-remove" and _one_record_changes_all_batches(v),
        lambda v: (
            f"a record more or less changes every batch of training.batches = "
            f"{literal(v['training.batches'])}, which no accountant covers"
        ),
        'Use adjacency = "replace-one", or batches = "poisson", or batch_size = "all" with shuffled.',
    ),
    _one_step(
        "training.steps",
        ("poisson", "with-replacement"),
        1,
        "Set steps = 1, with more server.rounds.",
    ),
    _one_step(
        "training.batch_size",
        ("shuffled",),
        "all",
        'Set batch_size = "all" with epochs = 1, or batches = "poisson" with steps = 1.',
    ),
    _one_step("training.epochs", ("shuffled",), 1, "Set epochs = 1, with more server.rounds."),
    *(_of_clients(f"training.{key}", usual) for key, usual in OF_CLIENTS.items()),
)
