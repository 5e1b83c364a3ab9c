"""The certificate against poisoning: the most that k malicious clients can change, by group privacy.

Differential privacy bounds what a client can do to the model as it bounds what the model shows of a client.
Let P be the law of all released models when everybody is honest, and Q when k clients upload what they like.
If one client's update replaced by any other is a step with the trade-off curve T (largest TPR at each FPR),
k such steps lead from P to Q, and for every event E

    Q(E) <= T(T(...T(P(E))...)), k times        (Dong, Roth and Su 2022, Theorem 2.14)

For Gaussian DP this is Phi(Phi^-1(P(E)) + k mu); an (epsilon, delta) gives
(k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)). T is concave, so that means of values in [0, 1],
such as accuracy, obey the same inequality (integrate over their levels, and use Jensen's). Ma, Zhu and Hsu
2019 use this against poisoned records, Xie et al. 2023 against poisoned clients.

A malicious client adapts to the models that it has seen, which the curve of adaptive composition covers. The
step needs a bound on its update that it cannot evade: the server's own clipping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import from_json
from fedprivacy.attacks.bounds import STEPS
from fedprivacy.attacks.tradeoff import GaussianCurve, TradeOff, from_event
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption

# The reasons for which there is no certificate.
NODES_CLIP = (
    "nodes clip the updates, which a malicious one does not: a server that clips each update itself "
    "(server.clips) bounds what a client can do"
)
OF_RECORDS = (
    'the guarantee is for one record (privacy.unit = "example"), and a malicious client sends a sum over as '
    "many as it likes"
)
NOBODY_BOUNDS = {
    "none": "nobody adds noise, so that one client may decide what the model does",
    "local": "each client adds its own noise, and a malicious one uploads what it likes instead",
    "distributed": (
        "each client clips and adds its share of the noise itself, and the secure sum hides from the server "
        "what a malicious one sends"
    ),
}
# The assumptions of a certificate beside those of the claim that it follows from.
SERVER_CLIPS = "the server clips each single update itself, whatever its node sent"
NO_OTHER_HARM = (
    "malicious clients do nothing but upload what they like: none keeps an honest client's update from the "
    "server, or answers for another client"
)
NOT_BY_COHORT = (
    "what malicious clients upload in a round may follow from the global models and from all that they "
    "agreed on before it, and not from which others of them were drawn for it"
)


@dataclass(frozen=True)
class Certificate:
    """The most that malicious clients can change, compared with the same run with them honest.

    Args:
        clients: Their number, k.
        curve: The trade-off curve of one step; None where nothing is certified.
        steps: The number of steps.
        assumptions: Those of the certificate; where there is none, the reason.
    """

    clients: int
    curve: TradeOff | None
    steps: int
    assumptions: tuple[str, ...]

    def most(self, honest: float) -> float:
        """The largest probability of an event, or mean of values in [0, 1], with the malicious clients.

        Args:
            honest: The probability, or mean, with these clients honest.

        Returns:
            At least `honest`; 1 without a certificate.

        Raises:
            InputError: it is no probability.
        """
        if not 0 <= honest <= 1:
            raise InputError(f"a probability of {honest}: it must lie in [0, 1].")
        if self.curve is None:
            return 1.0
        if isinstance(self.curve, GaussianCurve):
            return float(GaussianCurve(self.steps * self.curve.mu).tpr(honest))
        most = honest
        for _ in range(self.steps):
            most = min(1.0, float(self.curve.tpr(most)))
        return most

    def least(self, honest: float) -> float:
        """The smallest probability or mean, as `most` has the largest; 0 without a certificate."""
        return 1.0 - self.most(1.0 - honest)

    @property
    def basis(self) -> str:
        """What it follows from, in words; empty without a certificate."""
        if self.curve is None:
            return ""
        return f"{self.curve.basis}; {self.steps} step{'' if self.steps == 1 else 's'}"


def certificate(ledger: Mapping[str, Any], *, clips: bool, clients: int, rounds: int) -> Certificate:
    """The certificate of a run's ledger against malicious clients, who may see all global models.

    Args:
        ledger: As `Ledger.to_json` wrote it, from a live or a stored run.
        clips: Whether the server clips each single update itself.
        clients: The number of malicious clients, at least 1.
        rounds: The number of rounds in which they are malicious; in all others the two runs do not differ.

    Raises:
        InputError: the ledger is damaged.
        UnsupportedEvent: no accountant answers for its event.
    """
    try:
        trust, unit, adjacency = (ledger[key] for key in ("trust", "unit", "adjacency"))
        [claim] = [claim for claim in ledger["claims"] if claim["observer"] == "participant"]
        event, assumptions = claim["event"], tuple(claim["assumptions"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"the ledger is damaged: {type(error).__name__}: {error}") from error
    reason = NOBODY_BOUNDS.get(trust) or (OF_RECORDS if unit == "example" else None if clips else NODES_CLIP)
    if reason is not None or event is None:
        return Certificate(clients, None, 0, (reason or assumptions[0],))
    released = _in_rounds(from_json(event), rounds)
    curve, steps = from_event(released, adjacency), clients * STEPS["client", adjacency]
    if curve is None:
        return Certificate(clients, None, 0, (str(TrainingAssumption.NOISE_IS_ZERO),))
    # Where the cohort is public, nothing follows from its secrecy.
    drawn = (NOT_BY_COHORT,) * (clients > 1 and TrainingAssumption.SECRET_COHORT.among(assumptions))
    stated = (SERVER_CLIPS, NO_OTHER_HARM, *drawn, *assumptions)
    return Certificate(clients, curve, steps, stated)


def _in_rounds(event: dp.DpEvent, rounds: int) -> dp.DpEvent:
    """What is released in the rounds that are attacked: no more of a client's parts than rounds."""
    if isinstance(event, dp.SelfComposedDpEvent):
        return dp.SelfComposedDpEvent(event.event, min(event.count, rounds))
    return event
