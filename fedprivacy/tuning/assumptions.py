"""The assumptions that the guarantee of a tuned choice rests on, each with a stable id."""

from __future__ import annotations

from enum import unique

from fedprivacy.guarantees.assumptions import Assumption


@unique
class TuningAssumption(Assumption):
    """The conditions under which guarantees of a tuned choice hold, and the reasons for giving none."""

    SENT_ALL = (
        "each client that takes part is sent the models of all tries, and how many there are is drawn: "
        "there is no bound on what it sees"
    )
    BEST_ALONE = (
        "only the best try is shown, with its score: neither another one nor how many there were (but "
        "that there was none, where none was), which how long it took gives away too"
    )
    FAILS_LAST = (
        "a try in which all clients failed in some round is the worst of all, and whether all do tells "
        "nothing"
    )
    CHOICE_ALONE = "of the clients' scores of the candidates only the choice is shown"
    PUBLIC_CHOICE = "the public split is nobody's, and the choice was made on it alone"
    PUBLIC_CANDIDATES = "the public split, on which the candidates were trained, is nobody's"
    ALL_SHOWN = "every candidate is run once and shown with its score"
