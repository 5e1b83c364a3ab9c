"""The assumptions that guarantees of private estimates rest on, each with a stable id."""

from __future__ import annotations

from enum import unique

from fedprivacy.guarantees.assumptions import Assumption

CROWD = 4  # how many times the public guess of their number there may be, where a minimum is sought


@unique
class ErmAssumption(Assumption):
    """The conditions under which guarantees of an estimate hold, and the reasons for giving none."""

    CROWDED = f"there are at most {CROWD} times as many records as the public guess of their number"
    CLIPPED = "rows longer than 1 were scaled to norm 1, and targets cut to [-1, 1], each by itself"
    DRAWN = (
        "noise, and which records a step takes, come from random streams of which the observer knows no "
        "more than it drew itself, and floating-point numbers count as real ones"
    )
    SETTINGS_PUBLIC = "regularisation and other settings were not chosen on these records"
    RANK_ONE = "the loss of a record depends on theta through x.theta alone, so that its Hessian has rank one"
    ONE_SILO = "each record is in one silo alone"
    NOISE_SECRET = "every silo adds its noise and keeps it secret"
    SERVER_TRUSTED = "the server is trusted: it sees each silo's exact sums of gradients, and adds the noise"
    HANDED = (
        "the submitter of the run is honest about the plan: each silo adds its noise, and answers each "
        "step once, by the plan that came with the run"
    )
    RELEASED_ONCE = (
        "the observer has not seen this study with other silos absent, which under the same seed "
        "is another release with the same noise"
    )
