"""`budget shuffle`: what local answers cost once an honest shuffler has taken the names off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fedprivacy.accounting import shuffle
from fedprivacy.guarantees.statement import printed
from scenarios.budgets.question import Question, Range, plural, promise

ACCOUNTANT = "shuffling (clones, numerical)"


@dataclass(frozen=True)
class ShuffleQuestion(Question):
    """What is asked of `budget shuffle`, under replace-one adjacency.

    Args:
        clients: n, how many answer.
        local_epsilon: Of each client's answer, by any mechanism of pure epsilon-DP.
        epsilon: Instead: of the shuffled answers; the most that each answer may cost is computed.
        delta: The delta of the guarantee.
    """

    clients: int
    local_epsilon: float | None = None
    epsilon: float | None = None
    delta: float = 1e-5
    mechanism: ClassVar[str] = "shuffle"

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        most = 1 / self.clients if self.clients >= 1 else 1.0
        below = Range(shuffle.MIN_DELTA, most, "1/clients is too much", below=True)
        return [
            self.not_one_of("local_epsilon", "epsilon"),
            self.outside("clients", Range(1, shuffle.MAX_CLIENTS)),
            self.outside("local_epsilon", Range(shuffle.MIN_LOCAL, shuffle.MAX_LOCAL)),
            self.outside("epsilon", Range(0, shuffle.MAX_LOCAL, above=True)),
            self.outside("delta", below),
        ]

    def answer(self) -> dict[str, Any]:
        """The epsilon of the shuffled answers, and of each of them."""
        if self.local_epsilon is not None:
            local = self.local_epsilon
        else:
            assert self.epsilon is not None
            local = shuffle.local_epsilon(self.epsilon, self.clients, self.delta)
        epsilon = shuffle.shuffled_epsilon(local, self.clients, self.delta)
        closed = shuffle.closed_form(local, self.clients, self.delta)
        limit = shuffle.closed_form_limit(self.clients, self.delta)
        condition = f"proved for local epsilon at most ln(n/(16 ln(2/delta))) = {limit:.4g}"
        assumptions = "; ".join(shuffle.ASSUMPTIONS)
        each = printed(local, 6)
        words = (
            f"{plural(self.clients, 'answer')} of epsilon = {each} at delta = 0 each, shuffled, cost "
            f"{promise(epsilon, self.delta, 'replace-one', ACCOUNTANT)}; provided that {assumptions}. "
            f"Against whoever sees an answer with its sender the epsilon is {each} at delta = 0. "
            + (
                f"The closed form ({condition}) gives epsilon = {printed(closed)} at delta = {self.delta:g}."
                if closed is not None
                else f"The closed form does not apply: it is {condition}."
            )
        )
        return {
            "epsilon": epsilon,
            "delta": self.delta,
            "local_epsilon": local,
            "clients": self.clients,
            "unit": "client",
            "adjacency": "replace-one",
            "accountant": ACCOUNTANT,
            "closed_form": closed,
            "closed_form_condition": condition,
            "assumptions": list(shuffle.ASSUMPTIONS),
            "words": words,
        }
