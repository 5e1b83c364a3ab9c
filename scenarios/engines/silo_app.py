"""The ClientApp of a study's silos in another process, which makes or reads their records itself."""

from __future__ import annotations

from flwr.clientapp import ClientApp

from clients.app import make_app
from clients.erm import Silos
from fedprivacy.errors import InputError
from fedprivacy.scenario.erm import ErmScenario


def silo_app(text: str, noise_key: str) -> ClientApp:
    """The ClientApp of all silos of a study.

    Args:
        text: The complete scenario, TOML.
        noise_key: Keeps the noise of this study apart from that of others; it depends on the records.

    Raises:
        InputError: if the scenario cannot run here, or its records are others here.
    """
    silos = Silos.of(ErmScenario.from_text(text))
    if silos.study.streams.run != noise_key:
        raise InputError(
            "a worker has read other records than the command: files have to be the same, under the same "
            "path, on every machine."
        )
    return make_app(silos)
