"""The assumptions that guarantees of statistics rest on, each with a stable id."""

from __future__ import annotations

from enum import unique

from fedprivacy.guarantees.assumptions import Assumption


@unique
class StatisticsAssumption(Assumption):
    """The conditions under which guarantees of statistics hold, and the reasons for giving none."""

    SERVER_SEES_TOTALS = "the server is trusted: it sees exact totals"
    PUBLIC = "the queries with their bounds, grids and categories are public knowledge"
    PUBLIC_SIZE = (
        "the queries with their bounds, grids and categories are public knowledge, and so is the number "
        "of clients"
    )
    PUBLIC_ANSWERS = (
        "the queries with their bounds, grids and categories are public knowledge, and so are the number "
        "of clients and how many of them answered"
    )
    PRIVATE_SIZE = (
        "the observer does not learn how many clients there are or have answered (operator-only in the "
        "record)"
    )
    ENFORCED = (
        "each client randomises its own answers, and answers each query once, whatever the server requests"
    )
    HANDED = (
        "the submitter of the run is honest about the plan: each client randomises its own answers, and "
        "answers each query once, by the plan that came with the run"
    )
    TRUSTED = (
        "the server is honest: it sees exact totals, adds the noise or chooses, and releases nothing else"
    )
    SHUFFLER = (
        "the shuffler is honest and does not collude with the observer (simulated: the server's process is "
        "the shuffler): it shows the messages to each query in random order, without their senders"
    )
    ALL_ANSWER = (
        "the answers to a query are released only if all clients answered it, each once and by one and the "
        "same mechanism"
    )
    ALL_SECRET = "the observer knows no client's own randomness"
    OTHERS_SECRET = "the observer knows no other client's own randomness"
    TRUTH_HIDDEN = (
        "the true values and errors, which only the simulation knows, and the fields marked operator-only"
        " are not shown to the observer"
    )
