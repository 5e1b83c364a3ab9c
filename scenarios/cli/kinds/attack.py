"""Scenarios whose model is attacked."""

from scenarios.cli.kinds.kind import Kind


class AttackKind(Kind):
    """A scenario with attacks on its model."""

    command, feature = "replay", "has attacks"
