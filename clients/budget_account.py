"""The account of a node's owner: what all plans that the node serves may cost its clients together.

A pinned plan enters it at the first message of a run, before anything is trained, with the releases that the
node itself derives from its plan. It stays charged whatever becomes of the run. A home counts the
participations of one plan, so it has one entry: a receipt beside these counts names it.
"""

from __future__ import annotations

from pathlib import Path

from clients.error_filter import kind, log
from clients.fleet import Fleet
from clients.participation_ledger import Account as Home
from clients.statistics import StatisticsClients
from fedprivacy.account.entering import check_receipt, enter
from fedprivacy.account.entry import PlannedWork
from fedprivacy.account.populations import PopulationIds
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.io.atomic import replace_file
from fedprivacy.randomness.system import SEEDED
from fedprivacy.records.receipt import FILE, read_receipt, text_of
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
        work = _work(scenario, clients, Stated(pinned=True, noise=noise))
        if (home.home / FILE).exists() or home.read():
            check_receipt(path, read_receipt(home.home), [work])
            return
        # The owner names the account for the clients who live here.
        receipt = enter(path, [work], command="node", same_population=True)
        replace_file(home.home / FILE, text_of(receipt).encode(), mode=0o600, strict=True)
        log(f"account {path}: charged for the whole plan of {scenario.name}")


def _work(scenario: AnyScenario, clients: object, stated: Stated) -> PlannedWork:
    """The releases of a plan, as the node derives them.

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
        scenario.seed,
        f"{clients.streams.run}/{stated}",
        drawn,
    )
