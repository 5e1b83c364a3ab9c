"""The account of a node's owner: what all plans that the node serves may cost its clients together.

A pinned plan enters it at the first message of a run, before anything is trained, with the releases that the
node itself derives from its plan. It stays charged whatever becomes of the run.

A home counts the participations of one plan, so it has one entry. The file of these counts names it by a
random text, which is on disk before the charge. So who loses the counts loses the name, and the next
participation is charged anew; and a kill in between charges nothing twice. Records and seeds, which may
change under a plan, are no part of the name.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from clients.error_filter import kind, log
from clients.fleet import Fleet
from clients.participation_ledger import Account as Home
from clients.statistics import StatisticsClients
from fedprivacy.account.account import Account
from fedprivacy.account.entering import enter
from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.populations import PopulationIds
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.randomness.system import SEEDED
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.statistics.ledger import StatisticsLedger


def enter_plan(path: Path, home: Home, scenario: AnyScenario, clients: object, noise: str) -> None:
    """Charges a node's plan to its owner's account, once for each home.

    Args:
        path: The account's file.
        home: The participations under the plan.
        scenario: The node's own scenario.
        clients: Its clients.
        noise: Where its noise comes from, "seeded" or "system".

    Raises:
        Refusal: the plan may not enter, or was not charged before its first participation.
    """
    with kind("account"), home.locked():
        answers = home.read()
        if answers and home.charge is None:
            raise InputError(
                f"{home.home}: was begun without an account, so it cannot enter one now. Leave out account; "
                "or choose another folder as home, which is charged, while what was answered before is not."
            )
        name = home.charge or secrets.token_hex(16)
        work = _work(scenario, clients, Stated(pinned=True, noise=noise), f"{name}/{home.of}")
        if Account.read(path).has(work):
            return
        if answers:
            raise InputError(
                f"{path}: has no entry of the plan that {home.home} has answered under. It was entered in "
                "another account or in none, or with other noise or another seed, or lines of this one were "
                "lost. Give the node that account and these settings again, or restore the newest copy of "
                "the account; or choose another folder as home, which is charged too."
            )
        if home.charge is None:
            home.write({}, name)
        try:
            # The owner names the account for the clients who live here.
            enter(path, [work], command="node", same_population=True)
        except InputError:  # nothing was entered
            home.file.unlink(missing_ok=True)
            raise
        log(f"account {path}: charged for the whole plan of {scenario.name}")


def _work(scenario: AnyScenario, clients: object, stated: Stated, name: str) -> PlannedWork:
    """The releases of a plan, as the node derives them.

    Args:
        scenario: The node's own scenario.
        clients: Its clients.
        stated: Of its noise.
        name: Distinguishes the entry from all others.

    Raises:
        InputError: no event covers them.
    """
    if isinstance(clients, Fleet):
        plan, work = clients.plan, "training"
        drawn = plan.sampler.name != "all" and stated.noise == SEEDED
        # Without sizes the largest cost counts; the records of other nodes' clients are not here.
        ledger: Ledger | StatisticsLedger = Ledger(plan, stated=stated)
    elif isinstance(clients, StatisticsClients):
        work, drawn = "statistics", False
        ledger = StatisticsLedger(clients.plan, len(clients.plan.asks), True, stated)
    else:
        raise InputError(
            f"{scenario.name}: private estimates are compared with estimates without noise, and no event "
            "covers that. Pin another scenario, or leave out account."
        )
    return PlannedWork(
        scenario.name,
        work,
        (ledger.in_advance().to_json(),),
        PopulationIds(clients.people.digest),
        scenario.seed if drawn else 0,
        f"{name}/{stated}",
        drawn,
    )
