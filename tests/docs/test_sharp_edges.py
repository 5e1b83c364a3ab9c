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
def noise(**asked: float | str) -> float:
    return float(GaussianQuestion(**asked).document()["noise_multiplier"])


@cache
def cost(**asked: float | str) -> float:
    return float(GaussianQuestion(**asked).document()["epsilon"])


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
    said = []
    for epsilon in (1, 2, 4, 8):
        sure = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
        digits = 4 if epsilon == 8 else 3
        said.append(f"| {epsilon} | {printed(math.exp(epsilon), digits)} | {printed(sure, digits)} % |")
    changes = {
        "add-remove": "a client is there or not",
        "zero-out": "a client's update is zero or not",
        "replace-one": "a client's records become any others",
    }
    for adjacency in ADJACENCIES:
        given = {"noise_multiplier": 2.248, "adjacency": adjacency}
        amplified, plain = cost(**given, **POISSON), cost(**given, rounds=100)
        row = f"| `{adjacency}`: {changes[adjacency]} | {printed(amplified, 3)} | {printed(plain, 3)} |"
        said.append(row)
    one = noise(epsilon=2.0, **POISSON)
    two, three = (printed(cost(noise_multiplier=one, rounds=100 * n, sampling_rate=0.1), 3) for n in (2, 3))
    said.append(
        "The noise that makes 100 rounds at rate 0.1 cost epsilon 2 (replace-one, delta = 1e-5) makes 200 "
        f"rounds, or two such runs with other seeds on the same people, cost {two}, and three runs {three}."
    )
    said.append(
        "for 100 rounds at delta = 1e-5, of 100 out of 1000 clients and of Poisson sampling at rate 0.1"
    )
    for epsilon in (1, 2, 4, 8):
        cells = []
        for adjacency in ("replace-one", "zero-out"):
            asked = {"epsilon": float(epsilon), "adjacency": adjacency}
            fixed, poisson = (
                noise(**asked, rounds=100, cohort=100, population=1000),
                noise(**asked, **POISSON),
            )
            cells.append(f"{printed(fixed, 3)} | {printed(poisson, 3)} | {fixed / poisson:.2f}x")
        said.append(f"| {epsilon} | {' | '.join(cells)} |")
    said.append("Zhu, Dong and Wang 2022, Theorem 11")
    composed = ComposeQuestion(rounds=100, epsilon=0.1).document()
    theorems = {row["name"]: printed(row["epsilon"], 3) for row in composed["table"] if row["epsilon"]}
    said.append(
        f"100 releases, each epsilon 0.1 and nothing else known, cost epsilon {theorems['basic']} by adding, and "
        f"{theorems['optimal']} at delta = 1e-5 by the best theorem that there is"
    )
    single = noise(epsilon=2.0)
    pure, grown = group(2.0, 1e-9, 4)
    four = GroupQuestion(size=4, noise_multiplier=single, delta=1e-5).document()
    mixed = ShuffleQuestion(clients=1000, local_epsilon=1.0).document()
    said += [
        f"A household of 4 has 4 times the epsilon, {pure:g} where each has 2, and a delta of 4 e^6 = "
        f"{grown / 1e-9:,.0f} times as large",
        "Gaussian noise made for epsilon 2 at delta = 1e-5 gives the four together epsilon "
        f"{printed(four['epsilon'], 3)} at the same delta",
        "If somebody honest takes the names off 1000 answers of epsilon 1 and mixes them, they cost whoever sees "
        f"only that mixture epsilon {printed(mixed['epsilon'], 3)} at delta = 1e-5",
        f"each answer costs epsilon {mixed['local_epsilon']:g} as before",
    ]
    said += [
        "One release of Gaussian noise at epsilon 2 (delta = 1e-5), tried with 10 settings:",
        "| nothing is tried: one run | 2 |",
        f"a logarithmic distribution of mean 10, only the best is shown | {printed(selected(0), 3)} |",
        f"a geometric distribution of mean 10 | {printed(selected(1), 3)} |",
        f"| all 10 are looked at | {printed(cost(noise_multiplier=single, rounds=10), 3)} |",
    ]
    share = 1000 / (1000 + 9 * 10)
    said += [
        "Take 10 clients, one with 1000 records and nine with 10 each, and updates clipped to 1.",
        f"replacing the large client moves the mean by at most {2 / 10:g}.",
        f"With weights by records it moves it by {printed(2 * share, 3)}.",
        "Noise made for epsilon 2 in one release would then be worth epsilon "
        f"{printed(cost(noise_multiplier=single / (share * 10)), 3)}",
    ]
    powers = range(32)
    most = max(2**n for n in powers if math.isclose(rounding(2**n), 2.0 ** (n - 29), rel_tol=0.01))
    assert 0.01 < max(rounding(2**n) for n in powers) < 0.016  # 2^31: more than a scenario may have
    said.append(
        f"about n 2^-29 of it for up to {most:,} clients (n), and less than 1.6 % for as many as a scenario may have"
    )
    return said


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
    "Noise of standard deviation 2.248 x C on the sum of updates clipped to C, 100 rounds, delta = 1e-5:",
    "Poisson sampling, rate 0.1, cohort secret",
    "from 50 % before",
    "At epsilon 8 the guarantee alone",
    "by 2C when it turns round",
    "moves by up to 2C between a cohort with it and one without",
    "the mixtures (1 - q) R + q A and (1 - q) R + q B",
    "(Balle, Barthe and Gaboardi 2018, Theorem 2)",
    "at alpha >= 1, with alpha' = 1 + (alpha - 1)/q",
    "q ((1 - beta) H(alpha'; A, R)",
    "q ((1 - beta) H(alpha'; B, R)",
    "differ in two updates, by up to 2C",
    "with 2C throughout",
    # tests/fedprivacy/accounting/test_fixed_size.py
    "asks 1.19 times their noise at most, in 15 settings (10 to 900 of 1000 clients, 1 to 1000 rounds, epsilon 1 to 8) "
    "1.00 to 1.25 times",
    "a report with many cells of epsilon 2 has shown its reader more than epsilon 2 of each client",
    "*Not delta = 0.*",
    "delta = 1/(number of clients)",
    "[arXiv:2110.03620](https://arxiv.org/abs/2110.03620)",
    "(Mironov 2012)",
    "(`max_participations = 1`)",
    "an update of 650 numbers and norm 1, delta = 1e-5",
    "gradients are summed in float64, whose rounding stays within what clipping leaves for up to 40,000 records",
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
    found = re.findall(r"(?m)^    fedprivacy budget gaussian (.*)$", PAGE)
    assert len(found) == 4
    for line in found:
        words = line.split()
        asked = {options[name]: value for name, value in zip(words[::2], words[1::2], strict=True)}
        numbers = {key: value if key == "adjacency" else float(value) for key, value in asked.items()}
        epsilon = cost(**{**numbers, "rounds": int(numbers["rounds"])})
        assert f"| {printed(epsilon, 3)} |" in PAGE


def test_it_is_linked() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "docs/sharp-edges.md" in (ROOT / name).read_text()
