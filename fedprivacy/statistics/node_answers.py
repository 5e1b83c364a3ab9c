"""The answer of a node: the exact totals of its clients' answers, or the totals of randomised ones."""

from __future__ import annotations

import numpy as np

from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import FrequencyOracle
from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.statistics.plan import PlannedQuery, StatisticsPlan
from fedprivacy.statistics.population import Ids, People
from fedprivacy.statistics.query_values import Vector

REPORT_BITS = 2**28  # of reports in memory at once: 32 MB


def totals(
    plan: StatisticsPlan, ask: PlannedQuery, people: People, clients: Ids, stream: np.random.Generator
) -> Vector:
    """The totals over a chunk of clients; those of all chunks add up.

    Args:
        plan: The clients' own plan.
        ask: One of its queries.
        people: The data.
        clients: The answering clients, sorted, shape (clients,).
        stream: The random stream of these clients' answers to this query, and of no others.

    Returns:
        float64. For a number: the sum (or the count of ones), shape (1,), and if the number of clients is
        private also its complement to the count of clients, shape (2,). For a category: the number of answers
        that support each, shape (cells,), and if clients report one of several votes also the number for
        none.
    """
    question, mechanism = ask.question, ask.mechanism
    if not plan.clients_randomise:
        exact = question.exact(people, clients)
        private_size = plan.adjacency != "replace-one" and not question.cells
        return np.array([exact[0], len(clients) - exact[0]]) if private_size else exact
    answers = question.answers(people, clients, stream)
    match mechanism:
        case RandomizedResponse():
            return np.array([float(mechanism.draw_numbers(answers, stream).sum())])
        case Laplace():
            return np.array([mechanism.draw(answers, stream).sum()])
        case FrequencyOracle():
            # In parts, since a report may hold a bit for each category.
            size = max(1, REPORT_BITS // mechanism.categories)
            parts = (answers[start : start + size] for start in range(0, len(answers), size))
            support = np.zeros(mechanism.categories)
            for part in parts:
                support += mechanism.support(mechanism.draw(part, stream))
            return support
    raise TypeError(f"{mechanism} is no mechanism of a client")
