"""Checks that public records exist for the defences that read them."""

from __future__ import annotations

from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.scenario import Scenario


def check_references(scenario: Scenario, people: Population) -> None:
    """Checks that public records remain for the defences after a game has taken its targets.

    Args:
        scenario: Which defences there are.
        people: The data, of a game with its targets.

    Raises:
        InputError: there are none.
    """
    reads = {
        "training.adversarial": scenario.training.adversarial,
        "server.patience": scenario.server.patience,
    }
    for key, value in reads.items():
        if value is not None and not len(people.references):
            judged = people.judged is not None
            raise InputError(
                f"{key} = {value:g}: of the public records, which it reads, none are left"
                + (" that are not judged. Lower game.nonmembers, or make" if judged else ". Make")
                + " data.public_fraction larger."
            )
