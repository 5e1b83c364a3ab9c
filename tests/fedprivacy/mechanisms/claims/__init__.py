"""What every registered mechanism is held to: `test_claims.py` runs each entry of `CLAIMS`.

To add a mechanism: in the module of its kind (or a new one), a subclass of `Claim` with its instances and
checks, its line in that module's `CLAIMS`, and the module here. Each check takes `claimed`, which states, and
`drawn`, which draws, and raises AssertionError (through the helpers of `checks`) where the two disagree.
They are the same object, but in the test of the tests, where `drawn` has half the noise: then every check
must fail. Write so that they do: state everything from `claimed` and draw everything from `drawn`.

A mechanism in `fedprivacy.mechanisms.registry`, an approach in `fedprivacy.erm.APPROACHES` or a choice in
`fedprivacy.tuning.CHOICES` without an entry here fails the suite, and so does an entry without an oracle that does
not say why there is none.
"""

from __future__ import annotations

from claims import adaptive, bits, categories, encoded, minima, noise, selection, shares, tuning, vectors
from claims.claim import Claim

KINDS = (bits, categories, vectors, adaptive, encoded, shares, noise, selection, minima, tuning)
CLAIMS: dict[str, Claim] = {name: claim for kind in KINDS for name, claim in kind.CLAIMS.items()}
