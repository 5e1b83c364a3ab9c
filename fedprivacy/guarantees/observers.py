"""The observers that each guarantee is stated for."""

from fedprivacy.mechanisms.noise_shares import Observer

OBSERVERS: tuple[Observer, ...] = ("server", "participant", "outsider")
