"""The views of observers: of trained models, of statistics, of private estimates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fedprivacy.report import words


@dataclass(frozen=True)
class Wording:
    """The sentences that depend on the kind of release.

    Args:
        sees: Observer -> the messages and models it sees.
        why: (Trust model, observer) -> the consequence of the trust model for it; no claim.
        noise: Trust model -> the party that adds the noise.
        cautions: Trust model -> the caveat beside a picture.
        of_records: The same where the unit of privacy is a record; None where there is no such unit.
        of_both: The cautions where units are compared.
    """

    sees: Mapping[str, str]
    why: Mapping[tuple[str, str], str]
    noise: Mapping[str, str]
    cautions: Mapping[str, str]
    of_records: Wording | None = None
    of_both: Mapping[str, str] = field(default_factory=dict)

    def of(self, unit: str | None) -> Wording:
        """The sentences for one unit of privacy."""
        return self.of_records if unit == "example" and self.of_records else self

    def caution(self, trusts: Sequence[str], units: Collection[str | None] = ()) -> str:
        """The caution beside every picture that compares trust models or units."""
        if len(set(units)) > 1:
            return " ".join(text for name, text in self.of_both.items() if name in (*trusts, "unit"))
        cautions = self.of(next(iter(units), None)).cautions
        return " ".join(text for trust, text in cautions.items() if trust in trusts)


_OF_RECORDS = Wording(
    words.SEES, words.WHY_OF_RECORDS, words.WHO_ADDS_NOISE_TO_RECORDS, words.CAUTIONS_OF_RECORDS
)
TRAINING = Wording(
    words.SEES, words.WHY, words.WHO_ADDS_NOISE, words.CAUTIONS, _OF_RECORDS, words.CAUTIONS_OF_BOTH
)
STATISTICS = Wording(
    sees={
        "server": "sees every answer that it receives",
        "analyst": "sees all answers in random order",
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
        ("shuffled", "server"): "It is the shuffler: it sees who sent which answer, randomised a little.",
        ("shuffled", "analyst"): "Answers of many hide each other, if the shuffler is honest.",
        ("shuffled", "participant"): "They see statistics made from shuffled answers.",
        ("shuffled", "outsider"): "They see statistics made from shuffled answers.",
    },
    noise={
        "none": "Nobody adds noise.",
        "central": "The server adds the noise or chooses by chance, once per query.",
        "local": "Each client randomises its own answers before anything leaves it.",
        "shuffled": "Each client randomises its own answers, and a shuffler takes the senders off.",
    },
    cautions={
        "shuffled": "Shuffled answers are protected from the analyst by a shuffler that has to be honest: it "
        "sees each answer with its sender, under a much larger epsilon.",
        "local": "Local privacy holds against the server itself, since each client randomises its answer "
        "before anything leaves it.",
        "central": "Central privacy holds only against those behind the server: the server sees exact totals "
        "and has to be trusted.",
    },
)
ESTIMATES = Wording(
    sees={
        "server": "sees every message of a silo",
        "participant": "see what the server sends out",
        "outsider": "see the published estimate",
    },
    why={
        ("central", "server"): "It has to be trusted: it sees the records, or exact sums of gradients.",
        ("central", "participant"): "They see what carries the server's noise.",
        ("central", "outsider"): "They see an estimate that carries the curator's noise.",
        ("local", "server"): "All that it receives already carries the silo's noise.",
        ("local", "participant"): "They see what already carries the silos' noise.",
        ("local", "outsider"): "They see an estimate from messages that already carried noise.",
    },
    noise={
        "central": "A curator who holds all records, or a server that silos trust, adds the noise.",
        "local": "Each silo adds noise before anything leaves it.",
    },
    cautions={
        "local": "Silos that add their own noise are protected from the server itself.",
        "central": "A curator, or a server that adds the noise, sees everything and has to be trusted.",
    },
)
