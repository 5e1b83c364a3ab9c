"""What observers see and why: of models that were trained, and of statistics that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.report import words


@dataclass(frozen=True)
class Wording:
    """The sentences that depend on what was released.

    Args:
        sees: Observer -> what it sees.
        why: (Trust model, observer) -> what the definition of the trust model means for it; no claim.
        noise: Trust model -> who adds the noise.
        cautions: Trust model -> what must not be forgotten beside a picture.
    """

    sees: Mapping[str, str]
    why: Mapping[tuple[str, str], str]
    noise: Mapping[str, str]
    cautions: Mapping[str, str]

    def caution(self, trusts: Sequence[str]) -> str:
        """What stands beside every picture that lays trust models over one another."""
        return " ".join(said for trust, said in self.cautions.items() if trust in trusts)


TRAINING = Wording(words.SEES, words.WHY, words.WHO_ADDS_NOISE, words.CAUTIONS)
STATISTICS = Wording(
    sees={
        "server": "sees every answer that it receives",
        "participant": "see the published statistics",
        "outsider": "see the published statistics",
    },
    why={
        ("none", "server"): "It receives each answer as it is.",
        ("none", "participant"): "They see exact statistics.",
        ("none", "outsider"): "They see exact statistics.",
        ("central", "server"): "It has to be trusted: it sees exact totals before the noise is added.",
        ("central", "participant"): "They see statistics that carry the server's noise.",
        ("central", "outsider"): "They see statistics that carry the server's noise.",
        ("local", "server"): "All that it receives already carries the client's noise.",
        ("local", "participant"): "They see statistics made from answers that already carried noise.",
        ("local", "outsider"): "They see statistics made from answers that already carried noise.",
    },
    noise={
        "none": "Nobody adds noise.",
        "central": "The server adds the noise or chooses by chance, once per query.",
        "local": "Each client randomises its own answers before anything leaves it.",
    },
    cautions={
        "local": "Local privacy holds against the server itself, since each client randomises its answer "
        "before anything leaves it.",
        "central": "Central privacy holds only against those behind the server: the server sees exact totals "
        "and has to be trusted.",
    },
)
