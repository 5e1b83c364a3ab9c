"""`budget shuffle`: amplification of local answers by an honest shuffler."""

from __future__ import annotations

from typing import Any

from fedprivacy.accounting import shuffle, shuffled_event
from fedprivacy.guarantees.statement import printed
from scenarios.budgets.command_options import ShuffleOptions
from scenarios.budgets.question import Question, Range, plural, promise

ACCOUNTANT = "shuffling (clones, numerical)"


class ShuffleQuestion(ShuffleOptions, Question):
    """Answers `budget shuffle`, under replace-one adjacency."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        most = 1 / self.clients if self.clients >= 1 else 1.0
        below = Range(shuffle.MIN_DELTA, most, "1/clients is too much", below=True)
        return [
            self.not_exactly_one("local_epsilon", "epsilon"),
            self.out_of_range("clients", Range(1, shuffled_event.MAX_CLIENTS)),
            self.out_of_range("local_epsilon", Range(shuffled_event.MIN_LOCAL, shuffled_event.MAX_LOCAL)),
            self.out_of_range("epsilon", Range(0, shuffled_event.MAX_LOCAL, above=True)),
            self.out_of_range("delta", below),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the epsilon of the shuffled answers, and of each answer."""
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
