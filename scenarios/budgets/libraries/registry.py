"""The libraries whose settings `fedprivacy budget` reads, each in a file of its own.

Nothing heavy is imported, because every start of `fedprivacy` reads this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenarios.budgets.libraries.library import Library


@dataclass(frozen=True)
class Entry:
    """A library and its command.

    Args:
        name: The name of the command, and of the file here.
        help: The command's help: the settings that it reads, with their defaults.
    """

    name: str
    help: str

    def load(self) -> Library:
        """Imports the library's reader."""
        reader: Library = import_module(f"scenarios.budgets.libraries.{self.name}").LIBRARY
        return reader


LIBRARIES = (
    Entry(
        "flower",
        "Flower's DP settings: what LocalDpMod or a central strategy wrapper costs each observer.\n\n"
        "FILE is a pyproject.toml with the table tool.flwr.app.config, or any .toml, .json or .yaml file.\n\n"
        "Local: epsilon, delta, clipping_norm, sensitivity, rounds (1).\n\n"
        "Fixed clipping: noise_multiplier, clipping_norm, num_sampled_clients, population (unknown), "
        "equal_weights (false), delta (1e-5), rounds (1).\n\n"
        "Adaptive clipping: noise_multiplier, num_sampled_clients, initial_clipping_norm (0.1), "
        "target_clipped_quantile (0.5), clip_norm_lr (0.2), clipped_count_stddev, delta (1e-5), "
        "rounds (1).\n\n"
        "mechanism = local, fixed-clipping or adaptive-clipping, where the other keys do not show it.",
    ),
    Entry(
        "opacus",
        "Opacus' PrivacyEngine: what DP-SGD with its settings costs for one record.\n\n"
        "FILE is a .toml, .json or .yaml file. Keys: noise_multiplier, max_grad_norm (1), dataset_size, "
        "batch_size or sample_rate, drop_last (false), epochs (1), poisson_sampling (true), "
        "accountant (prv), delta (1e-5), rounds (1).",
    ),
    Entry(
        "pfl",
        "pfl-research's benchmark settings: what the claimed epsilon costs on the data at hand.\n\n"
        "FILE is a config such as baseline.yaml; keys after it replace its own.\n\n"
        "Keys: central_privacy_mechanism, central_epsilon (1), central_delta (1e-5), "
        "central_privacy_clipping_bound (1), cohort_size (1000), noise_cohort_size (1000), "
        "central_num_iterations (200), population (1e7), weight_by_samples (false), weighting (user), "
        "seed (0), users (unknown).",
    ),
    Entry(
        "nvflare",
        "NVFlare's privacy filters: what SVTPrivacy or PercentilePrivacy costs each observer.\n\n"
        "FILE is a config_fed_client.json, or any .toml, .json or .yaml file.\n\n"
        "SVTPrivacy: weights, version (since-2.8; or before-2.8), fraction (0.1), epsilon (0.1), "
        "noise_var (0.1), gamma (1e-5), tau (1e-6), replace (true), epsilon_threshold, epsilon_query, "
        "epsilon_release, data_kinds, rounds (1).\n\n"
        "PercentilePrivacy: percentile (10), gamma (0.01), data_kinds, rounds (1).\n\n"
        "filter = SVTPrivacy or PercentilePrivacy, where the other keys do not show it.",
    ),
)
BY_NAME = {entry.name: entry for entry in LIBRARIES}
