"""One round of federated averaging with differential privacy (DP-FedAvg, McMahan et al. 2018).

draw the cohort -> send the model, chunk by chunk -> add up the clipped (and, under local or distributed
trust, noisy) updates -> under central trust add noise -> divide by the expected cohort (a robust rule takes
the place of both) -> charge the ledger -> commit the round -> denoise, where configured -> move the model
-> average the iterates, where configured
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError, RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.io.tensor_file import stored_array
from fedprivacy.mechanisms.banded import CorrelatedNoise
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.rotation import random_signs
from fedprivacy.messages.protocol import SumReply, TrainRequest, parts_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.sections import Denoise
from server.aggregation import NO_ANSWER, RoundTotal, aggregate
from server.averaging import IterateAverage
from server.denoising import denoised
from server.hosts import Dealing
from server.messages import request_to
from server.optimizers import ServerOptimizer
from server.reply_validation import longest
from server.robust_rules import RobustRule
from server.sampling import Chunk, Cut, chunks, draw_cohort, one_per_node


@dataclass
class Federation:
    """The server's side of a run: the model, and the state of a round.

    Args:
        grid: Flower's way to the nodes; with noise in shares one of sums alone (`server.secure_sum.secured`).
        dealing: Which node serves which logical host.
        plan: The privacy plan.
        ledger: The releases so far.
        optimizer: Moves the model.
        streams: The run's random streams.
        weights: The model, float64, shape (parameters,); it is sent as float32.
        chunk_size: Clients in one message.
        observe: "sum" or "each": what nodes reply with.
        denominator: Turns a sum into a mean update; it does not depend on who answers.
        timeout: Seconds to wait for replies, after which clients count as failed.
        longest: The largest norm of one client's part of a reply (`server.reply_validation.longest`), or
            None.
        dropout: Whether clients may drop out.
        leaving: The rate at which they do, which is public.
        denoise: The denoising of the mean update.
        clipping_norm: Of the next round, where the plan's changes from round to round; else None.
        correlated: The noise of past rounds, where the plan's is correlated over rounds; else None.
        rule: The robust rule that estimates the mean update; None: the sum is divided.
        clips_to: The norm to which the server clips the update of each client, shape (population,); None: it
            does not clip.
        cut: Cuts a cohort into chunks.
        average: The mean of iterates that is released; None: the last iterate is.
    """

    grid: Grid
    dealing: Dealing
    plan: Plan
    ledger: Ledger
    optimizer: ServerOptimizer
    streams: Streams
    weights: NDArray[np.float64]
    chunk_size: int
    observe: str
    denominator: float
    timeout: float
    longest: float | None = None
    dropout: bool = True
    leaving: float = 0.0
    denoise: Denoise = "none"
    clipping_norm: float | None = None
    correlated: CorrelatedNoise | None = None
    rule: RobustRule | None = None
    clips_to: NDArray[np.float64] | None = None
    cut: Cut = chunks
    average: IterateAverage | None = None

    @property
    def model(self) -> NDArray[np.float32]:
        """The model that participants receive, float32, shape (parameters,)."""
        return self.weights.astype(np.float32)

    @property
    def released(self) -> NDArray[np.float32]:
        """The model that is measured, and that outsiders receive in the end, float32, shape (parameters,)."""
        return self.model if self.average is None else self.average.of(self.weights).astype(np.float32)

    def round(self, number: int) -> tuple[NDArray[np.int64], RoundTotal]:
        """Runs round `number` (from 0) and moves the model.

        With noise in shares a round with fewer survivors than the plan's is void: it releases nothing, moves
        nothing, and stays charged. So is one with fewer answers than a robust rule needs.

        Returns:
            The ids of the cohort, and the total of its replies.

        Raises:
            RunError: if the cohort is not empty and every client failed.
        """
        plan = self.plan.for_round(self.clipping_norm)
        cohort = draw_cohort(self.plan, self.ledger, self.streams, number)
        # Charged before the first message leaves: a crash in the round must not lose a charge.
        self.ledger.request(cohort)
        total = self.total(number, cohort)
        if total.failed and not total.answered:
            raise RunError(total.nobody_answered(number))
        if total.void:
            self.ledger.release(cohort, total.answered)
            return cohort, total
        # `plan` has the norm that clipped this round's updates. Noise for the next round's norm, as Flower's
        # adaptive clipping draws it, would be too little whenever the norm falls.
        released = add_central_noise(total.updates, plan, self.streams, number, self.correlated)
        if plan.adaptive is not None:
            # The next norm comes from the noisy count of bits alone, so following it is post-processing.
            expected = plan.sampler.expected_cohort(plan.population) * (1 - self.leaving)
            self.clipping_norm = plan.adaptive.after(float(released[-1]), expected).clipping_norm
            released = released[:-1]
        # A fixed denominator. One client more or less changes the realised cohort, and dividing by that would
        # change all other clients' shares too, by more than the sensitivity that the noise is made for.
        average = released if self.rule is not None else released / self.denominator
        # Charged before the model moves, since the model is what the round releases.
        self.ledger.release(cohort, total.answered)
        deviation = plan.sum_deviation(total.answered)
        # Denoising sees the noisy average alone: post-processing, at no privacy cost.
        if deviation is not None:
            average = denoised(average, deviation / self.denominator, self.denoise)
        self.weights = self.optimizer.step(self.weights, average, number)
        if self.average is not None:
            self.average.add(number, self.weights)
        return cohort, total

    def total(self, number: int, cohort: NDArray[np.int64]) -> RoundTotal:
        """The sum of a cohort's replies, before any central noise. Nothing is charged or released.

        Args:
            number: The round.
            cohort: Sorted ids, shape (cohort,).
        """
        plan = self.plan.for_round(self.clipping_norm)
        requested = list(self.cut(cohort, hosts=self.dealing.hosts, size=self.chunk_size))
        if plan.shares is not None:
            return self._secure_total(number, requested, plan.shares)
        return aggregate(
            requested,
            self._replies(number, requested),
            parameters=plan.answer_length(len(self.weights)),
            observe=self.observe,
            longest=self.longest if plan.adaptive is None else longest(plan, len(self.weights)),
            dropout=self.dropout,
            counted=plan.adaptive is not None,
            rule=self.rule,
            clips_to=self.clips_to,
            weights=plan.weights_of(np.arange(plan.population)),
            fault_of=self.dealing.fault,
        )

    def _secure_total(self, number: int, requested: Sequence[Chunk], shares: NoiseShares) -> RoundTotal:
        """The sum of the survivors' updates, of which the server sees the total modulo 2^b alone."""
        total = RoundTotal(np.zeros(shares.dimension), void=True)
        for chunk in requested:
            if (fault := self.dealing.fault(chunk.host)) is not None:
                total.fail(fault[0], len(chunk.clients), fault[1])
        replies = list(self._replies(number, requested))
        if len(replies) > 1:
            raise RunError("the server received single messages, and the plan allows it the secure sum alone")
        for message in replies:
            try:
                reply = SumReply.of(*parts_of(message))
            except FedPrivacyError as error:
                raise RunError(f"round {number}: {error}") from error
            total.answered, total.refused = reply.survivors, reply.refused
            total.faults += reply.faults
            total.void_reason = reply.reason
            if reply.total is not None:
                signs = random_signs(shares.dimension, self.streams.stream("rotation", round=number))
                total.updates, total.void = shares.decode(reply.total, signs, reply.survivors), False
        known = total.answered + total.refused + total.failed + total.faults["dropped"]
        if (missing := sum(len(chunk.clients) for chunk in requested) - known) > 0:
            total.fail(NO_ANSWER[0], missing, NO_ANSWER[1])
        return total

    def _replies(self, number: int, requested: Sequence[Chunk]) -> Iterator[Message]:
        """The replies to a round's requests, as they arrive.

        Under local trust the clients count their answers in the node's state, and personal models lie there.
        Flower's simulation engine loses such state if two messages of one node are in progress at once. A
        node there receives its next message only after its reply to the last, unless the grid itself `merges`
        the changes of one node's messages.
        """
        stateful = self.plan.trust == "local" or self.plan.personal in ("partial", "ditto")
        alone = stateful and not getattr(self.grid, "merges", False)
        # A secure sum takes all messages of a round at once, and sees to turns itself.
        turns = getattr(self.grid, "one_each", False) or self.plan.shares is not None
        nodes = self.dealing.nodes
        served = [chunk for chunk in enumerate(requested) if chunk[1].host in nodes]
        waves = one_per_node(requested, nodes) if alone or turns else [served]
        if not alone:  # all at once, node by node in turn, so that no node waits for another's chunks
            waves = [[chunk for wave in waves for chunk in wave]]
        for wave in waves:
            yield from self.grid.send_and_receive(self._requests(number, wave), timeout=self.timeout)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """The state that a checkpoint needs for a bit-identical resume."""
        norm = {} if self.clipping_norm is None else {"clipping_norm": np.array([self.clipping_norm])}
        return {"weights": self.weights, **self._parts(), **norm}

    def _parts(self) -> dict[str, NDArray[np.float64]]:
        """The state of the optimizer and of the average, by its names in a checkpoint."""
        average = {} if self.average is None else self.average.state
        return {
            f"{part}/{key}": value
            for part, state in (("optimizer", self.optimizer.state), ("average", average))
            for key, value in state.items()
        }

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Restores what `state` returned.

        Raises:
            InputError: these are arrays of another model, optimizer or average.
        """
        stored = {name: stored_array(tensors, name, at) for name, at in self._parts().items()}
        if self.clipping_norm is not None:
            norm = stored_array(tensors, "clipping_norm", np.array([self.clipping_norm]))
            self.clipping_norm = self.plan.for_round(float(norm[0])).clipping_norm
        self.weights = stored_array(tensors, "weights", self.weights)
        self.optimizer.state = {key: stored[f"optimizer/{key}"] for key in self.optimizer.state}
        if self.average is not None:
            self.average.state = {key: stored[f"average/{key}"] for key in self.average.state}

    def _requests(self, number: int, requested: Sequence[tuple[int, Chunk]]) -> Iterator[Message]:
        """Numbered messages, made one at a time, so that memory does not grow with the cohort."""
        model, nodes = self.model, self.dealing.nodes
        for position, chunk in requested:
            request = TrainRequest(
                round=number,
                host=chunk.host,
                chunk=chunk.number,
                clients=chunk.clients,
                weights=model,
                plan=self.plan,
                observe=self.observe,
                clipping_norm=self.clipping_norm,
            )
            yield request_to(nodes[chunk.host], "train", f"{number}/{position}", *request.parts())


def add_central_noise(
    total: NDArray[np.float64],
    plan: Plan,
    streams: Streams,
    round: int,
    correlated: CorrelatedNoise | None = None,
) -> NDArray[np.float64]:
    """The sum that may be released: under central trust with noise, also when the cohort is empty.

    Args:
        total: The sum of clipped updates, float64, shape (parameters,).
        plan: The run's plan; its mechanism draws.
        streams: The run's random streams.
        round: The round, which keys the draw.
        correlated: The noise of the run so far, where the plan's is correlated over rounds.
    """
    noise = plan.central_noise
    if noise is None:  # the clients have added theirs (local trust), or there is no noise at all
        return total
    if plan.banded is not None:
        if correlated is None:
            raise RunError("the noise of past rounds is missing, with which this round's is correlated")
        return total + correlated.draw(round, streams)
    # Also for an empty cohort: a sum without noise would show that nobody was drawn, which Poisson sampling
    # keeps secret. In float64: in float32, small noise on large numbers is rounded away.
    return total + noise.draw(len(total), streams.noise("central", round=round))
