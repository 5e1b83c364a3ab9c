"""The observers that each guarantee is stated for."""

OBSERVERS = ("server", "participant", "outsider")
