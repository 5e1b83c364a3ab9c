"""What must hold where clients answer at most once in so many rounds, and noise is correlated over these."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.values import Values

# As `mechanisms.strategy` has it, which would import scipy here.
MOST_WORK = 10**8


def separated_cohorts_fit_population(v: Values) -> Iterator[Finding]:
    cohort, separation, clients = v["sampling.cohort"], v["sampling.separation"], v.population
    if cohort is None or separation is None or clients is None or cohort > clients:
        return
    if cohort * separation > clients:
        yield Finding(
            ("sampling", "separation"),
            f"{separation} cohorts of {cohort} are {cohort * separation} clients, and there are {clients}: "
            f"somebody would have to answer twice in {separation} rounds",
            f"At most {clients // cohort}, or cohorts of at most {max(1, clients // separation)}.",
            literal(separation),
        )


def separated_clients_are_known(v: Values) -> Iterator[Finding]:
    asked = (v["sampling.name"], v["privacy.trust"], v["privacy.unit"], v["privacy.adjacency"])
    if asked == ("separated", "central", "client", "add-remove"):
        yield Finding(
            ("privacy", "adjacency"),
            'one client more or less would change when the others come with sampling "separated"',
            'Use adjacency = "zero-out", of the same epsilon, or "replace-one".',
            literal("add-remove"),
        )


def bands_keep_clients_apart(v: Values) -> Iterator[Finding]:
    bands, separation = v["privacy.bands"], v["sampling.separation"]
    if bands is None:
        return
    if v["sampling.name"] not in (None, "separated"):
        yield Finding(
            ("privacy", "bands"),
            "noise that is correlated over rounds is for clients that answer at most once in so many rounds, "
            f"and sampling {literal(v['sampling.name'])} does not keep to that",
            f'Set sampling.name = "separated" with separation = {bands}, or remove it.',
            literal(bands),
        )
    elif separation is not None and bands > separation:
        yield Finding(
            ("privacy", "bands"),
            f"larger than sampling.separation = {separation}: two answers of a client would share noise",
            f"At most {separation}.",
            literal(bands),
        )


def bands_go_with_the_rest(v: Values) -> Iterator[Finding]:
    bands, rounds = v["privacy.bands"], v["server.rounds"]
    if bands is None:
        return
    what, remedy = "", ""
    if v["privacy.unit"] == "example":
        what = 'works with privacy.unit = "client" alone: records are in several rounds of their client'
        remedy = 'Remove it, or set unit = "client".'
    elif v.given("privacy.clipping_quantile"):
        what = "needs one clipping norm for all rounds, and clipping_quantile changes it"
        remedy = "Remove one of the two."
    elif v["privacy.encoding"] is not None or v["privacy.mechanism"] not in (None, "gaussian"):
        what = "correlates Gaussian noise on updates that are not encoded"
        remedy = "Remove it, or privacy.encoding and mechanism."
    elif v["server.denoise"] not in (None, "none"):
        what = f"server.denoise = {literal(v['server.denoise'])} would take out what later rounds take back"
        remedy = 'Remove it, or set server.denoise = "none".'
    elif rounds is not None and rounds * min(bands, rounds) > MOST_WORK:
        what = f"with {rounds} rounds its matrix takes too long to find: {MOST_WORK:,} bands x rounds at most"
        remedy = f"At most {MOST_WORK // rounds}."
    if what:
        yield Finding(("privacy", "bands"), what, remedy, literal(bands))


BANDED_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    separated_cohorts_fit_population,
    separated_clients_are_known,
    bands_keep_clients_apart,
    bands_go_with_the_rest,
)
