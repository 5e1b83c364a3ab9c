"""The ledger: what was released to whom, as DpEvents, from which every guarantee is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import dp_accounting
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.accounting.events import to_json
from fedprivacy.errors import RunError
from fedprivacy.guarantees.deployment import (
    FILE_READ,
    NODES_ANSWER,
    PINNED,
    SERVER_READS,
    SIMULATION,
    STEPS_PINNED,
    Stated,
)
from fedprivacy.guarantees.per_client import client_events, spread
from fedprivacy.io.tensor_file import stored_array
from fedprivacy.io.validation import Fields, check
from fedprivacy.mechanisms.catalogue import Local
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan

OBSERVERS = ("server", "participant", "outsider")

PUBLIC_SHAPE = (
    "the number of clients, the columns, and the classes with their names are public knowledge, even where "
    "they were read off the data"
)
TESTED_CLIENTS = (
    "accuracy and loss are not shown to the observer: held-out records belong to clients, or may, and no "
    "noise hides what the model does on them"
)
SECRET_COHORT = "the cohort of each round stays secret"
SEPARATED = (
    "the server asks nobody again sooner than it says; who is asked when may be known, and depends on "
    "nobody's records"
)
NOISE_KEPT = "the server keeps the noise of past rounds to itself, with which the exact sums could be found"
SERVER_TRUSTED = "the server is honest: it sees every update, adds the noise and releases nothing else"
NOT_SHOWN = (
    "the fields marked operator-only (who failed and why, counts of zeroed updates) "
    "are not shown to the observer"
)
HIDDEN = "the fields marked operator-only, which whoever runs this sees, are not shown to the observer"
HANDED = (
    "whoever submits the run is honest about the plan: each client clips, draws its own noise and counts its "
    "own answers, but by the plan that came with the run"
)
BROKEN_OFF = (
    "the observer is not told that the run broke off, nor in which round: a fault may depend on the data"
)
CLIPPED_ALONE = "clipping alone is a heuristic: nobody adds noise"
ENFORCED = "each client clips, draws its own noise and counts its own answers, whatever the server asks"
STEPS_ENFORCED = (
    "each client clips the gradient of each record, draws its own batches and noise and counts its own "
    "answers, whatever the server asks"
)
STEPS_HANDED = (
    "whoever submits the run is honest about the plan: each client clips the gradient of each record, draws "
    "its own batches and noise and counts its own answers, but by the plan that came with the run"
)
SIZES_PUBLIC = (
    "how many records each client has is public, and what is reckoned with it (rates, denominators "
    "of means) stays the same if a record comes or goes"
)
RECORDS_TRAIN = (
    "no record makes its client's training fail (raise an error, hang, kill its process): what a failure "
    "takes out of an answer is more than one record's part"
)
OTHERS_HONEST = (
    "neither the server nor another client colludes with the observer: it sees only the final model"
)


class Facts(Fields):
    """What a checkpoint holds of a ledger beside arrays."""

    rounds: Annotated[int, Field(ge=0)]
    least_shares: int | None


class Ledger:
    """Counts what a run releases and states it as claims, one or more for each observer.

    Args:
        plan: The plan that the run follows; its objects state the events.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        tested: Whether held-out records belong to clients (`Population.tests_clients`).
        sizes: The records of each client, shape (population,): with unit "example" what each of them has cost
            can then be told, and not the most alone.
        stated: What whoever submitted the run states of nodes that are not our own.
        counts: Of a stored ledger under local trust, how many clients have answered how often; who did is
            not known then, and nothing can be charged.
        broken_off: Whether a fault has ended the run once, which the observer must not be told; to resume the
            run takes none of it back.
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
        broken_off: bool = False,
    ) -> None:
        self.plan, self.held, self.tested, self.sizes = plan, held, tested, sizes
        self.stated, self.broken_off = stated, broken_off
        self.rounds = 0
        self._in_advance = False
        self.participations: NDArray[np.int32] | None = None
        # The least number of noise shares in any sum; 0 once a client that was asked did not answer,
        # since who fails may depend on the data.
        self.least_shares: int | None = None
        self._counts = counts
        if plan.trust == "local" and counts is None:
            self.participations = np.zeros(plan.population, dtype=np.int32)
        # The round in which each was asked last, where that decides when it may be asked again.
        self._asked: NDArray[np.int32] | None = None
        if plan.separation > 1 and counts is None:
            self._asked = np.full(plan.population, -plan.separation, dtype=np.int32)

    def in_advance(self, *, broken_off: bool = False) -> Ledger:
        """The ledger of the whole plan: what a run costs that may end at any time, for whatever reason.

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

    def covers(self, stored: Mapping[str, Any]) -> bool:
        """Whether nothing that a stored ledger (`to_json`) has charged is missing here."""
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
        """How many clients have answered how often; None where that is not counted."""
        if self.plan.trust != "local":
            return None
        if self.participations is None:
            return {str(count): clients for count, clients in sorted((self._counts or {}).items())}
        counts, numbers = np.unique(self.participations, return_counts=True)
        return {str(count): int(number) for count, number in zip(counts, numbers, strict=True)}

    def ask(self, cohort: NDArray[np.int64]) -> None:
        """Charges a round's messages, before the first is asked for.

        Under local trust the server sees each message as it arrives, so who was asked is charged,
        answer or not, and also if the round is broken off.

        Args:
            cohort: The ids that are asked, shape (cohort,).

        Raises:
            RunError: one of them would come back sooner than the plan allows; nobody is charged.
        """
        if self._asked is not None:
            early = cohort[self.rounds - self._asked[cohort] < self.plan.separation]
            if len(early):
                raise RunError(
                    f"round {self.rounds}: client {early[0]} was asked in round {self._asked[early[0]]}, and "
                    f"the plan asks each at most once in {self.plan.separation} rounds."
                )
            self._asked[cohort] = self.rounds
        if self.participations is not None:
            self.participations[cohort] += 1

    def release(self, cohort: NDArray[np.int64], answered: int) -> None:
        """Charges a round's new model, before it goes anywhere.

        Args:
            cohort: The ids that were asked, shape (cohort,).
            answered: How many of them answered.
        """
        self.rounds += 1
        if self.participations is not None and len(cohort):
            shares = answered if answered == len(cohort) else 0
            self.least_shares = shares if self.least_shares is None else min(self.least_shares, shares)

    def eligible(self) -> NDArray[np.int64] | None:
        """The clients with participations left, asked last long enough ago; None where nobody is limited."""
        cap = self.plan.max_participations
        capped = self.participations is not None and cap is not None and cap < self.plan.rounds
        if self._asked is None and not capped:
            return None
        allowed = np.ones(self.plan.population, dtype=np.bool_)
        if self._asked is not None:
            allowed &= self.rounds - self._asked >= self.plan.separation
        if self.participations is not None and cap is not None and capped:
            allowed &= self.participations < cap
        return np.flatnonzero(allowed)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a checkpoint must hold: arrays, and small facts."""
        held = {"ledger/participations": self.participations, "ledger/asked": self._asked}
        arrays: dict[str, NDArray[Any]] = {key: value for key, value in held.items() if value is not None}
        return arrays, {"rounds": self.rounds, "least_shares": self.least_shares}

    def restore(self, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave.

        Raises:
            InputError: it is not that, or of another plan.
        """
        check(facts, Facts, "the checkpoint", "Remove it, or start a new run.")
        if self.participations is not None:
            self.participations = stored_array(arrays, "ledger/participations", self.participations)
        if self._asked is not None:
            self._asked = stored_array(arrays, "ledger/asked", self._asked)
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
            if answers is None:  # who takes part amplifies nothing here, and is not counted
                answers = np.full(plan.population, plan.charged(self.rounds), dtype=np.int32)
            data["clients"] = client_events(plan.batches, noise.event(), self.sizes, answers)
        return data

    def _sampling_words(self) -> str:
        words = self.plan.sampler.words
        if self.plan.batches is not None:
            words = f"{self.plan.batches.words}; {words}"
        if self.plan.trust == "local":
            words += f", at most {self._most} answer{'' if self._most == 1 else 's'} of one client"
        if self.plan.trust == "central" and self.plan.separation > 1:
            words += f", so at most {self.plan.charged(self.rounds)} times in all"
        return words + (", the whole plan charged in advance" if self._in_advance else "")

    def _claims(self, observer: str) -> list[dict[str, Any]]:
        plan = self.plan
        if plan.randomiser is None and plan.step_noise is None and plan.central_noise is None:
            reason = "nobody adds noise" if plan.mechanism is None else CLIPPED_ALONE
            return [_claim(observer, None, [reason])]
        if plan.trust == "central":
            if observer == "server":
                return [_claim(observer, None, ["the server is trusted: it sees the updates without noise"])]
            event = dp_accounting.SelfComposedDpEvent(plan.release_event(), plan.charged(self.rounds))
            # Of records it is the batch that amplifies, and not the cohort.
            open_to_all = plan.sampler.name in ("all", "separated")
            secret = [] if open_to_all or plan.batches else [SECRET_COHORT]
            shared = plan.banded is not None and plan.banded.bands > 1
            secret += [SEPARATED] * (plan.sampler.name == "separated") + [NOISE_KEPT] * shared
            return [_claim(observer, event, [SERVER_TRUSTED, *secret, NOT_SHOWN, *self._common])]
        if observer == "server" and self.stated.reads:
            return [_claim(observer, None, [SERVER_READS])]
        if plan.step_noise is not None:
            # Whoever looks sees no more than the models that clients answer with: each step is noisy.
            event = dp_accounting.SelfComposedDpEvent(plan.release_event(), self._most)
            enforced = self._by_whom(STEPS_ENFORCED, STEPS_PINNED, STEPS_HANDED)
            return [_claim(observer, event, [enforced, HIDDEN, *self._common])]
        assert plan.randomiser is not None
        return self._local_claims(observer, plan.randomiser)

    def _local_claims(self, observer: str, mechanism: Local) -> list[dict[str, Any]]:
        most, enforced = self._most, self._by_whom(ENFORCED, PINNED, HANDED)
        event = dp_accounting.SelfComposedDpEvent(mechanism.event(), most)
        claims = [_claim(observer, event, [enforced, HIDDEN, *self._common])]
        # An outsider sees only what became of the sums, with the noise of all who answered in them, of
        # which the distribution is known for Gaussian noise. A participant may share a node with others,
        # and know their noise: it gets no more than the server.
        shares = self.least_shares or 0
        if observer == "outsider" and shares > 1 and isinstance(mechanism, Gaussian):
            summed = dp_accounting.SelfComposedDpEvent(mechanism.summed_event(shares), most)
            assumptions = [enforced, OTHERS_HONEST, HIDDEN, *self._common]
            claims.append(_claim(observer, summed, assumptions))
        return claims

    def _by_whom(self, held: str, pinned: str, handed: str) -> str:
        """Who keeps the clients to the plan: they themselves, as is known or stated, or whoever hands it."""
        return held if self.held else pinned if self.stated.pinned else handed

    @property
    def _common(self) -> list[str]:
        """What every claim rests on."""
        of_records, local = self.plan.unit == "example", self.plan.trust == "local"
        sometimes = [TESTED_CLIENTS] * self.tested + [BROKEN_OFF] * self.broken_off
        sometimes += [NODES_ANSWER] * (local and not self.held) + [FILE_READ] * self.stated.reads
        # Of records the batches, which clients draw, amplify under central trust too.
        randomness = self.stated.randomness(server=self.plan.trust == "central", nodes=local or of_records)
        return [*sometimes, *[SIZES_PUBLIC, RECORDS_TRAIN] * of_records, PUBLIC_SHAPE, randomness]


def broke_off(assumptions: Sequence[str]) -> list[str]:
    """The assumptions of a claim, with `BROKEN_OFF` in the place where `Ledger` has it."""
    if BROKEN_OFF in assumptions:  # a run that was resumed
        return list(assumptions)
    later = (NODES_ANSWER, FILE_READ, SIZES_PUBLIC, RECORDS_TRAIN, PUBLIC_SHAPE)
    at = next((at for at, one in enumerate(assumptions) if one in later), len(assumptions))
    return [*assumptions[:at], BROKEN_OFF, *assumptions[at:]]


def has_broken_off(ledger: Mapping[str, Any]) -> bool:
    """Whether a stored ledger (`Ledger.to_json`) is of a run that a fault has ended once."""
    return any(BROKEN_OFF in claim["assumptions"] for claim in ledger["claims"])


def _claim(observer: str, event: dp_accounting.DpEvent | None, assumptions: list[str]) -> dict[str, Any]:
    return {
        "observer": observer,
        "event": None if event is None else to_json(event),
        "assumptions": assumptions,
    }
