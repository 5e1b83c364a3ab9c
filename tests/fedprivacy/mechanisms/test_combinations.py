"""Rules between the terms of a plan: each refuses a plan, under the names that its reader knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedprivacy.errors import InputError
from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.combinations import PURE, RULES, RULES_OF_WHOLE_PLANS, Terms, problems
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LOCAL, local_class
from fedprivacy.mechanisms.privunit import PrivUnitG
from fedprivacy.mechanisms.pure import PureMechanism
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.batches import PoissonBatches, ShuffledBatches
from fedprivacy.sampling.cohorts import (
    AllSampling,
    CyclicPoissonSampling,
    FixedSampling,
    PoissonSampling,
    SeparatedSampling,
)
from fedprivacy.sampling.groups import Group, Groups

APART = SeparatedSampling(2, 4)
CENTRAL = Plan("central", "client", "replace-one", 20, 10, APART, Gaussian(1.0, 2.0), 1e-3)
LOCAL_PLAN = replace(CENTRAL, trust="local", sampler=AllSampling(), noise_draw="client", max_participations=3)
MESSAGES = replace(LOCAL_PLAN, mechanism=PrivUnitG(1.0, 1.0))
RECORDS = replace(LOCAL_PLAN, unit="example", batches=ShuffledBatches(1))
BANDED = replace(CENTRAL, mechanism=BandedGaussian(1.0, 2.0, 4, 10))
CYCLIC = replace(BANDED, sampler=CyclicPoissonSampling(0.1, 4))
ADAPTIVE = replace(CENTRAL, mechanism=AdaptiveGaussian(1.0, 2.0, 0.5, 0.2, 5.0))
SIGNS = replace(CENTRAL, mechanism=EncodedGaussian(1.0, 2.0, "signs", 9, 9))
STUDENT = replace(CENTRAL, mechanism=EncodedStudent(1.0, 2.0, 9.0, "signs", 9, 9))
SHARES = replace(
    LOCAL_PLAN, trust="distributed", noise_draw=None, mechanism=Skellam(1.0, 2.0, 10, 18, 20, 15, 2)
)
GROUPS = Groups((Group("cautious", share=0.25),))
GROUPED = replace(LOCAL_PLAN, groups=GROUPS)
OF_RECORDS = {"unit": "example", "batches": ShuffledBatches(1)}
# A plan, what is changed in it, and the term and the words of the rule that it breaks then.
BROKEN = [
    (CENTRAL, {"sampler": SeparatedSampling(2, 0)}, "sampling", "at least 1"),
    (CENTRAL, {"sampler": SeparatedSampling(2, 11)}, "separation", "would have to answer twice in 11 rounds"),
    (CENTRAL, {"adjacency": "add-remove"}, "adjacency", "change when the others come"),
    (CENTRAL, {"max_participations": 3}, "max_participations", "no effect under trust"),
    (LOCAL_PLAN, {"adjacency": "add-remove"}, "adjacency", "the server sees who answers"),
    (MESSAGES, {"adjacency": "zero-out"}, "adjacency", '"replace-one" alone'),
    (MESSAGES, {"trust": "central", "max_participations": None}, "mechanism", "messages of clients"),
    (MESSAGES, {"noise_draw": "sum"}, "noise_draw", "cannot stand for a sum"),
    (MESSAGES, OF_RECORDS, "mechanism", "each step on records"),
    (RECORDS, {"noise_draw": "sum"}, "noise_draw", "of which no sum can be drawn"),
    (STUDENT, {"trust": "local"}, "mechanism", "the noise of a server"),
    (ADAPTIVE, {"trust": "local"}, "clipping_quantile", "the server adapts"),
    (ADAPTIVE, OF_RECORDS, "clipping_quantile", "not of gradients"),
    (SIGNS, OF_RECORDS, "encoding", "updates are encoded"),
    (STUDENT, OF_RECORDS, "encoding", "updates are encoded"),
    (BANDED, {"sampler": AllSampling()}, "bands", '"all" does not keep to that'),
    (BANDED, {"sampler": SeparatedSampling(2, 3)}, "bands", "would share noise"),
    (BANDED, {"trust": "local"}, "bands", "the server correlates"),
    (BANDED, OF_RECORDS, "bands", "records are in several rounds"),
    (BANDED, {"rounds": 11}, "rounds", "made for 10 rounds"),
    (CYCLIC, {"adjacency": "add-remove"}, "adjacency", 'the others come with sampling "cyclic-poisson"'),
    (CYCLIC, {"sampler": CyclicPoissonSampling(0.1, 3)}, "bands", "larger than groups = 3: two answers"),
    (CYCLIC, {"mechanism": Gaussian(1.0, 2.0)}, "sampling", "as many groups as there are bands"),
    (LOCAL_PLAN, {"sampler": CyclicPoissonSampling(0.1, 4)}, "sampling", "on the updates of clients"),
    (CYCLIC, OF_RECORDS, "sampling", "on the updates of clients"),
    (
        BANDED,
        {"rounds": 10**6, "population": 10**4, "sampler": SeparatedSampling(2, 1000), "mechanism": BandedGaussian(1.0, 2.0, 200, 10**6)},
        "bands",
        "takes too long to find",
    ),
    (MESSAGES, {"noise_draw": None}, "noise_draw", "a draw of its own"),
    (RECORDS, {"batches": None}, "batches", "how batches of records are drawn"),
    (CENTRAL, {"batches": ShuffledBatches(1)}, "batches", "no other unit does"),
    (RECORDS, {"trust": "central", "noise_draw": None, "batches": PoissonBatches(3, 0.5)}, "batches", "one step"),
    (MESSAGES, {"trust": "shuffled"}, "trust", "unknown. Use one of"),
    (SHARES, {"adjacency": "add-remove"}, "adjacency", "a client that leaves takes its share of the noise along"),
    (SHARES, OF_RECORDS, "unit", "none to gradients of records"),
    (SHARES, {"sampler": PoissonSampling(0.5)}, "sampling", "a Poisson cohort has none"),
    (SHARES, {"trust": "central", "max_participations": None}, "mechanism", "is noise in shares"),
    (LOCAL_PLAN, {"trust": "distributed"}, "mechanism", "is no noise in shares"),
    (SHARES, {"mechanism": ClipOnly(1.0)}, "mechanism", "is no noise in shares"),
    (SHARES, {"mechanism": None}, "mechanism", 'missing: trust "distributed" needs noise in shares'),
    (SHARES, {"sampler": FixedSampling(11)}, "min_survivors", "no round has more than 11 clients"),
    (MESSAGES, {"unit": "household"}, "unit", "unknown. Use one of"),
    (MESSAGES, {"adjacency": "bounded"}, "adjacency", "unknown. Use one of"),
    (MESSAGES, {"noise_draw": "other"}, "noise_draw", "unknown. Use one of"),
    (GROUPED, {"trust": "none", "mechanism": ClipOnly(1.0), "max_participations": None}, "groups", "no group has an epsilon"),
    (SHARES, {"groups": GROUPS}, "groups", "sums in which shares differ"),
    (RECORDS, {"groups": GROUPS}, "groups", "noise in steps on records is alike"),
    (MESSAGES, {"groups": GROUPS}, "groups", "accounted for with Gaussian noise"),
    (STUDENT, {"groups": GROUPS}, "groups", "accounted for with Gaussian noise"),
    (ADAPTIVE, {"groups": GROUPS}, "groups", "the count that moves the clipping norm"),
    (BANDED, {"groups": GROUPS}, "groups", "of one weight and one schedule"),
    (SIGNS, {"groups": GROUPS}, "groups", "after the encoding, whose codes it changes"),
    (CENTRAL, {"groups": GROUPS}, "groups", "the proof for them exchanges a client"),
    (CENTRAL, {"groups": GROUPS, "sampler": FixedSampling(2)}, "groups", '"fixed" has cohorts of a fixed size'),
    (RECORDS, {"personal": "partial"}, "personal", "clipping one gradient no longer bounds what a record does"),
    (CENTRAL, {"personal": "partial"}, "personal", '"separated" a client\'s past rounds change'),
    (SHARES, {"personal": "ditto"}, "personal", "keep no parameters from round to round"),
    (GROUPED, {"personal": "partial"}, "personal", "whose budgets differ"),
    (LOCAL_PLAN, {"personal": "secret"}, "personal", "unknown. Use one of"),
]  # fmt: skip


def broken(plan: Plan, changes: dict) -> str:
    with pytest.raises(InputError) as refused:
        replace(plan, **changes)
    return str(refused.value)


@pytest.mark.parametrize(("plan", "changes", "term", "words"), BROKEN)
def test_a_plan_is_refused_at_the_term_that_breaks_a_rule(
    plan: Plan, changes: dict, term: str, words: str
) -> None:
    assert any(line.startswith(term) and words in line for line in broken(plan, changes).splitlines())


def test_each_rule_refuses_a_plan() -> None:
    def leaves(entry: Entry[Terms]) -> list[Rule[Terms]]:
        rules = entry.entries if isinstance(entry, First) else [entry]
        return [rule for rule in rules if isinstance(rule, Rule)]

    lines = [line for plan, changes, *_ in BROKEN for line in broken(plan, changes).splitlines()]
    for rule in [rule for entry in (*RULES, *RULES_OF_WHOLE_PLANS) for rule in leaves(entry)]:
        words = rule.problem if isinstance(rule.problem, str) else ""
        assert any(line.startswith(rule.key) and words in line for line in lines), rule


def test_a_plan_that_breaks_several_rules_is_told_all_of_them() -> None:
    text = broken(BANDED, {"rounds": 11, "adjacency": "add-remove"})
    assert [line.split(" ")[0] for line in text.splitlines()] == ["adjacency", "rounds"]


def test_pure_mechanisms_are_those_whose_event_is_one_of_pure_epsilon() -> None:
    pure = [name for name in LOCAL if issubclass(local_class(name), PureMechanism)]
    assert pure == list(PURE)


def test_a_problem_has_the_names_of_its_reader() -> None:
    apart = {"sampling": "separated", "cohort": 3, "separation": 5, "population": 12, "bands": 6}
    options = {term: f"--{term}" for term in apart} | {"sampling": ""}
    for names, lines in (
        ({}, ["separation = 5: 5 cohorts of 3", "bands = 6: larger than separation = 5"]),
        (
            {"separation": "sampling.separation", "bands": "privacy.bands"},
            ["sampling.separation = 5: 5 cohorts", "privacy.bands = 6: larger than sampling.separation = 5"],
        ),
        (options, ["--separation 5: 5 cohorts of 3", "--bands 6: larger than --separation 5"]),
    ):
        texts = [str(problem) for problem in problems(Terms(**apart, names=names), RULES)]
        assert [text[: len(line)] for text, line in zip(texts, lines, strict=True)] == lines


def test_the_refusal_of_too_many_bands_names_the_groups_as_a_plan_states_them() -> None:
    with pytest.raises(InputError, match=r"larger than groups = 3: two answers"):
        replace(CYCLIC, sampler=CyclicPoissonSampling(0.1, 3))
