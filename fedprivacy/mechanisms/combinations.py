"""Which terms of a privacy plan go together: each rule once, for plans, scenarios and commands.

A rule is here where a proof, or the code that draws, needs it. `Plan` refuses what breaks one; a scenario
adds the line of the key, a command the name of the option. Nothing heavy is imported, because each start of
the command reads the rules of scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedprivacy.io.rules import Rule, exceeds
from fedprivacy.io.toml_text import literal

PURE = ("privunit", "sqkr", "sign-bits")  # mechanisms of pure epsilon-DP on single messages
MOST_WORK = 10**8  # rounds x bands: ten seconds of search for the matrix of correlated noise


@dataclass(frozen=True)
class Terms:
    """Terms of a privacy plan in plain values; None where a term is not set, or not known.

    Args:
        trust: "none", "local" or "central".
        unit: "client" or "example".
        adjacency: "replace-one", "add-remove" or "zero-out".
        population: The number of clients.
        rounds: The number of rounds.
        sampling: The name of the sampler.
        cohort: The clients in each round, where their number is fixed.
        separation: In how many rounds in a row a client answers at most once.
        mechanism: The name of the mechanism.
        noise_draw: "client" or "sum".
        encoding: What updates are encoded to before the noise.
        clipping_quantile: Which quantile of update norms the clipping norm follows.
        bands: Over how many rounds the noise is correlated.
        names: Term -> its name for the reader, where that is another: a key, or an option.
    """

    trust: str | None = None
    unit: str | None = None
    adjacency: str | None = None
    population: int | None = None
    rounds: int | None = None
    sampling: str | None = None
    cohort: int | None = None
    separation: int | None = None
    mechanism: str | None = None
    noise_draw: str | None = None
    encoding: str | None = None
    clipping_quantile: float | None = None
    bands: int | None = None
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __getitem__(self, term: str) -> Any:
        return getattr(self, term)

    @property
    def clients_apart(self) -> int | None:
        """The clients in as many cohorts as a client is in one of; None where cohorts need not come apart."""
        apart = self.cohort is not None and self.separation is not None
        return (self.cohort or 0) * (self.separation or 0) if apart else None

    def name(self, term: str) -> str:
        """Returns the name of a term for the reader."""
        return self.names.get(term, term)


COHORTS_COME_APART = Rule[Terms](
    "separation",
    lambda t: exceeds(t.clients_apart, t.population),
    lambda t: (
        f"{t.separation} cohorts of {t.cohort} are {t.clients_apart} clients, and there are {t.population}: "
        f"somebody would have to answer twice in {t.separation} rounds"
    ),
    lambda t: (
        f"At most {(t.population or 0) // (t.cohort or 1)}, or cohorts of at most "
        f"{max(1, (t.population or 0) // (t.separation or 1))}."
    ),
)
# One client more or less changes when the others come, and which noise they share.
SEPARATED_CLIENTS_ARE_KNOWN = Rule[Terms](
    "adjacency",
    {"sampling": "separated", "trust": "central", "unit": "client", "adjacency": "add-remove"},
    'one client more or less would change when the others come with sampling "separated"',
    'Use adjacency = "zero-out", of the same epsilon, or "replace-one".',
)
LOCAL_ANSWERS_ARE_SEEN = Rule[Terms](
    "adjacency",
    {"trust": "local", "unit": "client", "adjacency": "add-remove"},
    'under trust "local" the server sees who answers, so whether a client is there cannot be hidden',
    'Use adjacency = "replace-one" (true local privacy), or "zero-out".',
)
# Its event is an answer replaced by any other; a zeroed update is a replaced one, not a lost one.
PURE_NOISE_REPLACES_ANSWERS = Rule[Terms](
    "adjacency",
    {"trust": "local", "unit": "client", "mechanism": PURE, "adjacency": "zero-out"},
    lambda t: (
        f'mechanism {literal(t.mechanism)} is accounted for under "replace-one" alone, which covers a zeroed '
        "update too"
    ),
    'Use adjacency = "replace-one", or mechanism = "gaussian".',
)
PURE_NOISE_IS_OF_MESSAGES = Rule[Terms](
    "noise_draw",
    {"trust": "local", "unit": "client", "mechanism": PURE, "noise_draw": "sum"},
    lambda t: f"one draw cannot stand for a sum of messages of mechanism {literal(t.mechanism)}",
    'Use noise_draw = "client", or mechanism = "gaussian".',
)
NOISE_OF_STEPS_IS_GAUSSIAN = Rule[Terms](
    "mechanism",
    {"trust": "local", "unit": "example", "mechanism": (*PURE, "auto")},
    'randomises the messages of clients, and unit = "example" puts noise into each step on records',
    'Use mechanism = "gaussian", or unit = "client".',
)
NOISE_OF_STEPS_HAS_NO_SUM = Rule[Terms](
    "noise_draw",
    {"trust": "local", "unit": "example", "noise_draw": "sum"},
    "a client's noise goes into its own steps, of which no sum can be drawn",
    'Use noise_draw = "client", or unit = "client".',
)
ADAPTIVE_CLIPPING_IS_OF_CLIENTS = Rule[Terms](
    "clipping_quantile",
    lambda t: t.clipping_quantile is not None and t.unit == "example",
    lambda t: (
        f'works with {t.name("unit")} = "client" alone: the norms of updates are counted, not of gradients'
    ),
    'Remove it, or set unit = "client".',
)
ENCODING_IS_OF_CLIENTS = Rule[Terms](
    "encoding",
    lambda t: t.encoding is not None and t.unit == "example",
    lambda t: (
        f'works with {t.name("unit")} = "client" alone: updates are encoded, and not gradients of records'
    ),
    'Remove it, or set unit = "client".',
)
BANDS_NEED_SEPARATION = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.sampling not in (None, "separated"),
    lambda t: (
        "noise that is correlated over rounds is for clients that answer at most once in so many rounds, "
        f"and sampling {literal(t.sampling)} does not keep to that"
    ),
    lambda t: f'Set sampling.name = "separated" with separation = {t.bands}, or remove it.',
)
BANDS_WITHIN_SEPARATION = Rule[Terms](
    "bands",
    lambda t: exceeds(t.bands, t.separation),
    lambda t: (
        f"larger than {t.name('separation')} = {t.separation}: two answers of a client would share noise"
    ),
    lambda t: f"At most {t.separation}.",
)
BANDS_ARE_OF_CLIENTS = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.unit == "example",
    lambda t: f'works with {t.name("unit")} = "client" alone: records are in several rounds of their client',
    'Remove it, or set unit = "client".',
)
BANDS_CAN_BE_SEARCHED = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.rounds is not None and t.rounds * min(t.bands, t.rounds) > MOST_WORK,
    lambda t: (
        f"with {t.rounds} rounds its matrix takes too long to find: {MOST_WORK:,} bands x rounds at most"
    ),
    lambda t: f"At most {MOST_WORK // (t.rounds or 1)}.",
)

RULES: tuple[Rule[Terms], ...] = (
    COHORTS_COME_APART,
    SEPARATED_CLIENTS_ARE_KNOWN,
    LOCAL_ANSWERS_ARE_SEEN,
    PURE_NOISE_REPLACES_ANSWERS,
    PURE_NOISE_IS_OF_MESSAGES,
    NOISE_OF_STEPS_IS_GAUSSIAN,
    NOISE_OF_STEPS_HAS_NO_SUM,
    ADAPTIVE_CLIPPING_IS_OF_CLIENTS,
    ENCODING_IS_OF_CLIENTS,
    BANDS_NEED_SEPARATION,
    BANDS_WITHIN_SEPARATION,
    BANDS_ARE_OF_CLIENTS,
    BANDS_CAN_BE_SEARCHED,
)
