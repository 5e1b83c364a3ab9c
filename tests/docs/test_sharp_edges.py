"""docs/sharp-edges.md: every number on the page is computed here again."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import dp_accounting
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant

from fedprivacy.accounting.composition import group
from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.clipping import bounds_of_a_sum
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.mechanism_search import calibrated
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling
from scenarios.budgets.compose import ComposeQuestion
from scenarios.budgets.gaussian import GaussianQuestion
from scenarios.budgets.group import GroupQuestion
from scenarios.budgets.question import ADJACENCIES
from scenarios.budgets.shuffle import ShuffleQuestion

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sharp-edges.md").read_text()
FLAT = " ".join(PAGE.split())
POISSON = {"rounds": 100, "sampling_rate": 0.1}


@cache
def noise(**setting: float | str) -> float:
    return float(GaussianQuestion(**setting).document()["noise_multiplier"])


@cache
def cost(**setting: float | str) -> float:
    return float(GaussianQuestion(**setting).document()["epsilon"])


def rounding(clients: int) -> float:
    """How much of the clipping norm is left for the rounding of a sum."""
    clipped, _ = bounds_of_a_sum(1.0, clients)
    assert clipped is not None
    return 1 - clipped


def selected(shape: float) -> float:
    """Epsilon of the best of a random number of tries (mean 10) of one release at epsilon 2."""
    accountant = RdpAccountant()
    # Under replace-one a noise multiplier m is a Gaussian of sensitivity 1 and standard deviation m / 2.
    once = dp_accounting.GaussianDpEvent(noise(epsilon=2.0) / 2)
    accountant.compose(RepeatAndSelectDpEvent(once, 10, shape))
    return float(accountant.get_epsilon(1e-5))


@cache
def facts() -> list[str]:
    """What the page says with numbers, each made of numbers that are computed."""
    sentences = []
    for epsilon in (1, 2, 4, 8):
        sure = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
        digits = 4 if epsilon == 8 else 3
        sentences.append(f"| {epsilon} | {printed(math.exp(epsilon), digits)} | {printed(sure, digits)} % |")
    three, two, one_bar = (f"{100 * most:g} % ({certainty.WORDS[level]})" for most, level in certainty.LEVELS)
    sentences.append(f"three up to {three}, two up to {two}, one up to {one_bar}, empty ones above.")
    changes = {
        "add-remove": "a client is present or absent",
        "zero-out": "a client's update is zero or not",
        "replace-one": "a client's records become any others",
    }
    for adjacency in ADJACENCIES:
        given = {"noise_multiplier": 2.248, "adjacency": adjacency}
        amplified, plain = cost(**given, **POISSON), cost(**given, rounds=100)
        row = f"| `{adjacency}`: {changes[adjacency]} | {printed(amplified, 3)} | {printed(plain, 3)} |"
        sentences.append(row)
    multiplier = noise(epsilon=2.0, **POISSON)
    two, three = (
        printed(cost(noise_multiplier=multiplier, rounds=100 * n, sampling_rate=0.1), 3) for n in (2, 3)
    )
    sentences.append(
        "Noise calibrated so that 100 rounds at rate 0.1 cost epsilon 2 (replace-one, delta = 1e-5) gives "
        f"{two} for 200 rounds, or for two such runs with different seeds on the same people, and {three} for three runs."
    )
    sentences.append(
        "for 100 rounds at delta = 1e-5, for 100 out of 1000 clients and for Poisson sampling at rate 0.1"
    )
    for epsilon in (1, 2, 4, 8):
        cells = []
        for adjacency in ("replace-one", "zero-out"):
            setting = {"epsilon": float(epsilon), "adjacency": adjacency}
            fixed, poisson = (
                noise(**setting, rounds=100, cohort=100, population=1000),
                noise(**setting, **POISSON),
            )
            cells.append(f"{printed(fixed, 3)} | {printed(poisson, 3)} | {fixed / poisson:.2f}x")
        sentences.append(f"| {epsilon} | {' | '.join(cells)} |")
    sentences.append("Zhu, Dong and Wang 2022, Theorem 11")
    composed = ComposeQuestion(rounds=100, epsilon=0.1).document()
    theorems = {row["name"]: printed(row["epsilon"], 3) for row in composed["table"] if row["epsilon"]}
    sentences.append(
        f"100 releases of epsilon 0.1, with nothing else known, cost epsilon {theorems['basic']} by basic composition, and "
        f"{theorems['optimal']} at delta = 1e-5 by the optimal theorem"
    )
    single = noise(epsilon=2.0)
    pure, grown = group(2.0, 1e-9, 4)
    four = GroupQuestion(size=4, noise_multiplier=single, delta=1e-5).document()
    mixed = ShuffleQuestion(clients=1000, local_epsilon=1.0).document()
    sentences += [
        f"A household of 4 has 4 times the epsilon, {pure:g} where each has 2, and a delta of 4 e^6 = "
        f"{grown / 1e-9:,.0f} times as large",
        "Gaussian noise calibrated to epsilon 2 at delta = 1e-5 gives the four together epsilon "
        f"{printed(four['epsilon'], 3)} at the same delta",
        "If an honest shuffler removes the names from 1000 answers of epsilon 1 and mixes them, the cost against an "
        f"observer of the mixture alone is epsilon {printed(mixed['epsilon'], 3)} at delta = 1e-5",
        f"each answer still costs epsilon {mixed['local_epsilon']:g}",
    ]
    sentences += [
        "One release of Gaussian noise at epsilon 2 (delta = 1e-5), tried with 10 settings:",
        "| one run, nothing is tried | 2 |",
        f"a logarithmic distribution of mean 10 draws the number of tries, only the best is released | {printed(selected(0), 3)} |",
        f"a geometric distribution of mean 10 | {printed(selected(1), 3)} |",
        f"| all 10 are released | {printed(cost(noise_multiplier=single, rounds=10), 3)} |",
    ]
    share = 1000 / (1000 + 9 * 10)
    sentences += [
        "Take 10 clients, one with 1000 records and nine with 10 each, and updates clipped to 1.",
        f"replacing the large client moves the mean by at most {2 / 10:g}.",
        f"With weights by records it moves the mean by {printed(2 * share, 3)}.",
        "Noise calibrated to epsilon 2 in one release would then cost epsilon "
        f"{printed(cost(noise_multiplier=single / (share * 10)), 3)}",
    ]
    powers = range(32)
    most = max(2**n for n in powers if math.isclose(rounding(2**n), 2.0 ** (n - 29), rel_tol=0.01))
    assert 0.01 < max(rounding(2**n) for n in powers) < 0.016  # 2^31: more than a scenario may have
    sentences.append(
        f"about n 2^-29 of it for up to {most:,} clients (n), and less than 1.6 % for the largest scenario"
    )
    return sentences


@cache
def errors() -> list[str]:
    """The rows of the table of local mechanisms: one answer, and ten, of updates of 650 numbers."""
    rows = []
    for epsilon in (1.0, 8.0):
        for answers in (1, 10):
            plan = Plan(
                trust="local", unit="client", adjacency="replace-one", population=1000, rounds=answers,
                sampler=AllSampling(), mechanism=Gaussian(1.0, 1.0), delta=1e-5,
                max_participations=answers, noise_draw="client",
            )  # fmt: skip
            plans = calibrated(plan, epsilon, 650, "lifted")
            each = [
                plans[name].randomiser.error(650) for name in ("gaussian", "privunit", "sqkr", "sign-bits")
            ]
            shown = " | ".join(f"{float(f'{error:.3g}'):,g}" for error in each)
            rows.append(f"| {epsilon:g} | {answers} | {shown} |")
    return rows


# Numbers that say what is asked, names of papers and formulas: nothing that could be computed.
GIVEN = (
    "With a delta above 0 rare outputs",
    "the share (e^epsilon + delta) / (1 + e^epsilon) of them is right (Kairouz, Oh and Viswanath 2015)",
    "Noise of standard deviation 2.248 x C on the sum of updates clipped to C, 100 rounds, delta = 1e-5:",
    "Poisson sampling, rate 0.1, secret cohort",
    "from 50 % before",
    "a probability of 50 %",
    "At epsilon 8 the guarantee alone",
    "by 2C when it is reversed",
    "moves by up to 2C between a cohort with it and one without",
    "the mixtures (1 - q) R + q A and (1 - q) R + q B",
    "(Balle, Barthe and Gaboardi 2018, Theorem 2)",
    "at alpha >= 1, with alpha' = 1 + (alpha - 1)/q",
    "q ((1 - beta) H(alpha'; A, R)",
    "q ((1 - beta) H(alpha'; B, R)",
    "differ in two updates, by up to 2C",
    "with 2C throughout",
    # tests/fedprivacy/accounting/test_fixed_size.py
    "requires at most 1.19 times their noise in the table's settings, and 1.00 to 1.25 times in 15 settings (10 to 900 "
    "of 1000 clients, 1 to 1000 rounds, epsilon 1 to 8)",
    "the reader of a report with many cells of epsilon 2 has seen more than epsilon 2 of each client",
    "*Not delta = 0.*",
    "delta = 1/(number of clients)",
    "[arXiv:2110.03620](https://arxiv.org/abs/2110.03620)",
    "(Mironov 2012)",
    "(`max_participations = 1`)",
    "an update of 650 numbers and norm 1, delta = 1e-5",
    "gradients are summed in float64. The rounding stays within the margin of clipping for up to 40,000 records",
    "the rounding of their float32 gradients at the same weights",
)


def test_the_page_says_what_the_accountants_say() -> None:
    assert [fact for fact in (*facts(), *errors()) if fact not in FLAT] == []


def test_no_other_number_stands_on_the_page() -> None:
    rest = FLAT
    for known in sorted([*facts(), *errors(), *GIVEN], key=len, reverse=True):
        assert known in rest
        rest = rest.replace(known, " ")
    rest = re.sub(r"fedprivacy budget gaussian --noise-multiplier 2\.248 --rounds 100\b[^f]*", " ", rest)
    assert re.findall(r".{0,40}\d.{0,20}", rest) == []


def test_its_commands_are_those_of_its_table() -> None:
    options = {"--noise-multiplier": "noise_multiplier", "--rounds": "rounds",
               "--sampling-rate": "sampling_rate", "--adjacency": "adjacency"}  # fmt: skip
    lines = re.findall(r"(?m)^    fedprivacy budget gaussian (.*)$", PAGE)
    assert len(lines) == 4
    for line in lines:
        words = line.split()
        setting = {options[name]: value for name, value in zip(words[::2], words[1::2], strict=True)}
        numbers = {key: value if key == "adjacency" else float(value) for key, value in setting.items()}
        epsilon = cost(**{**numbers, "rounds": int(numbers["rounds"])})
        assert f"| {printed(epsilon, 3)} |" in PAGE


def test_it_is_linked() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "docs/sharp-edges.md" in (ROOT / name).read_text()
