"""NVFlare: the filters `SVTPrivacy` and `PercentilePrivacy` on a client's weight differences.

Read from the source of NVFlare 2.7.3, 2.8.0 and 2.9.0: `svt_privacy.py` and `percentile_privacy.py` in
`nvflare/app_common/filters`. With 2.8 `SVTPrivacy` got a ledger of its own, and clips before its noise.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import Finding, InputError, KeyPath
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from scenarios.budgets.libraries.cost import Cost, Release, against_models
from scenarios.budgets.libraries.library import ALWAYS_SENT, Library
from scenarios.budgets.question import MAX_ROUNDS, plural

_UNBOUNDED = (
    "SVTPrivacy up to NVFlare 2.7 adds noise to weights that it has not clipped, and clips the sum: a weight "
    "that changes by more than gamma moves it by any amount, so that no epsilon bounds a message"
)
_SELECTED = (
    "PercentilePrivacy adds no noise: it sends the weights that changed most, clipped to gamma, as they are"
)
_KIND = "WEIGHT_DIFF"
_NOT_FILTERED = f"data_kinds leaves out {_KIND}: the filter passes a client's weight differences as they are"
_SHARES = ("epsilon_threshold", "epsilon_query")
_SINCE_2_8 = (*_SHARES, "epsilon_release")
_ASSUMPTIONS = (
    f"results of training are weight differences ({_KIND}), and the filter's chain is that of their task",
    "each client runs the filter on every result, whatever the server requests",
    "every array of the model has at least one dimension: single numbers (as BatchNorm's counts of batches) "
    "pass as they are",
    "the number of steps of a client, which is sent and scales the message, does not depend on its records",
    "metrics and other entries of a result are not counted: no noise protects them",
    "nobody knows or repeats the noise, which comes from numpy's global generator",
)


class Svt(Section):
    """`SVTPrivacy(fraction, epsilon, noise_var, gamma, tau, replace, epsilon_threshold, ...)`."""

    filter: Literal["SVTPrivacy"] = "SVTPrivacy"
    weights: int = Field(ge=1, le=10**9, examples=[7033282], description="Numbers in the model: no default.")
    version: Literal["since-2.8", "before-2.8"] = "since-2.8"
    fraction: float = Field(0.1, gt=0, le=1)
    epsilon: float = Field(0.1, gt=0, le=1e6)
    noise_var: float = Field(0.1, gt=0, le=1e6)
    gamma: float = Field(1e-5, gt=0)
    tau: float = 1e-6
    replace: bool = True
    epsilon_threshold: float | None = Field(None, gt=0)
    epsilon_query: float | None = Field(None, gt=0)
    epsilon_release: float | None = Field(None, gt=0, le=1e9)
    data_kinds: list[str] | None = Field(None, description="The kinds of results that are filtered.")
    rounds: int = Field(1, ge=1, le=MAX_ROUNDS)


class Percentile(Section):
    """`PercentilePrivacy(percentile, gamma)`."""

    filter: Literal["PercentilePrivacy"] = "PercentilePrivacy"
    percentile: float = Field(10, ge=0, le=100)
    gamma: float = 0.01
    data_kinds: list[str] | None = None
    rounds: int = Field(1, ge=1, le=MAX_ROUNDS)


class NvFlare(Library):
    """Reads and accounts for NVFlare's filters."""

    name: ClassVar[str] = "nvflare"
    title: ClassVar[str] = "NVFlare 2.7 to 2.9"
    kind: ClassVar[Kind] = Kind({"SVTPrivacy": Svt, "PercentilePrivacy": Percentile}, "filter", "filter")
    adjacency: ClassVar[str] = "replace-one"

    def locate(self, document: dict[str, Any]) -> tuple[KeyPath, dict[str, Any]]:
        """As `Library` has it: the args of the first privacy filter of results, else the whole file."""
        if "task_result_filters" not in document:
            return (), {}
        for path, entry in _filters(document["task_result_filters"]):
            name = str(entry.get("path") or entry.get("name") or "").rpartition(".")[2]
            if name in self.kind.variants:
                arguments = entry.get("args", {})
                if not isinstance(arguments, dict):
                    raise InputError(f"{name}: its args are no table. Write them as a table.")
                return ((*path, "args") if "args" in entry else path), {"filter": name}
        known = " or ".join(self.kind.variants)
        raise InputError(
            f"task_result_filters has no {known} for the task train. Without a filter nothing is guaranteed."
        )

    def infer(self, table: dict[str, Any]) -> str | None:
        """As `Library` has it."""
        return "PercentilePrivacy" if "percentile" in table else "SVTPrivacy"

    def findings(self, part: Section, adjacency: str) -> list[Finding]:
        """As `Library` has it."""
        mistakes = [Finding(("filter",), *ALWAYS_SENT)] if adjacency == "add-remove" else []
        if not isinstance(part, Svt):
            return mistakes
        split = (part.epsilon_threshold, part.epsilon_query)
        if part.version == "before-2.8":
            given = [key for key in _SINCE_2_8 if getattr(part, key) is not None]
            return mistakes + [Finding((key,), "only since version 2.8", "Remove it.") for key in given]
        remedy = "NVFlare refuses anything else."
        for key, share in zip(_SHARES, split, strict=True):
            if share is not None and share >= part.epsilon:
                what = f"must be below epsilon = {part.epsilon:g}, of which it is a share"
                mistakes.append(Finding((key,), what, remedy, f"{share:g}"))
        both = None not in split and not math.isclose(sum(filter(None, split)), part.epsilon, rel_tol=1e-5)
        if both and not mistakes:
            what = f"must add up to epsilon = {part.epsilon:g} with epsilon_query, each above 0"
            mistakes.append(Finding(("epsilon_threshold",), what, remedy))
        return mistakes

    def cost(self, part: Section, adjacency: str) -> Cost:
        """As `Library` has it."""
        if isinstance(part, Svt):
            return _svt(part, adjacency)
        claim = "NVFlare states no epsilon for PercentilePrivacy, which is no differential privacy."
        return Cost("local", None, None, claim, [], against_models(None, (_SELECTED,)))


def _filters(entries: Any) -> list[tuple[KeyPath, dict[str, Any]]]:
    """Returns each filter of the chains for results of training, with its path."""
    chained: list[tuple[KeyPath, dict[str, Any]]] = []
    for at, chain in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(chain, dict):
            continue
        tasks, filters = chain.get("tasks", ["*"]), chain.get("filters")
        if not any(task in (tasks if isinstance(tasks, list) else [tasks]) for task in ("train", "*")):
            continue
        for inner, entry in enumerate(filters if isinstance(filters, list) else []):
            if isinstance(entry, dict):
                chained.append((("task_result_filters", at, "filters", inner), entry))
    return chained


def sent_weights(part: Svt) -> int:
    """n: the number of weights of a message, as the filter rounds it."""
    return min(part.weights, math.ceil(part.weights * part.fraction))


def clipped_late(part: Svt) -> dp.DpEvent:
    """One message up to 2.7, had it clipped the weights before the noise and stopped at the n-th above.

    Replacing a client's records moves the size of a clipped weight by gamma and the weight by 2 gamma. The
    threshold has Laplace noise of scale 2 gamma/epsilon, which costs epsilon/2. Each of n weights above it is
    compared under noise of scale 4 gamma n/(epsilon (2n)^(2/3)), which costs 2 gamma over that scale, and is
    sent with noise of scale 2 gamma/noise_var, which costs noise_var (Lyu, Su and Li 2017).
    """
    n = sent_weights(part)
    compared = part.epsilon * (2 * n) ** (2 / 3) / 2
    return _composed(part.epsilon / 2, compared, part.noise_var, n)


def shares(part: Svt) -> tuple[float, float, float]:
    """The epsilon of the threshold, of the comparisons and of each sent weight, as 2.8 divides them."""
    n, ratio = sent_weights(part), (2 * sent_weights(part)) ** (2 / 3)
    threshold = part.epsilon_threshold
    if threshold is None:
        query = part.epsilon_query
        threshold = part.epsilon / (1 + ratio) if query is None else part.epsilon - query
    sent = part.noise_var if part.epsilon_release is None else part.epsilon_release / n
    return threshold, part.epsilon - threshold, sent


def counted(part: Svt) -> dp.DpEvent:
    """One message as the ledger of 2.8 counts it: n weights above the threshold."""
    threshold, compared, sent = shares(part)
    return _composed(threshold, compared, sent, sent_weights(part))


def bounded(part: Svt) -> dp.DpEvent:
    """One message of 2.8, of which every weight may be above the threshold.

    The filter goes on after the n-th: it compares all weights of a pass, and those below again in the next
    pass. Each weight above costs 2 gamma over the scale 2 gamma n/epsilon_query, and all may be above; those
    below cost nothing beyond the threshold's share (Lyu, Su and Li 2017).
    """
    threshold, compared, sent = shares(part)
    n = sent_weights(part)
    return _composed(threshold, compared * part.weights / n, sent, n)


def _composed(threshold: float, compared: float, sent: float, count: int) -> dp.DpEvent:
    released = dp.SelfComposedDpEvent(PureDpEvent(sent), count)
    return dp.ComposedDpEvent([PureDpEvent(threshold), PureDpEvent(compared), released])


def _svt(part: Svt, adjacency: str) -> Cost:
    n = sent_weights(part)

    def messages(event: dp.DpEvent, note: str, rounds: int) -> Release:
        name = "one message" if rounds == 1 else plural(rounds, "message")
        composed = dp.SelfComposedDpEvent(event, rounds)
        return Release(f"{name}, {note}", composed, 0.0, adjacency, "a message in each round", rounds)

    rounds = sorted({1, part.rounds})
    left_out = bool(part.data_kinds) and _KIND not in (part.data_kinds or ())  # none given are all
    if part.version == "before-2.8":
        claim = (
            f"NVFlare names epsilon = {part.epsilon:g} and noise_var = {part.noise_var:g}, and no cost of a "
            f"message. It sends n = {n:,} of {part.weights:,} weights. Had it clipped them before the noise, "
            "and stopped at the n-th weight above the threshold, they would cost epsilon/2 + epsilon "
            "(2n)^(2/3)/2 + noise_var n by the sparse vector technique. It does neither: the figure is no "
            "guarantee."
        )
        figures = [messages(clipped_late(part), "had it clipped first", count) for count in rounds]
        return Cost("local", part.epsilon, None, claim, figures, against_models(None, (_UNBOUNDED,)))
    claim = (
        f"NVFlare names epsilon = {part.epsilon:g} for choosing n = {n:,} of {part.weights:,} weights, and "
        f"sends each at a cost of {shares(part)[2]:g}; its ledger counts epsilon + n times that. It goes on "
        "comparing after the n-th weight above the threshold, which the ledger leaves out: the bound counts "
        "a comparison for every weight."
    )
    figures = [
        *(messages(counted(part), "as its ledger counts", count) for count in rounds),
        *(messages(bounded(part), "with all comparisons", count) for count in rounds),
    ]
    bound = against_models(None, (_NOT_FILTERED,)) if left_out else against_models(figures[-1], _ASSUMPTIONS)
    return Cost("local", part.epsilon, None, claim, figures, bound)


LIBRARY = NvFlare()
