"""The ledger: the releases to each observer as DpEvents, from which guarantees are computed.

A ledger states one or more claims for each observer: an event that bounds the observer's whole view, and the
assumptions that the claim needs. A round's requested clients are charged before its first message, and its
model before it moves, so a crash cannot lose a charge. Under local and distributed trust a claim is for the
client with the most participations. A stored ledger is derived again from its plan and rounds, and compared
(`fedprivacy.verification`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.accounting.events import to_json
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.assumptions import TrainingAssumption as Assume
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.guarantees.per_client import client_events, spread
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.io.tensor_file import stored_array
from fedprivacy.io.validation import Fields, check
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LocalMechanism
from fedprivacy.mechanisms.noise_shares import NoiseShares, Observer
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import CyclicPoissonSampling, SeparatedSampling
from fedprivacy.sampling.groups import members

BROKEN_OFF = Assume.BROKEN_OFF
# The assumptions that `Ledger._common` lists after it.
_AFTER_BROKEN_OFF = (
    Assume.NODES_ANSWER,
    Assume.FILE_READ,
    Assume.SIZES_PUBLIC,
    Assume.RECORDS_TRAIN,
    Assume.FROZEN_WEIGHTS,
    Assume.GROUPS_PUBLIC,
    Assume.GROUPS_BY_LABEL,
    Assume.PERSONAL,
    Assume.PUBLIC_SHAPE,
)


class Facts(Fields):
    """The part of a ledger in a checkpoint that is no array."""

    rounds: Annotated[int, Field(ge=0)]
    least_shares: int | None


class Ledger:
    """Counts what a run releases and states it as claims, one or more for each observer.

    Args:
        plan: The plan that the run follows; its objects state the events.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        tested: Whether held-out records belong to clients (`Population.tests_clients`).
        sizes: The records of each client, shape (population,): with unit "example" the cost of each client is
            then known, and not only the largest.
        stated: The submitter's statements about remote nodes.
        counts: Of a stored ledger under local or distributed trust, the number of clients by participations.
            Single clients are not known then, so nothing more can be charged.
        counts_of_groups: The same for each group of clients with a budget of its own; None: each client of a
            group may have participated as often as any.
        broken_off: Whether a fault has ended the run once, which the observer must not learn. Resuming the
            run does not undo that.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        held: bool = True,
        tested: bool = False,
        sizes: NDArray[np.int64] | None = None,
        stated: Stated = SIMULATION,
        counts: Mapping[int, int] | None = None,
        counts_of_groups: Mapping[str, Mapping[int, int]] | None = None,
        broken_off: bool = False,
    ) -> None:
        self.plan, self.held, self.tested, self.sizes = plan, held, tested, sizes
        self.stated, self.broken_off = stated, broken_off
        self.rounds = 0
        self._in_advance = False
        self.participations: NDArray[np.int32] | None = None
        # The least number of noise shares in any sum; 0 once a requested client did not answer,
        # since who fails may depend on the data.
        self.least_shares: int | None = None
        self._counts, self._counts_of_groups = counts, counts_of_groups or {}
        self._whole: Plan | None = None  # of a group's ledger: the plan of all
        if plan.distrusts_server and counts is None:
            self.participations = np.zeros(plan.population, dtype=np.int32)
        # The last round in which each client was requested, under a separation of participations.
        self._last_rounds: NDArray[np.int32] | None = None
        if isinstance(plan.sampler, SeparatedSampling) and plan.separation > 1 and counts is None:
            self._last_rounds = np.full(plan.population, -plan.separation, dtype=np.int32)

    def in_advance(self, *, broken_off: bool = False) -> Ledger:
        """The ledger of the whole plan: the cost of a run that may end at any time, for any reason.

        Args:
            broken_off: Whether a fault has ended the run now.
        """
        counts = None if self._counts is None else {self.plan.answers: self.plan.population}
        whole = Ledger(
            self.plan,
            held=self.held,
            tested=self.tested,
            sizes=self.sizes,
            stated=self.stated,
            counts=counts,
            broken_off=self.broken_off or broken_off,
        )
        whole._in_advance, whole.rounds = True, self.plan.rounds
        if whole.participations is not None:
            whole.participations += self.plan.answers
        return whole

    def of_group(self, name: str) -> Ledger:
        """The ledger of one group of clients with a budget of its own: that of a run with this group alone.

        Args:
            name: A name in `Plan.groups`.
        """
        plan, groups = self.plan, self.plan.groups
        assert groups is not None
        size = groups.sizes(plan.population)[name]
        counts: Mapping[int, int] | None = None
        if self.participations is not None:
            here = self.participations[members(groups, plan.population) == groups.names.index(name)]
            values, numbers = np.unique(here, return_counts=True)
            counts = dict(zip(values.tolist(), numbers.tolist(), strict=True))
        elif self._counts is not None:
            counts = self._counts_of_groups.get(name, {self._most: size})
        ledger = Ledger(
            plan.of_group(name),
            held=self.held,
            tested=self.tested,
            sizes=self.sizes,
            stated=self.stated,
            counts={} if counts is None else counts,
            broken_off=self.broken_off,
        )
        ledger.rounds, ledger.least_shares, ledger._in_advance = (
            self.rounds,
            self.least_shares,
            self._in_advance,
        )
        ledger._whole = plan
        return ledger

    def covers(self, stored: Mapping[str, Any]) -> bool:
        """Whether this ledger includes every charge of a stored one (`to_json`)."""
        answers = max(map(int, stored.get("participations", {})), default=0)
        least = stored["least_shares"]
        shares = least is None or (self.least_shares is not None and self.least_shares <= least)
        return shares and self.rounds >= stored["rounds"] and self._most >= answers

    @property
    def _most(self) -> int:
        if self.participations is None:
            return max(self._counts or {}, default=0)
        return int(self.participations.max(initial=0))

    @property
    def _answered(self) -> dict[str, int] | None:
        """The number of clients by participations; None where these are not counted."""
        if not self.plan.distrusts_server:
            return None
        if self.participations is None:
            return {str(count): clients for count, clients in sorted((self._counts or {}).items())}
        counts, numbers = np.unique(self.participations, return_counts=True)
        return {str(count): int(number) for count, number in zip(counts, numbers, strict=True)}

    def request(self, cohort: NDArray[np.int64]) -> None:
        """Charges a round's messages, before the first is requested.

        Under local trust the server sees each message as it arrives, so every requested client is charged,
        whether it answers or not, and also if the round is interrupted. So it is under distributed trust,
        whose rounds with too few survivors release nothing and stay charged.

        Args:
            cohort: The requested ids, shape (cohort,).

        Raises:
            RunError: one of them would come back sooner than the plan allows, or is in another group than
                the round's; nobody is charged.
        """
        if isinstance(self.plan.sampler, CyclicPoissonSampling):
            members = self.plan.sampler.members(self.plan.population, self.rounds)
            if len(others := np.setdiff1d(cohort, members)):
                raise RunError(
                    f"round {self.rounds}: client {others[0]} is not in the group of this round, and the "
                    "plan allows each client the rounds of its own group alone."
                )
        if self._last_rounds is not None:
            early = cohort[self.rounds - self._last_rounds[cohort] < self.plan.separation]
            if len(early):
                raise RunError(
                    f"round {self.rounds}: client {early[0]} participated in round "
                    f"{self._last_rounds[early[0]]}, and the plan allows each client one participation in "
                    f"{self.plan.separation} rounds."
                )
            self._last_rounds[cohort] = self.rounds
        if self.participations is not None:
            self.participations[cohort] += 1

    def release(self, cohort: NDArray[np.int64], answered: int) -> None:
        """Charges a round's new model, before it is sent or stored.

        Args:
            cohort: The requested ids, shape (cohort,).
            answered: The number of answers.
        """
        self.rounds += 1
        if self.plan.trust == "local" and self.participations is not None and len(cohort):
            # Who fails may depend on the data, so a sum with missing shares claims no summed noise at all.
            shares = answered if answered == len(cohort) else 0
            self.least_shares = shares if self.least_shares is None else min(self.least_shares, shares)

    def eligible(self) -> NDArray[np.int64] | None:
        """The clients that may be requested now: cap and separation respected; None without limits."""
        cap = self.plan.max_participations
        capped = self.participations is not None and cap is not None and cap < self.plan.rounds
        if self._last_rounds is None and not capped:
            return None
        allowed = np.ones(self.plan.population, dtype=np.bool_)
        if self._last_rounds is not None:
            allowed &= self.rounds - self._last_rounds >= self.plan.separation
        if self.participations is not None and cap is not None and capped:
            allowed &= self.participations < cap
        return np.flatnonzero(allowed)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The state for a checkpoint: arrays, and small facts."""
        held = {"ledger/participations": self.participations, "ledger/asked": self._last_rounds}
        arrays: dict[str, NDArray[Any]] = {key: value for key, value in held.items() if value is not None}
        return arrays, {"rounds": self.rounds, "least_shares": self.least_shares}

    def restore(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Restores what `state` returned.

        Raises:
            InputError: it is not that, or of another plan.
        """
        check(facts, Facts, "the checkpoint", "Remove it, or start a new run.")
        if self.participations is not None:
            self.participations = stored_array(arrays, "ledger/participations", self.participations)
        if self._last_rounds is not None:
            self._last_rounds = stored_array(arrays, "ledger/asked", self._last_rounds)
        self.rounds, self.least_shares = facts["rounds"], facts["least_shares"]

    def to_json(self) -> dict[str, Any]:
        """The ledger as stored in the run record; `statement.guarantees` accounts for it again."""
        plan = self.plan
        data: dict[str, Any] = {
            "trust": plan.trust,
            "unit": plan.unit,
            "adjacency": plan.adjacency,
            "delta": plan.delta,
            "population": plan.population,
            "sampling": self._sampling_words(),
            "rounds": self.rounds,
            "least_shares": self.least_shares,
            "held": self.held,
            "claims": [claim for observer in OBSERVERS for claim in self._claims(observer)],
        }
        if (answered := self._answered) is not None:
            data["participations"] = answered
        if plan.unit == "example":
            data["records_per_client"] = spread(self.sizes)
        noise = plan.step_noise or plan.central_noise
        if plan.batches is not None and noise is not None and self.sizes is not None:
            answers = self.participations
            if answers is None:  # the cohort amplifies nothing here, so participations are not counted
                answers = np.full(plan.population, plan.charged(self.rounds), dtype=np.int32)
            data["clients"] = client_events(plan.batches, noise.event(), self.sizes, answers)
        if plan.groups is not None:
            sizes = plan.groups.sizes(plan.population)
            data["groups"] = [self._group(name, size) for name, size in sizes.items()]
        return data

    def _group(self, name: str, size: int) -> dict[str, Any]:
        """The ledger of a group, without what it shares with that of all clients."""
        ledger = self.of_group(name)
        part = {
            "name": name,
            "clients": size,
            "sampling": f"{self._group_words(name, size)}, {ledger._sampling_words()}",
            "claims": [claim for observer in OBSERVERS for claim in ledger._claims(observer)],
        }
        return part if (answered := ledger._answered) is None else {**part, "participations": answered}

    def _group_words(self, name: str, size: int) -> str:
        groups = self.plan.groups
        assert groups is not None
        words = groups[name].words
        clients = f"{size} client{'' if size == 1 else 's'}"
        return f"group {name} of {clients}" + (f" ({words})" if words else "")

    def _sampling_words(self) -> str:
        words = self.plan.sampler.words
        if self.plan.batches is not None:
            words = f"{self.plan.batches.words}; {words}"
        if self.plan.distrusts_server:
            words += f", at most {self._most} answer{'' if self._most == 1 else 's'} of one client"
        if self.plan.trust == "central" and self.plan.separation > 1:
            words += f", so at most {self.plan.charged(self.rounds)} times in all"
        return words + (", the whole plan charged in advance" if self._in_advance else "")

    def _claims(self, observer: Observer) -> list[dict[str, Any]]:
        plan = self.plan
        noisy = plan.randomiser or plan.step_noise or plan.central_noise or plan.shares
        if noisy is None:
            reason = Assume.NO_NOISE if plan.mechanism is None else Assume.CLIPPED_ALONE
            return [_claim(observer, None, [reason])]
        if plan.trust == "central":
            if observer == "server":
                return [_claim(observer, None, [Assume.SERVER_SEES_UPDATES])]
            event = dp.SelfComposedDpEvent(plan.release_event(), plan.charged(self.rounds))
            # With unit "example" the batch amplifies, not the cohort.
            open_to_all = plan.sampler.name in ("all", "separated")
            secret = [] if open_to_all or plan.batches else [Assume.SECRET_COHORT]
            shared = plan.banded is not None and plan.banded.bands > 1
            secret += [Assume.SEPARATED] * (plan.sampler.name == "separated")
            secret += [Assume.GROUPS_DEALT] * (plan.sampler.name == "cyclic-poisson" and plan.separation > 1)
            secret += [Assume.NOISE_SECRET] * shared
            assumptions = [Assume.SERVER_TRUSTED, *secret, Assume.NOT_SHOWN, *self._common]
            return [_claim(observer, event, assumptions)]
        # No mechanism protects records from a process that has read them before any noise.
        if observer == "server" and self.stated.reads:
            return [_claim(observer, None, [Assume.SERVER_READS])]
        if plan.shares is not None:
            return [self._claim_of_shares(observer, plan.shares)]
        if plan.step_noise is not None:
            # Every observer sees at most the models that clients answer with, and each step is noisy.
            event = dp.SelfComposedDpEvent(plan.release_event(), self._most)
            enforced = self._by_whom(Assume.STEPS_ENFORCED, Assume.STEPS_PINNED, Assume.STEPS_HANDED)
            return [_claim(observer, event, [enforced, Assume.HIDDEN, *self._common])]
        assert plan.randomiser is not None
        return self._local_claims(observer, plan.randomiser)

    def _claim_of_shares(self, observer: Observer, shares: NoiseShares) -> dict[str, Any]:
        # Pinned nodes send no message without a mask; others do what the run requests.
        masked = not self.held and self.stated.pinned
        if observer == "server" and not (self.held or masked):
            return _claim(observer, None, [Assume.SUM_AT_SERVER])
        # No observer is amplified by sampling: who is drawn brings noise along. The claim is for the client
        # that was requested most often, also in rounds that were void.
        try:
            event = dp.SelfComposedDpEvent(shares.event(observer), self._most)
        except InputError:  # one honest share, which may be the participant's
            return _claim(observer, None, [Assume.SHARE_KNOWN])
        enforced = self._by_whom(Assume.SHARES_ENFORCED, Assume.SHARES_PINNED, Assume.SHARES_HANDED)
        assumptions = [
            Assume.MASKED_SUM if masked else Assume.IDEAL_SUM,
            colluding(shares, observer),
            Assume.DROPOUTS_BLIND,
            enforced,
            Assume.HIDDEN,
        ]
        return _claim(observer, event, [*assumptions, *self._common])

    def _local_claims(self, observer: str, mechanism: LocalMechanism) -> list[dict[str, Any]]:
        # The claim is for the client that answered most often; others have spent less.
        most, enforced = self._most, self._by_whom(Assume.ENFORCED, Assume.PINNED, Assume.HANDED)
        event = dp.SelfComposedDpEvent(mechanism.event(), most)
        claims = [_claim(observer, event, [enforced, Assume.HIDDEN, *self._common])]
        # An outsider sees only functions of the sums, which contain the noise of all answers; its
        # distribution is known for Gaussian noise. A participant may share a node with others and know their
        # noise, so it gets no smaller epsilon than the server.
        shares = self.least_shares or 0
        if observer == "outsider" and shares > 1 and isinstance(mechanism, Gaussian):
            # In a group's sums others may have less noise: at least that of the plan of all.
            others = None if self._whole is None else self._whole.randomiser
            assert others is None or isinstance(others, Gaussian)
            summed = dp.SelfComposedDpEvent(mechanism.summed_event(shares, others), most)
            assumptions = [enforced, Assume.OTHERS_HONEST, Assume.HIDDEN, *self._common]
            claims.append(_claim(observer, summed, assumptions))
        return claims

    def _by_whom(self, held: str, pinned: str, handed: str) -> str:
        """The assumption about enforcement of the plan: by the clients, or by the run's submitter."""
        return held if self.held else pinned if self.stated.pinned else handed

    @property
    def _common(self) -> list[str]:
        """The assumptions of every claim."""
        of_records, local = self.plan.unit == "example", self.plan.trust == "local"
        sometimes = [Assume.TESTED_CLIENTS] * self.tested + [Assume.BROKEN_OFF] * self.broken_off
        sometimes += [Assume.NODES_ANSWER] * (self.plan.distrusts_server and not self.held)
        sometimes += [Assume.FILE_READ] * self.stated.reads
        records = [Assume.SIZES_PUBLIC, Assume.RECORDS_TRAIN] * of_records
        frozen = self.plan.frozen
        records += [Assume.FROZEN_WEIGHTS] * (frozen is not None and not frozen.is_by_formula)
        groups = (self._whole or self.plan).groups
        if groups is not None:
            show_labels = any(group.shows_labels for group in groups.groups)
            records.append(Assume.GROUPS_BY_LABEL if show_labels else Assume.GROUPS_PUBLIC)
        records += [Assume.PERSONAL] * (self.plan.personal is not None)
        if self.plan.shares is not None:
            return [*sometimes, *records, Assume.PUBLIC_SHAPE, self.stated.randomness_of_shares]
        # With unit "example" the clients' batches amplify under central trust too.
        randomness = self.stated.randomness(server=self.plan.trust == "central", nodes=local or of_records)
        return [*sometimes, *records, Assume.PUBLIC_SHAPE, randomness]


def colluding(shares: NoiseShares, observer: Observer) -> str:
    """The assumption about the clients of a sum: how many there are, and how many of these collude."""
    known = shares.min_survivors - shares.shares_against(observer)
    some = f"at most {known}" if known else "none"
    itself = ", itself among them," if observer == "participant" else ""
    return (
        f"a sum is opened for at least {shares.min_survivors} clients; the observer knows the noise of "
        f"{some} of them{itself} and the others follow the plan"
    )


def broke_off(assumptions: Sequence[str]) -> list[str]:
    """The assumptions of a claim, with `BROKEN_OFF` in the place where `Ledger` has it."""
    if BROKEN_OFF.among(assumptions):  # a run that was resumed
        return list(assumptions)
    # Verification rebuilds the ledger and compares it with the stored one, so the place matters.
    at = next(
        (at for at, text in enumerate(assumptions) if Assume.of(text) in _AFTER_BROKEN_OFF),
        len(assumptions),
    )
    return [*assumptions[:at], str(BROKEN_OFF), *assumptions[at:]]


def has_broken_off(ledger: Mapping[str, Any]) -> bool:
    """Whether a stored ledger (`Ledger.to_json`) is of a run that once ended by a fault."""
    return any(BROKEN_OFF.among(claim["assumptions"]) for claim in ledger["claims"])


def _claim(observer: str, event: dp.DpEvent | None, assumptions: list[str]) -> dict[str, Any]:
    return {
        "observer": observer,
        "event": None if event is None else to_json(event),
        "assumptions": [str(assumption) for assumption in assumptions],
    }
