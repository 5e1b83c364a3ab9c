"""Rows on the privacy settings of other libraries: the named epsilon, and what the setting costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scenarios.budgets.libraries.registry import BY_NAME
from scenarios.reproductions.row import Measured, Place, Row

_STATED = ("observer", "epsilon", "delta", "unit", "adjacency", "sampling", "rounds", "accountant")


def figure_of(library: str, words: tuple[str, ...], at: int) -> Callable[[Place], Measured]:
    """Returns the measurement of a figure in the table of `fedprivacy budget LIBRARY`.

    Args:
        library: The library.
        words: Its settings as they are typed.
        at: The row of the figure.
    """

    def measure(place: Place) -> Measured:
        document = BY_NAME[library].load().document(words)
        return Measured(float(document["table"][at]["epsilon"]), guarantee_of(document))

    return measure


def guarantee_of(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the guarantee of a document against participants; each has one, or states that none holds."""
    stated = next(each for each in document["guarantees"] if each["observer"] == "participant")
    return {key: stated[key] for key in _STATED}


def _opacus(noise: float, epochs: int) -> tuple[str, ...]:
    return (f"noise_multiplier={noise}", "dataset_size=60000", "batch_size=240", f"epochs={epochs}")


LOCAL = ("epsilon=8", "delta=1e-5", "clipping_norm=1", "sensitivity=1")
BENCHMARK = (
    "central_privacy_mechanism=gaussian_moments_accountant", "central_epsilon=2.0", "central_delta=1e-6",
    "central_privacy_clipping_bound=0.4", "noise_cohort_size=1000", "cohort_size=50",
    "central_num_iterations=1500", "population=1e6", "users=1000",
)  # fmt: skip
_OPACUS = "Opacus, examples/mnist_README.md at 0698adf"
ROWS = (
    Row(
        "flower-message",
        "LocalDpMod with epsilon 8, delta 1e-5: one message",
        "Flower 1.41, flwr/clientapp/mod/localdp_mod.py",
        "epsilon",
        8.0,
        18.9,
        0.05,
        1,
        figure_of("flower", LOCAL, 0),
    ),
    Row(
        "flower-rounds",
        "LocalDpMod with epsilon 8, delta 1e-5: 100 rounds, which Flower does not compose",
        "Flower 1.41, flwr/clientapp/mod/localdp_mod.py",
        "epsilon",
        8.0,
        685.24,
        0.01,
        1,
        figure_of("flower", (*LOCAL, "rounds=100"), 1),
    ),
    Row(
        "nvflare-svt",
        "SVTPrivacy's stock settings on DenseNet-121: a round",
        "NVFlare 2.9, nvflare/app_common/filters/svt_privacy.py",
        "epsilon",
        0.1,
        70_333.0,
        0.5,
        1,
        figure_of("nvflare", ("weights=7033282",), 0),
    ),
    *(
        Row(
            f"opacus-mnist-{epochs}",
            f"MNIST with noise multiplier {noise}, {epochs} epochs, batches of 240: {accuracy} % accuracy",
            _OPACUS,
            "epsilon",
            published,
            expected,
            0.005,
            3,
            figure_of("opacus", _opacus(noise, epochs), 0),
        )
        for noise, epochs, accuracy, published, expected in (
            (1.3, 15, 94.63, 1.19, 0.8336),
            (1.1, 60, 96.78, 3.01, 2.2955),
            (0.7, 45, 97.09, 7.10, 5.4313),
        )
    ),
    Row(
        "pfl-cifar10",
        "The CIFAR10 benchmark: central epsilon 2, delta 1e-6, at the sampling rate of its 1,000 users",
        "pfl-research 0.6, benchmarks/image_classification/configs/baseline.yaml",
        "epsilon",
        2.0,
        46.86,
        0.05,
        20,
        figure_of("pfl", BENCHMARK, 1),
    ),
)
