"""Rules for the model: it fits the records, and its copies in a run fit into memory."""

from __future__ import annotations

from collections.abc import Callable

from fedprivacy.data.images import SMALLEST, Image, scattered, square_image
from fedprivacy.data.tasks import NEXT_TOKEN
from fedprivacy.io.rule_table import Entry, First, Rule, exceeds
from fedprivacy.io.toml_text import literal
from fedprivacy.sampling.group_limit import most_groups
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.model import cnn_size, dense_parameters, gru_parameters, transformer_parameters
from fedprivacy.scenario.rules.data import RECORDS_FIT_MEMORY

MAX_PARAMETERS = 10**9
MAX_CHUNK_NUMBERS = 25 * 10**7  # of one client: 7.5 GB, at some 30 bytes each
MAX_MESSAGE_NUMBERS = 10**8  # of a message's answers
MAX_NOISE_NUMBERS = 10**9  # of the noise of past rounds: 8 GB


def _has_no_images(v: Values) -> bool:
    synthetic = v["data.name"] in ("synthetic", "purchase-like")
    return v.features is not None and (synthetic or square_image(v.features) is None)


def _records(v: Values) -> Image | None:
    """The images that records are; None where they are none, or unknown."""
    return None if v.features is None else square_image(v.features)


def _image(v: Values) -> Image | None:
    """The images that the layers of a model read: records, or features of them."""
    image = _records(v)
    return image and scattered(image) if v["model.features"] else image


def _side(v: Values) -> int | None:
    """The width of such an image, which is its height too; None where records are no images."""
    image = _image(v)
    return image[1] if image else None


def _is_too_small(v: Values) -> bool:
    image = _records(v)
    return v["model.features"] is not None and image is not None and image[1] < SMALLEST


FEATURES_FIT_IMAGES = First(
    Rule[Values](
        "model.features",
        lambda v: v["model.features"] is not None and _has_no_images(v),
        lambda v: f"needs square images, and the records of data set {literal(v['data.name'])} are none",
        "Remove it, or take data with the shape of square images, such as (64,), (28, 28) or (32, 32, 3).",
    ),
    Rule[Values](
        "model.features",
        _is_too_small,
        lambda v: (
            f"needs images of {SMALLEST} x {SMALLEST} pixels or more, and these have a side of "
            f"{(_records(v) or (0, 0))[1]}"
        ),
        "Remove it, or take larger images.",
    ),
)


def _halved_to_nothing(v: Values) -> bool:
    channels, side = v["model.channels"], _side(v)
    return bool(channels) and side is not None and side >> len(channels) == 0


CNN_FITS_IMAGES = First(
    Rule[Values](
        "model.name",
        lambda v: v["model.name"] == "cnn" and _has_no_images(v) and v["model.features"] is None,
        lambda v: f"needs square images, and the records of data set {literal(v['data.name'])} are none",
        'Use name = "logistic" or name = "mlp", or data.name = "digits".',
    ),
    Rule[Values](
        "model.channels",
        lambda v: v["model.name"] == "cnn" and _halved_to_nothing(v),
        lambda v: f"nothing is left of images of {_side(v)} x {_side(v)} pixels that are halved so often",
        lambda v: f"At most {(_side(v) or 0).bit_length() - 1} entries.",
    ),
)


def _size(v: Values) -> tuple[int, int]:
    """The parameters of a model by name, and what its layers make of a record; 0 where unknown."""
    if v["model.name"] in ("gru", "transformer"):
        return _size_on_tokens(v)
    classes, inputs, hidden = v.classes or 1, v.width or 1, v["model.hidden"] or ()
    image = _image(v)
    if v["model.features"] and image:
        inputs = image[0] * image[1] ** 2
    if v["model.name"] == "cnn":
        channels, kernel_size = v["model.channels"], v["model.kernel_size"]
        known = image is not None and channels and kernel_size and not any(CNN_FITS_IMAGES.findings(v))
        return cnn_size(channels, kernel_size, hidden, image, classes) if image and known else (0, 0)
    return (0, 0) if v["model.name"] == "code" else (dense_parameters((inputs, *hidden, classes)), 0)


def _size_on_tokens(v: Values) -> tuple[int, int]:
    """The parameters of a model of texts, and about how many numbers its layers make of one; 0: unknown."""
    tokens, positions, width = v.classes, v.width, v["model.width"]
    if v.task != NEXT_TOKEN or not tokens or not positions or not width:
        return 0, 0
    if v["model.name"] == "gru":
        embedding = v["model.embedding"] or 0
        return gru_parameters(tokens, embedding, width), positions * (2 * tokens + embedding + 15 * width)
    layers, heads = v["model.layers"] or 1, v["model.heads"] or 1
    of_layer = 16 * width + 3 * heads * positions
    return transformer_parameters(tokens, positions, width, layers), positions * (
        2 * tokens + layers * of_layer
    )


def _parameters(v: Values) -> int:
    return _size(v)[0]


def _held_by_client(v: Values) -> int:
    """The numbers that one client stores between the layers of its model."""
    return _size(v)[1] * v.batch


def _held_by_message(v: Values) -> int:
    """The clients whose updates one message carries singly; otherwise a node sums updates as it goes."""
    if v["federation.observe"] != "each":
        return 1
    cohort = v["sampling.cohort"] or MAX_CHUNK_NUMBERS
    return min(v["federation.chunk_size"] or 1, v.population or 1, cohort)


def _fits_with_records(broken: Callable[[Values], bool]) -> Callable[[Values], bool]:
    """The rule, silent where the records alone do not fit into memory."""
    return lambda v: broken(v) and not RECORDS_FIT_MEMORY.is_broken(v)


def _too_many_parameters(key: str, names: tuple[str, ...]) -> Rule[Values]:
    return Rule(
        key,
        lambda v: v["model.name"] in names and _parameters(v) > MAX_PARAMETERS,
        f"makes more than {MAX_PARAMETERS:,} parameters",
        "Take smaller layers.",
    )


def _past_rounds(v: Values) -> int:
    """The rounds whose noise the server keeps; for "auto" the most that may be chosen."""
    bands, rounds = v["privacy.bands"] or 1, v["server.rounds"] or 1
    return min(most_groups(v["sampling.rate"] or 1.0) if bands == "auto" else bands, rounds) - 1


def _noise_of_past_rounds(v: Values) -> int:
    return _past_rounds(v) * _parameters(v)


MODEL_RULES: tuple[Entry[Values], ...] = (
    FEATURES_FIT_IMAGES,
    CNN_FITS_IMAGES,
    First(
        _too_many_parameters("model.channels", ("cnn",)),
        _too_many_parameters("model.hidden", ("mlp",)),
        _too_many_parameters("model.width", ("gru", "transformer")),
        Rule(
            "training.batch_size",
            _fits_with_records(lambda v: _held_by_client(v) > MAX_CHUNK_NUMBERS),
            lambda v: (
                f"one client holds {_held_by_client(v):,} numbers between the layers of its model, about "
                f"{30e-9 * _held_by_client(v):.0f} GB"
            ),
            "Take smaller batches or layers.",
        ),
        Rule(
            "federation.chunk_size",
            _fits_with_records(
                lambda v: (
                    _held_by_message(v) > 1 and _parameters(v) * _held_by_message(v) > MAX_MESSAGE_NUMBERS
                )
            ),
            lambda v: (
                f"a message with the answers of {_held_by_message(v)} clients, of {_parameters(v):,} "
                f"parameters each, takes about {30e-9 * _held_by_message(v) * _parameters(v):.0f} GB"
            ),
            lambda v: f"At most {max(1, MAX_MESSAGE_NUMBERS // _parameters(v))}.",
        ),
    ),
    Rule(
        "privacy.bands",
        lambda v: _parameters(v) <= MAX_PARAMETERS and exceeds(_noise_of_past_rounds(v), MAX_NOISE_NUMBERS),
        lambda v: (
            f"the server keeps the noise of {_past_rounds(v)} rounds, of {_parameters(v):,} "
            f"parameters each: {8e-9 * _noise_of_past_rounds(v):.0f} GB"
        ),
        lambda v: f"At most {1 + MAX_NOISE_NUMBERS // _parameters(v)}.",
    ),
)
