"""Work that cannot enter an account, because no event covers what it releases."""

from __future__ import annotations

from fedprivacy.errors import InputError
from fedprivacy.scenario.data import Digits, PurchaseLike, Synthetic
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.statistics.data import Bits, Categories, Numbers

# Drawn from a seed, or public: no record of a client is read.
_SIMULATED = (Digits, Synthetic, PurchaseLike, Bits, Categories, Numbers)
REASONS = {
    "a comparison of statistics": "a comparison of statistics states errors, for which it uses true values",
    "--limits": "--limits trains variants without noise too",
}


def refuse_charge(scenario: AnyScenario, work: str) -> None:
    """Refuses to charge an account for work that no event covers.

    Args:
        scenario: The scenario of the work.
        work: The work, one of `REASONS`.

    Raises:
        InputError: always, with the reason.
    """
    if isinstance(scenario.data, _SIMULATED):
        raise InputError(
            f'--account: data.name = "{scenario.data.name}" has no records of clients, so {work} of it '
            "cannot reveal any, and nothing is charged. Leave out --account."
        )
    raise InputError(
        f"--account: {REASONS[work]}, and no event covers that. If you leave it out, keep the result to "
        "yourself: the claim of the account does not hold against anybody who sees it."
    )
