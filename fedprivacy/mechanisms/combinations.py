"""Which terms of a privacy plan go together: each rule once, for plans, scenarios and commands.

A rule is here where a proof, or the code that draws, needs it. `Plan` refuses what breaks one of `RULES` or
`RULES_OF_WHOLE_PLANS`; a scenario adds the line of the key, a command the name of the option. Nothing heavy
is imported, because each start of the command reads the rules of scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedprivacy.errors import InputError, Problem
from fedprivacy.io.rule_table import Entry, First, Rule, broken_rules, exceeds, holds
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.central import SERVER_ONLY
from fedprivacy.mechanisms.registry import family
from fedprivacy.sampling.group_limit import most_groups

# Mechanisms of pure epsilon-DP on single messages; a new local mechanism is one until a test says otherwise.
PURE = family("local update")
SHARED = family("shared update")  # noise in shares
MOST_WORK = 10**8  # rounds x bands: ten seconds of search for the matrix of correlated noise


@dataclass(frozen=True)
class Terms:
    """Terms of a privacy plan in plain values; None where a term is not set, or not known.

    Args:
        trust: "none", "local", "central" or "distributed".
        unit: "client" or "example".
        adjacency: "replace-one", "add-remove" or "zero-out".
        population: The number of clients.
        rounds: The number of rounds.
        sampling: The name of the sampler.
        cohort: The clients in each round, where their number is fixed.
        separation: In how many rounds in a row a client answers at most once.
        rate: The share of all clients in a round, where coins draw it.
        sampling_groups: The number of groups of clients, of which one a round is sampled.
        mechanism: The name of the mechanism.
        noise_draw: "client" or "sum".
        max_participations: How often a client answers at most, where clients count.
        min_survivors: The fewest clients in a sum that is opened, with noise in shares.
        batches: The name of what draws batches of records.
        steps: The steps of a round of a client with very many records.
        encoding: What updates are encoded to before the noise.
        clipping_quantile: Which quantile of update norms the clipping norm follows.
        bands: Over how many rounds the noise is correlated.
        noise_rounds: For how many rounds correlated noise was made.
        groups: The groups of clients with budgets of their own; only whether there are any matters here.
        personal: How clients get models of their own.
        names: Term -> its name for the reader, where that is another: a key, or an option; "" where the
            reader cannot set the term by itself.
    """

    trust: str | None = None
    unit: str | None = None
    adjacency: str | None = None
    population: int | None = None
    rounds: int | None = None
    sampling: str | None = None
    cohort: int | None = None
    separation: int | None = None
    rate: float | None = None
    sampling_groups: int | None = None
    mechanism: str | None = None
    noise_draw: str | None = None
    max_participations: int | None = None
    min_survivors: int | None = None
    batches: str | None = None
    steps: int | None = None
    encoding: str | None = None
    clipping_quantile: float | None = None
    bands: int | None = None
    noise_rounds: int | None = None
    groups: Any = None
    personal: str | None = None
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __getitem__(self, term: str) -> Any:
        return getattr(self, term)

    @property
    def most_in_a_sum(self) -> int | None:
        """The most clients in a round's sum, as far as it is known."""
        known = [size for size in (self.cohort, self.population) if size is not None]
        return min(known, default=None)

    @property
    def clients_apart(self) -> int | None:
        """The clients in as many cohorts as a client is in one of; None where cohorts need not come apart."""
        apart = self.cohort is not None and self.separation is not None
        return (self.cohort or 0) * (self.separation or 0) if apart else None

    @property
    def most_apart(self) -> int:
        """The clients of the largest cohort of which as many come apart as have to."""
        return max(1, (self.population or 0) // (self.separation or 1))

    def name(self, term: str) -> str:
        """Returns the name of a term for the reader."""
        return self.names.get(term, term)

    def stated(self, term: str) -> str:
        """Returns a term with its value, as the reader finds it: `sampling.separation = 4`."""
        return _assignment(self.name(term), self[term])

    def setting(self, term: str, value: Any) -> str:
        """Returns how the reader sets a term, beside others of its section: `separation = 4`.

        "" where the reader cannot.

        >>> Terms().setting("adjacency", "zero-out")
        'adjacency = "zero-out"'
        >>> Terms(names={"adjacency": "--adjacency"}).setting("adjacency", "zero-out")
        '--adjacency zero-out'
        """
        name = self.name(term)
        return _assignment(term if name.endswith(f".{term}") else name, value) if name else ""


def _assignment(name: str, value: Any) -> str:
    return f"{name} {value}" if name.startswith("--") else f"{name} = {literal(value)}"


def problems(terms: Terms, table: Iterable[Entry[Terms]]) -> list[Problem]:
    """Returns the problem of each rule of a table that the terms break, under the reader's names."""
    return [
        Problem(
            terms.stated(str(finding.path[0])) if finding.shown else terms.name(str(finding.path[0])),
            finding.what,
            finding.remedy,
        )
        for finding in broken_rules(table, terms)
    ]


def refuse_broken(terms: Terms, table: Iterable[Entry[Terms]]) -> None:
    """Refuses terms that break a rule.

    Raises:
        InputError: Naming every broken rule, with what to do.
    """
    if broken := problems(terms, table):
        raise InputError("\n".join(map(str, broken)))


def publishes_one(delta: float | None, units: int | None) -> bool:
    """Returns whether a delta is 1/(number of units) or more; not where either is unknown or 0.

    Publishing one of n units in full, drawn at random, is (0, 1/n)-DP: such a delta promises nothing.
    """
    return bool(delta and units and delta >= 1 / units)


# A plan takes everybody then; a reader who names a larger cohort has made a mistake.
COHORT_WITHIN_POPULATION = Rule[Terms](
    "cohort",
    lambda t: exceeds(t.cohort, t.population),
    lambda t: f"larger than the population of {t.population} clients",
    lambda t: (
        f"At most {t.population}"
        + (f", or {everybody} for everyone." if (everybody := t.setting("sampling", "all")) else ".")
    ),
)
SEPARATED_COHORTS_HAVE_CLIENTS = Rule[Terms](
    "sampling",
    lambda t: t.clients_apart is not None and min(t.cohort or 0, t.separation or 0) < 1,
    "its cohort and its separation must be at least 1",
    "Make both at least 1.",
)
COHORTS_COME_APART = Rule[Terms](
    "separation",
    lambda t: exceeds(t.clients_apart, t.population),
    lambda t: (
        f"{t.separation} cohorts of {t.cohort} are {t.clients_apart} clients, and there are {t.population}: "
        f"somebody would have to answer twice in {t.separation} rounds"
    ),
    lambda t: (
        f"At most {(t.population or 0) // (t.cohort or 1)}"
        + (f", or cohorts of at most {t.most_apart}." if t.most_apart < (t.cohort or 1) else ".")
    ),
)
CYCLIC = "cyclic-poisson"
APART = ("separated", CYCLIC)  # samplers that keep the participations of a client apart
# One client more or less changes when the others come, and which noise they share.
SEPARATED_CLIENTS_ARE_KNOWN = Rule[Terms](
    "adjacency",
    {"sampling": APART, "trust": "central", "unit": "client", "adjacency": "add-remove"},
    lambda t: (
        f"one client more or less would change when the others come with sampling {literal(t.sampling)}"
    ),
    lambda t: f'Use {t.setting("adjacency", "zero-out")}, of the same epsilon, or "replace-one".',
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
PURE_NOISE_IS_OF_CLIENTS = Rule[Terms](
    "mechanism",
    {"trust": ("none", "central"), "mechanism": PURE},
    'randomises the messages of clients, which is for trust "local" alone',
    'Use mechanism = "gaussian", or trust = "local".',
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
# The server does not count how often a client has answered, and clients under other trust do not either.
CAP_IS_ENFORCED_BY_CLIENTS = Rule[Terms](
    "max_participations",
    lambda t: t.max_participations is not None and t.trust not in (None, "local", "distributed"),
    lambda t: f"has no effect under trust {literal(t.trust)}",
    "Leave it out.",
)
NOISE_OF_SUMS_IS_OF_SERVER = Rule[Terms](
    "mechanism",
    {"trust": ("none", "local", "distributed"), "mechanism": SERVER_ONLY},
    'is the noise of a server, which is for trust "central" alone',
    'Use mechanism = "gaussian", or trust = "central".',
)
SHARES_STAY = Rule[Terms](
    "adjacency",
    {"trust": "distributed", "adjacency": "add-remove"},
    'under trust "distributed" a client that leaves takes its share of the noise along, so the sums with and '
    "without it have different noise, and nothing is proved of them",
    'Use adjacency = "zero-out" or "replace-one".',
)
SHARES_ARE_OF_CLIENTS = Rule[Terms](
    "unit",
    {"trust": "distributed", "unit": "example"},
    'trust "distributed" adds a share of noise to each client\'s update, and none to gradients of records',
    'Use unit = "client": with adjacency = "replace-one" its guarantee covers each record too.',
)
# A Poisson cohort may be any number of clients, so that its sum would need room for all of them.
SUMS_HAVE_A_KNOWN_SIZE = Rule[Terms](
    "sampling",
    {"trust": "distributed", "sampling": "poisson"},
    'under trust "distributed" the shares of noise and the modulus are made for a known number of clients, '
    "and a Poisson cohort has none; its secrecy would amplify nothing here",
    lambda t: f"Use sampling {literal('fixed')} or {literal('all')}.",
)
NOISE_IN_SHARES_IS_DISTRIBUTED = Rule[Terms](
    "mechanism",
    {"trust": ("none", "central", "local"), "mechanism": SHARED},
    'is noise in shares, which is for trust "distributed" alone',
    'Use mechanism = "gaussian", or trust = "distributed".',
)
DISTRIBUTED_NOISE_IS_IN_SHARES = Rule[Terms](
    "mechanism",
    lambda t: t.trust == "distributed" and t.mechanism not in (None, *SHARED),
    'is no noise in shares, which trust "distributed" needs',
    f"Use mechanism = {' or '.join(literal(name) for name in SHARED)}.",
)
SURVIVORS_WITHIN_SUM = Rule[Terms](
    "min_survivors",
    lambda t: exceeds(t.min_survivors, t.most_in_a_sum),
    lambda t: f"no round has more than {t.most_in_a_sum} clients",
    lambda t: f"At most {t.most_in_a_sum}.",
)
ADAPTIVE_CLIPPING_IS_OF_SERVER = Rule[Terms](
    "clipping_quantile",
    lambda t: t.clipping_quantile is not None and t.trust not in (None, "central"),
    'works under trust "central" alone: the server adapts the clipping norm',
    'Remove it, or set trust = "central".',
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
# Amplification by secret coins is for what the server releases about whole clients.
GROUPS_ARE_OF_CENTRAL_CLIENTS = Rule[Terms](
    "sampling",
    lambda t: t.sampling == CYCLIC and (t.trust not in (None, "none", "central") or t.unit == "example"),
    'draws cohorts for correlated noise on the updates of clients, under trust "central" alone',
    'Use "poisson", "fixed" or "all".',
)
GROUPS_HAVE_BANDS = Rule[Terms](
    "sampling",
    {"sampling": CYCLIC, "trust": "central", "unit": "client", "bands": None},
    "deals the clients to as many groups as there are bands of noise, and there are none",
    lambda t: f'Set {t.setting("bands", 4)}, or use "poisson".',
)
BANDS_WITHIN_GROUPS = Rule[Terms](
    "bands",
    lambda t: exceeds(t.bands, t.sampling_groups),
    lambda t: f"larger than groups = {t.sampling_groups}: two answers of a client would share noise",
    lambda t: f"At most {t.sampling_groups}.",
)
GROUPS_HAVE_ENOUGH_CLIENTS = Rule[Terms](
    "bands",
    lambda t: (
        t.sampling == CYCLIC and t.bands is not None and t.rate is not None and t.bands > most_groups(t.rate)
    ),
    lambda t: f"rounds of {t.rate:g} of all clients do not fit into one of {t.bands} groups",
    lambda t: f"At most {most_groups(t.rate or 1.0)}, which is 1/rate rounded down.",
)
NO_GROUP_IS_EMPTY = Rule[Terms](
    "bands",
    lambda t: t.sampling == CYCLIC and exceeds(t.bands, t.population),
    lambda t: f"there are {t.population} clients, so some of {t.bands} groups would be empty",
    lambda t: f"At most {t.population}.",
)
BANDS_NEED_SEPARATION = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.sampling not in (None, *APART),
    lambda t: (
        "noise that is correlated over rounds is for clients that answer at most once in so many rounds, "
        f"and sampling {literal(t.sampling)} does not keep to that"
    ),
    lambda t: (
        "Set "
        + " with ".join(filter(None, (t.setting("sampling", "separated"), t.setting("separation", t.bands))))
        + ", or remove it."
    ),
)
BANDS_WITHIN_SEPARATION = Rule[Terms](
    "bands",
    lambda t: exceeds(t.bands, t.separation),
    lambda t: f"larger than {t.stated('separation')}: two answers of a client would share noise",
    lambda t: f"At most {t.separation}.",
)
BANDS_ARE_OF_CLIENTS = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.unit == "example",
    lambda t: f'works with {t.name("unit")} = "client" alone: records are in several rounds of their client',
    'Remove it, or set unit = "client".',
)
BANDS_ARE_OF_SERVER = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.trust not in (None, "central"),
    'works under trust "central" alone: the server correlates the noise',
    'Remove it, or set trust = "central".',
)
# A later round would have noise that no matrix correlates.
NOISE_LASTS_ALL_ROUNDS = Rule[Terms](
    "rounds",
    lambda t: exceeds(t.rounds, t.noise_rounds),
    lambda t: f"the correlated noise is made for {t.noise_rounds} rounds, and for no more rounds",
    lambda t: f"At most {t.noise_rounds}.",
)
BANDS_CAN_BE_SEARCHED = Rule[Terms](
    "bands",
    lambda t: t.bands is not None and t.rounds is not None and t.rounds * min(t.bands, t.rounds) > MOST_WORK,
    lambda t: (
        f"with {t.rounds} rounds its matrix takes too long to find: {MOST_WORK:,} bands x rounds at most"
    ),
    lambda t: f"At most {MOST_WORK // (t.rounds or 1)}.",
)


def _of_groups(
    broken: Callable[[Terms], bool], problem: str | Callable[[Terms], str], remedy: str
) -> Rule[Terms]:
    def breaks(terms: Terms) -> bool:
        return terms.groups is not None and broken(terms)

    return Rule[Terms]("groups", breaks, problem, remedy, shown=False)


GROUPS_DO_NOT_SHARE_NOISE = _of_groups(
    lambda t: t.trust == "distributed",
    'under trust "distributed" each client adds an equal share of one noise, and nothing is proved of sums '
    "in which shares differ",
    'Remove it, or use trust = "local" or "central".',
)
GROUPS_ARE_PROTECTED = _of_groups(
    lambda t: t.trust == "none",
    'under trust "none" nobody adds noise, and no group has an epsilon',
    'Remove it, or use trust = "local" or "central".',
)
GROUPS_ARE_OF_CLIENTS = _of_groups(
    lambda t: t.unit == "example",
    "groups are of clients whose update is protected as a whole, and noise in steps on records is alike for "
    "all of them",
    'Remove it, or use unit = "client".',
)
GROUPS_HAVE_GAUSSIAN_NOISE = _of_groups(
    lambda t: t.trust in ("local", "central") and t.mechanism not in (None, "gaussian"),
    lambda t: f"budgets of groups are accounted for with Gaussian noise, and not with {literal(t.mechanism)}",
    'Remove it, or use mechanism = "gaussian".',
)
GROUPS_HAVE_A_FIXED_NORM = _of_groups(
    lambda t: t.clipping_quantile is not None,
    "the count that moves the clipping norm weighs all clients alike, and nothing is proved of a group's "
    "part in it",
    "Remove it, or clipping_quantile.",
)
GROUPS_ARE_NOT_CORRELATED = _of_groups(
    lambda t: t.bands is not None,
    "the matrix of correlated noise is made for clients of one weight and one schedule",
    "Remove it, or bands.",
)
GROUPS_ARE_NOT_ENCODED = _of_groups(
    lambda t: t.encoding is not None,
    "a weight would come after the encoding, whose codes it changes",
    "Remove it, or encoding.",
)
# Balle, Barthe and Gaboardi 2018, Theorem 11: it couples cohorts with and without a client by exchanging it.
GROUPS_NEED_COINS = _of_groups(
    # Cyclic sampling is refused for the bands that it needs.
    lambda t: t.trust == "central" and t.sampling not in (None, "poisson", "all", "cyclic-poisson"),
    lambda t: (
        f"sampling {literal(t.sampling)} has cohorts of a fixed size: their rate is one for all, and the "
        "proof for them exchanges a client for another, maybe of a group with a larger weight"
    ),
    'Remove it, or use sampling "poisson" or "all".',
)


def _of_personal(
    modes: tuple[str, ...],
    broken: Callable[[Terms], bool],
    problem: str | Callable[[Terms], str],
    remedy: str,
) -> Rule[Terms]:
    def breaks(terms: Terms) -> bool:
        return terms.personal in modes and broken(terms)

    return Rule[Terms]("personal", breaks, problem, remedy)


# Each step would read parameters that earlier steps computed from the record without any noise: an update is
# then no function of the released model and the records, and one record moves it by more than its gradient.
PERSONAL_PARTS_ARE_OF_CLIENTS = _of_personal(
    ("partial",),
    lambda t: t.unit == "example",
    "the personal part is trained on each record without noise, and later gradients of all other records "
    "depend on it: clipping one gradient no longer bounds what a record does",
    'Use unit = "client", or personal = "fine-tune" or "ditto", which no update depends on.',
)
# Proof for coins: `fedprivacy.training.personalisation`. With cohorts of a fixed size, a client that joins
# takes another's place, whose personal part remembers that.
PERSONAL_PARTS_NEED_COINS = _of_personal(
    ("partial",),
    lambda t: t.trust == "central" and t.sampling not in (None, "poisson", "all"),
    lambda t: (
        f"with sampling {literal(t.sampling)} a client's past rounds change when others came, which their "
        "personal parts remember: nothing is proved of that"
    ),
    'Use sampling "poisson" or "all".',
)
PERSONAL_MODELS_ARE_NOT_SUMMED = _of_personal(
    ("partial", "ditto"),
    lambda t: t.trust == "distributed",
    'clients of a secure sum (trust "distributed") keep no parameters from round to round',
    'Use personal = "fine-tune", or trust = "central" or "local".',
)
PERSONAL_PARTS_HAVE_ONE_BUDGET = _of_personal(
    ("partial",),
    lambda t: t.groups is not None,
    "nothing is proved of personal parts with groups of clients whose budgets differ",
    "Remove it, or privacy.groups.",
)

TRUSTS, UNITS = ("none", "central", "local", "distributed"), ("client", "example")
PERSONAL = (None, "partial", "fine-tune", "ditto")
ADJACENCIES, DRAWS = ("replace-one", "add-remove", "zero-out"), (None, "client", "sum")
# Rules exclude what no proof covers by the values that are known: of any other nothing is proved.
TERMS_ARE_KNOWN = tuple(
    Rule[Terms](
        term,
        lambda t, term=term, values=values: t[term] not in values,  # type: ignore[misc]
        "unknown",
        f"Use one of {', '.join(literal(value) for value in values if value is not None)}.",
    )
    for term, values in (
        ("trust", TRUSTS),
        ("unit", UNITS),
        ("adjacency", ADJACENCIES),
        ("noise_draw", DRAWS),
        ("personal", PERSONAL),
    )
)
# What reads an absent term as not set, where a scenario may only not know it.
DRAW_OF_MESSAGES_IS_STATED = Rule[Terms](
    "noise_draw",
    lambda t: holds(t, {"trust": "local", "unit": "client", "mechanism": PURE, "noise_draw": None}),
    lambda t: f"missing: each message of mechanism {literal(t.mechanism)} has a draw of its own",
    'Add noise_draw = "client".',
    shown=False,
)
SHARES_ARE_STATED = Rule[Terms](
    "mechanism",
    {"trust": "distributed", "mechanism": None},
    'missing: trust "distributed" needs noise in shares',
    f"Use {' or '.join(literal(name) for name in SHARED)}.",
    shown=False,
)
BATCHES_ARE_OF_RECORDS = Rule[Terms](
    "batches",
    lambda t: (t.unit == "example") != (t.batches is not None),
    'unit = "example" states how batches of records are drawn, and no other unit does',
    'Give batches with unit = "example", and leave them out otherwise.',
    shown=False,
)

ONE_STEP = "a server can add its noise to one step of a round, and not to others"
NOISE_OF_SERVER_IS_IN_ONE_STEP = Rule[Terms](
    "batches",
    lambda t: (t.unit, t.trust) == ("example", "central") and exceeds(t.steps, 1),
    ONE_STEP,
    "Take one batch in a round, and more rounds.",
)

RULES: tuple[Entry[Terms], ...] = (
    First(SEPARATED_COHORTS_HAVE_CLIENTS, COHORTS_COME_APART),
    SEPARATED_CLIENTS_ARE_KNOWN,
    CAP_IS_ENFORCED_BY_CLIENTS,
    LOCAL_ANSWERS_ARE_SEEN,
    PURE_NOISE_REPLACES_ANSWERS,
    PURE_NOISE_IS_OF_CLIENTS,
    PURE_NOISE_IS_OF_MESSAGES,
    NOISE_OF_STEPS_IS_GAUSSIAN,
    NOISE_OF_STEPS_HAS_NO_SUM,
    NOISE_OF_SUMS_IS_OF_SERVER,
    SHARES_STAY,
    SHARES_ARE_OF_CLIENTS,
    SUMS_HAVE_A_KNOWN_SIZE,
    NOISE_IN_SHARES_IS_DISTRIBUTED,
    DISTRIBUTED_NOISE_IS_IN_SHARES,
    SURVIVORS_WITHIN_SUM,
    ADAPTIVE_CLIPPING_IS_OF_SERVER,
    ADAPTIVE_CLIPPING_IS_OF_CLIENTS,
    ENCODING_IS_OF_CLIENTS,
    GROUPS_ARE_OF_CENTRAL_CLIENTS,
    GROUPS_HAVE_BANDS,
    BANDS_WITHIN_GROUPS,
    BANDS_NEED_SEPARATION,
    BANDS_WITHIN_SEPARATION,
    BANDS_ARE_OF_SERVER,
    BANDS_ARE_OF_CLIENTS,
    BANDS_CAN_BE_SEARCHED,
    NOISE_LASTS_ALL_ROUNDS,
    First(GROUPS_ARE_PROTECTED, GROUPS_DO_NOT_SHARE_NOISE, GROUPS_ARE_OF_CLIENTS, GROUPS_HAVE_GAUSSIAN_NOISE),
    GROUPS_HAVE_A_FIXED_NORM,
    GROUPS_ARE_NOT_CORRELATED,
    GROUPS_ARE_NOT_ENCODED,
    GROUPS_NEED_COINS,
    PERSONAL_PARTS_ARE_OF_CLIENTS,
    PERSONAL_PARTS_NEED_COINS,
    PERSONAL_PARTS_HAVE_ONE_BUDGET,
    PERSONAL_MODELS_ARE_NOT_SUMMED,
)
RULES_OF_WHOLE_PLANS: tuple[Entry[Terms], ...] = (
    *TERMS_ARE_KNOWN,
    DRAW_OF_MESSAGES_IS_STATED,
    SHARES_ARE_STATED,
    BATCHES_ARE_OF_RECORDS,
    NOISE_OF_SERVER_IS_IN_ONE_STEP,
)
