"""Choosing hyperparameters on private data, with the choice charged for.

Every class here that releases something is in `CHOICES`, and has a claim in
`tests/fedprivacy/mechanisms/claims`, as the mechanisms have. The exponential mechanism on clients' shares
(`scores.by_clients`) is among those.
"""

from fedprivacy.tuning.scores import NoisyScore
from fedprivacy.tuning.selection import PrivateSelection

CHOICES: dict[str, type[PrivateSelection] | type[NoisyScore]] = {
    PrivateSelection.name: PrivateSelection,
    NoisyScore.name: NoisyScore,
}
__all__ = ["CHOICES", "NoisyScore", "PrivateSelection"]
