"""What must hold between the keys of a scenario, beyond the type and range of each.

A check asks for the values that it needs and says nothing while one of them is missing or wrong by
itself, so one mistake neither hides another nor is reported twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fedprivacy.data.images import square_image
from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.banded_checks import BANDED_CHECKS
from fedprivacy.scenario.clipping_checks import CLIPPING_CHECKS
from fedprivacy.scenario.data_checks import (
    DATA_CHECKS,
    data_fits_memory,
)
from fedprivacy.scenario.defence_checks import DEFENCE_CHECKS
from fedprivacy.scenario.delta import LEAST_DELTA, too_small
from fedprivacy.scenario.denoise_checks import DENOISE_CHECKS
from fedprivacy.scenario.encoding_checks import ENCODING_CHECKS
from fedprivacy.scenario.example_checks import EXAMPLE_CHECKS
from fedprivacy.scenario.model import cnn_size, dense_parameters
from fedprivacy.scenario.on_nodes_checks import NODE_CHECKS
from fedprivacy.scenario.values import Values

MAX_PARAMETERS = 10**9
MAX_CHUNK_NUMBERS = 25 * 10**7  # of one client: 7.5 GB, at some 30 bytes each
MAX_MESSAGE_NUMBERS = 10**8  # of a message's answers
MAX_NOISE_NUMBERS = 10**9  # of the noise of past rounds: 8 GB
MIN_RATE = 1e-12


def findings(values: Values) -> list[Finding]:
    """Everything that does not fit together."""
    return [finding for check in CHECKS for finding in check(values)]


def cnn_needs_images(v: Values) -> Iterator[Finding]:
    if v["model.name"] != "cnn" or v.features is None:
        return
    image, channels = square_image(v.features), v["model.channels"]
    if v["data.name"] in ("synthetic", "purchase-like") or image is None:
        yield Finding(
            ("model", "name"),
            f"needs square images, and the records of data set {literal(v['data.name'])} are none",
            'Use name = "logistic" or name = "mlp", or data.name = "digits".',
            literal("cnn"),
        )
    elif channels and image[1] >> len(channels) == 0:
        yield Finding(
            ("model", "channels"),
            f"nothing is left of images of {image[1]} x {image[1]} pixels that are halved so often",
            f"At most {image[1].bit_length() - 1} entries.",
            literal(channels),
        )


def model_fits_memory(v: Values) -> Iterator[Finding]:
    parameters, maps = _model_size(v)
    each = v["federation.observe"] == "each"  # else a node adds answers up as it goes
    chunk = min(v["federation.chunk_size"] or 1, v.population or 1, v["sampling.cohort"] or MAX_CHUNK_NUMBERS)
    if v["model.name"] in ("mlp", "cnn") and parameters > MAX_PARAMETERS:
        key = "channels" if v["model.name"] == "cnn" else "hidden"
        yield Finding(
            ("model", key),
            f"makes more than {MAX_PARAMETERS:,} parameters",
            "Take smaller layers.",
            literal(v[f"model.{key}"]),
        )
    elif not any(data_fits_memory(v)) and maps * v.batch > MAX_CHUNK_NUMBERS:
        yield Finding(
            ("training", "batch_size"),
            f"one client holds {maps * v.batch:,} numbers between the layers of its model, about "
            f"{30e-9 * maps * v.batch:.0f} GB",
            "Take smaller batches or layers.",
            literal(v["training.batch_size"]),
        )
    elif each and chunk > 1 and not any(data_fits_memory(v)) and parameters * chunk > MAX_MESSAGE_NUMBERS:
        yield Finding(
            ("federation", "chunk_size"),
            f"a message with the answers of {chunk} clients, of {parameters:,} parameters each, takes about "
            f"{30e-9 * chunk * parameters:.0f} GB",
            f"At most {max(1, MAX_MESSAGE_NUMBERS // parameters)}.",
            literal(v["federation.chunk_size"]),
        )


def past_noise_fits_memory(v: Values) -> Iterator[Finding]:
    parameters, bands, rounds = _model_size(v)[0], v["privacy.bands"] or 1, v["server.rounds"] or 1
    kept = (min(bands, rounds) - 1) * parameters
    if parameters <= MAX_PARAMETERS and kept > MAX_NOISE_NUMBERS:
        yield Finding(
            ("privacy", "bands"),
            f"the server keeps the noise of {bands - 1} rounds, of {parameters:,} parameters each: "
            f"{8e-9 * kept:.0f} GB",
            f"At most {1 + MAX_NOISE_NUMBERS // parameters}.",
            literal(bands),
        )


def _model_size(v: Values) -> tuple[int, int]:
    """The parameters of a model by name, and what its convolutions make of a record; 0 where unknown."""
    classes, inputs, hidden = v.classes or 1, v.width or 1, v["model.hidden"] or ()
    if v["model.name"] == "cnn":
        image = None if v.features is None else square_image(v.features)
        channels, kernel_size = v["model.channels"], v["model.kernel_size"]
        known = image is not None and channels and kernel_size and not any(cnn_needs_images(v))
        return cnn_size(channels, kernel_size, hidden, image, classes) if image and known else (0, 0)
    return (0, 0) if v["model.name"] == "code" else (dense_parameters((inputs, *hidden, classes)), 0)


def one_budget(v: Values) -> Iterator[Finding]:
    if v["privacy.trust"] not in ("local", "central"):
        return
    epsilon, noise = v.given("privacy.epsilon"), v.given("privacy.noise_multiplier")
    if epsilon and noise:
        yield Finding(
            ("privacy", "noise_multiplier"),
            "given together with epsilon, but each follows from the other",
            "Keep epsilon to aim at a guarantee, or noise_multiplier to fix the noise.",
        )
    if not epsilon and not noise:
        yield Finding(
            ("privacy", "epsilon"),
            f'missing: trust "{v["privacy.trust"]}" needs a budget',
            "Add epsilon = 2.0, or noise_multiplier = 4.0 to fix the noise instead.",
        )


def delta_is_small(v: Values) -> Iterator[Finding]:
    delta, (units, noun) = v["privacy.delta"], v.units
    if delta is None or LEAST_DELTA <= delta < 1 / (units or 1):
        return
    if 0 < delta < LEAST_DELTA:
        yield too_small(delta)
        return
    # With delta = 1/n a mechanism may publish one client, or record, in full and still keep the guarantee.
    usual = min(1e-5, 10.0 ** math.floor(math.log10(0.1 / (units or 1))))
    bound = f"1/(number of {noun})" + (f" = 1/{units} = {1 / units:.3g}" if units else "")
    if noun == "records" and v["privacy.unit"] != "example":
        bound += ', since compare.units has "example"'
    yield Finding(
        ("privacy", "delta"), f"must be above 0 and below {bound}", f"{usual:.0e} is usual.", literal(delta)
    )


def cohort_fits_population(v: Values) -> Iterator[Finding]:
    cohort, clients = v["sampling.cohort"], v.population
    if cohort is not None and clients is not None and cohort > clients:
        yield Finding(
            ("sampling", "cohort"),
            f"larger than the population of {clients} clients",
            f'At most {clients}, or sampling name = "all" for everyone.',
            literal(cohort),
        )


def hosts_fit_population(v: Values) -> Iterator[Finding]:
    hosts, clients = v["federation.hosts"], v.population
    if hosts is not None and clients is not None and hosts > clients:
        yield Finding(
            ("federation", "hosts"),
            f"more hosts than the {clients} clients",
            f"At most {clients}.",
            literal(hosts),
        )


def fixed_sampling_has_accountant(v: Values) -> Iterator[Finding]:
    adjacency = v["privacy.adjacency"]
    if (
        v["sampling.name"] == "fixed"
        and (v["privacy.trust"], v["privacy.unit"]) == ("central", "client")
        and adjacency == "add-remove"
    ):
        yield Finding(
            ("privacy", "adjacency"),
            'no accountant supports it together with trust "central" and sampling "fixed"',
            'Use adjacency = "replace-one" or "zero-out", or sampling name = "poisson".',
            literal(adjacency),
        )


def rate_can_be_accounted(v: Values) -> Iterator[Finding]:
    rate = v["sampling.rate"]
    if rate is not None and rate < MIN_RATE:
        yield Finding(
            ("sampling", "rate"),
            f"below {MIN_RATE:g}, which no accountant can reckon with",
            "The probability that a client joins a round, such as 0.1.",
            literal(rate),
        )


def local_cannot_hide_who_answers(v: Values) -> Iterator[Finding]:
    if (v["privacy.trust"], v["privacy.unit"], v["privacy.adjacency"]) == ("local", "client", "add-remove"):
        yield Finding(
            ("privacy", "adjacency"),
            'under trust "local" the server sees who answers, so whether a client is there cannot be hidden',
            'Use adjacency = "replace-one" (true local privacy), or "zero-out".',
            literal("add-remove"),
        )


def evaluation_has_records(v: Values) -> Iterator[Finding]:
    private = v.private
    if v["evaluation.on"] == "public" and private is not None and private == v.owners:
        yield Finding(
            ("evaluation", "on"),
            "there is no public part of the data to evaluate on",
            'Set data.public_fraction = 0.1, or on = "test".',
            literal("public"),
        )


def noise_fits_observation(v: Values) -> Iterator[Finding]:
    if (v["privacy.trust"], v["privacy.noise_draw"], v["federation.observe"]) == ("local", "sum", "each"):
        yield Finding(
            ("privacy", "noise_draw"),
            'one draw of noise for a sum cannot be seen in single messages, and federation.observe = "each" '
            "shows these: each needs a draw of its own",
            'Use noise_draw = "client", or observe = "sum".',
            literal("sum"),
        )


def local_mechanism_fits(v: Values) -> Iterator[Finding]:
    """What a mechanism of pure epsilon-DP on single messages asks for."""
    mechanism = v["privacy.mechanism"]
    if v["privacy.trust"] != "local" or v["privacy.unit"] != "client" or mechanism is None:
        return
    named = f"mechanism {literal(mechanism)}"
    if v.given("privacy.direction") and mechanism not in ("privunit", "auto"):
        yield Finding(
            ("privacy", "direction"),
            f"has no effect with {named}",
            'Remove it, or set mechanism = "privunit".',
        )
    if mechanism == "gaussian":
        return
    if v.given("privacy.noise_multiplier"):
        yield Finding(
            ("privacy", "noise_multiplier"),
            f"has no effect with {named}, whose noise follows from epsilon",
            'Give epsilon instead, or set mechanism = "gaussian".',
        )
    if mechanism == "auto":
        return
    if v["privacy.adjacency"] == "zero-out":
        yield Finding(
            ("privacy", "adjacency"),
            f'{named} is accounted for under "replace-one" alone, which covers a zeroed update too',
            'Use adjacency = "replace-one", or mechanism = "gaussian".',
            literal("zero-out"),
        )
    if v["privacy.noise_draw"] == "sum":
        yield Finding(
            ("privacy", "noise_draw"),
            f"one draw cannot stand for a sum of messages of {named}",
            'Use noise_draw = "client", or mechanism = "gaussian".',
            literal("sum"),
        )


CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    *DATA_CHECKS,
    *NODE_CHECKS,
    cnn_needs_images,
    model_fits_memory,
    past_noise_fits_memory,
    one_budget,
    delta_is_small,
    cohort_fits_population,
    hosts_fit_population,
    fixed_sampling_has_accountant,
    rate_can_be_accounted,
    local_cannot_hide_who_answers,
    evaluation_has_records,
    noise_fits_observation,
    local_mechanism_fits,
    *EXAMPLE_CHECKS,
    *DEFENCE_CHECKS,
    *DENOISE_CHECKS,
    *CLIPPING_CHECKS,
    *BANDED_CHECKS,
    *ENCODING_CHECKS,
)
