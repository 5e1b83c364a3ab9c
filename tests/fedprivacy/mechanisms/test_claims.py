"""Every registered mechanism keeps what it claims, and one with half the noise fails each of its checks.

False-alarm rate of each check: 1e-6 (audits: 1e-3), with fixed seeds; see `claims`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from claims import CLAIMS
from claims.claim import Claim

from fedprivacy.erm import APPROACHES
from fedprivacy.mechanisms.registry import REGISTRY, mechanism_class
from fedprivacy.tuning import CHOICES

ALL: dict[str, type] = {**{name: mechanism_class(name) for name in REGISTRY}, **APPROACHES, **CHOICES}

CHECKS = ("distribution", "moments", "privacy", "audit")


def instances(claim: Claim) -> Iterator[tuple[Any, list[pytest.MarkDecorator]]]:
    """The instances of a claim with their marks: in every run is the first that is audited, by all checks."""
    first = next(instance for instance in claim.instances if claim.audited(instance))
    for instance in claim.instances:
        yield instance, [] if instance is first else [pytest.mark.exhaustive]


ENTRIES = [
    pytest.param(claim, instance, id=repr(instance), marks=marks)
    for claim in CLAIMS.values()
    for instance, marks in instances(claim)
]
CHECKED = [
    pytest.param(claim, instance, check, id=f"{instance!r}-{check}", marks=marks)
    for claim in CLAIMS.values()
    for instance, marks in instances(claim)
    for check in CHECKS
    if check != "audit" or claim.audited(instance)
]


def test_every_registered_mechanism_has_a_claim() -> None:
    assert set(CLAIMS) == set(ALL)


@pytest.mark.parametrize(("name", "kind"), ALL.items())
def test_a_mechanism_stands_under_its_own_name_and_says_what_it_is(name: str, kind: type) -> None:
    entries = CLAIMS[name].instances
    assert kind.name == name
    assert kind.title
    assert entries
    assert all(type(instance) is kind and instance.words for instance in entries)
    assert any(CLAIMS[name].audited(instance) for instance in entries)


@pytest.mark.parametrize(("claim", "instance", "check"), CHECKED)
def test_it_keeps_what_it_claims(claim: Claim, instance: Any, check: str) -> None:
    getattr(claim, check)(instance, instance)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize(("claim", "instance", "check"), CHECKED)
def test_with_half_the_noise_it_does_not(claim: Claim, instance: Any, check: str) -> None:
    # An audit must prove too much, not too little.
    with pytest.raises(AssertionError, match="is proved" if check == "audit" else None):
        getattr(claim, check)(instance, claim.halved(instance))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_has_an_oracle_or_says_why_there_is_none(claim: Claim) -> None:
    assert (type(claim).oracle is Claim.oracle) == bool(claim.no_oracle)


def test_a_claim_without_either_fails() -> None:
    forgotten = copy(CLAIMS["sqkr"])
    forgotten.no_oracle = ""
    with pytest.raises(AssertionError, match="write an oracle"):
        forgotten.oracle(forgotten.instances[0])


@pytest.mark.parametrize(("claim", "instance"), ENTRIES)
def test_others_say_the_same(claim: Claim, instance: Any) -> None:
    claim.oracle(instance)
