"""Options of an audit, checked before any heavy import."""

from __future__ import annotations

from fedprivacy.errors import InputError
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.sections import Privacy

METHODS = ("one-run", "canary-clients", "both")
LEAST, MOST = 10, 100_000  # canaries
MOST_TRIALS = 10_000


def check_options(method: str, canaries: int, trials: int, seed: int) -> None:
    """Refuses options that are out of range.

    Raises:
        InputError: one is.
    """
    if method not in METHODS:
        raise InputError(f"--method {method}: there is none. There are: {', '.join(METHODS)}.")
    if not LEAST <= canaries <= MOST:
        raise InputError(f"--canaries {canaries}: must be from {LEAST} to {MOST:,}; 1000 is usual.")
    if not 1 <= trials <= MOST_TRIALS:
        raise InputError(f"--trials {trials}: must be from 1 to {MOST_TRIALS:,}.")
    if seed > MAX_SEED - trials:
        raise InputError(f"--trials {trials}: too many after seed {seed}: each has the next seed.")


def check_privacy(privacy: Privacy, source: str) -> None:
    """Refuses a scenario that protects records, or has secure sums or groups with budgets of their own.

    Raises:
        InputError: it is one.
    """
    trust, unit = privacy.trust, privacy.unit
    if privacy.groups is not None:
        raise InputError(
            f"{source}: privacy.groups: an audit adds canaries that all have the budget of the section, and "
            "would say nothing of a group. Remove the groups, and audit each budget as the section's own."
        )
    if trust == "distributed":
        raise InputError(
            f'{source}: privacy.trust = "{trust}": an audit reads the messages of its canaries one by one, '
            'which a secure sum shows nobody. Set privacy.trust = "central" or "local".'
        )
    if unit != "client":
        raise InputError(
            f'{source}: privacy.unit = "{unit}": an audit has canary clients, which say nothing of single '
            'records. Set privacy.unit = "client", or attack the scenario: fedprivacy replay.'
        )
