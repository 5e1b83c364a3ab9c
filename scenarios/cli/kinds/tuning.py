"""Scenarios whose settings are chosen."""

from scenarios.cli.kinds.kind import Kind


class TuningKind(Kind):
    """A scenario with settings to choose from."""

    command, feature = "tune", "has a [tune]"
