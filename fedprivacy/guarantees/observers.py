"""The observers that each guarantee is stated for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # names are read without mechanisms
    from fedprivacy.mechanisms.noise_shares import Observer

ANALYST = "analyst"  # of statistics, behind a shuffler
OBSERVERS: tuple[Observer, ...] = ("server", "participant", "outsider")
ALL_OBSERVERS = ("server", ANALYST, "participant", "outsider")
