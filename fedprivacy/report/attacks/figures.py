"""The numbers of an attack as text: an area, a rate, a bound; an attack and its seat in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fedprivacy.documents.attack import Attack, Bound, Measure, Observed
from fedprivacy.report import words
from fedprivacy.scenario.attack.registry import ATTACK_KINDS

GUESSING = 0.5  # the AUC, and the share of right guesses, of an attack that knows nothing
TOO_FEW = "too few non-members"
RATES = ("0.1", "0.01", "0.001")  # the false positive rates at which attacks are reported
TRAPS = "trap units"  # in place of gradient steps
SEATS = {"server": "the server", "participant": "a participant", "outsider": "an outsider"}
COVERED = {
    "targets": "which targets were drawn",
    "training seeds too": "which targets were drawn and how training fell out",
}
SCORES = {
    "cosine": "Cosine of the update with the record's gradient",
    "loss": "Loss of the record, the other way round",
    "gradient": "Norm of the record's gradient, the other way round",
    "recovery": "By how much the loss fell, on a log scale",
    "relief": "By how much the gradient shrank",
    "trap": "How far units moved that react to the record alone",
    "excess-cosine": "Cosine beyond that with other records",
    "fedmia": "FedMIA: cosine against that of other clients' updates",
    "lira": "LiRA: likelihood ratio of the confidence",
    "lira-global": "LiRA with one variance for all records",
    "lira-offline": "LiRA from models without the record alone",
    "rmia": "RMIA: over how many other records it prevails",
    "rmia-offline": "RMIA from models without the record alone",
    "shadow": "Shadow models, a network for each class",
    "network-outputs": "Attack network on outputs",
    "network-gradients": "Attack network on outputs and last-layer gradients",
    "confidence": "Largest probability",
    "entropy": "Entropy of the output, the other way round",
    "modified-entropy": "Modified entropy, the other way round",
    "loss-by-class": "Loss against a threshold for each class",
    "supervised": "Supervised: logistic regression on all of them",
    "clustered": "Clustered: two groups, no membership known",
}


def share(value: float | None) -> str:
    """An area or a difference of rates.

    >>> share(0.90909), share(None)
    ('0.909', '—')
    """
    return "—" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """A rate in percent.

    >>> percent(0.02), percent(None)
    ('2.0 %', '—')
    """
    return "—" if value is None else f"{100 * value:.1f} %"


def at_most(value: float | None, *, rate: bool = False) -> str:
    """A bound rounded up, so that the print does not promise too much.

    >>> at_most(0.8801), at_most(0.0341, rate=True), at_most(None)
    ('0.881', '3.5 %', 'no guarantee')
    """
    if value is None:
        return words.NO_GUARANTEE.lower()
    up = min(1.0, math.ceil(value * 1000 - 1e-6) / 1000)
    return percent(up) if rate else share(up)


def at_least(value: float) -> str:
    """A floor rounded down, so that the print does not promise too much.

    >>> at_least(0.8809), at_least(0.0004)
    ('0.880', '0.000')
    """
    return share(max(0.0, math.floor(value * 1000 + 1e-6) / 1000))


def ends(measure: Measure, *, rate: bool = False) -> str:
    """An interval.

    >>> ends(Measure(value=0.5, low=0.4, high=0.6))
    '0.400 to 0.600'
    """
    if rate:
        return f"{100 * measure.low:.1f} to {percent(measure.high)}"
    return f"{share(measure.low)} to {share(measure.high)}"


def at(rate: str) -> str:
    """A false positive rate, from the key of a document.

    >>> at("0.01"), at("0.001")
    ('1 % FPR', '0.1 % FPR')
    """
    try:
        return f"{words.number(round(100 * float(rate), 9))} % FPR"
    except ValueError:
        return f"{rate} FPR"


def allowed(bound: Bound, rate: str) -> float | None:
    """The largest TPR allowed at an FPR, or None."""
    return (bound.tpr_at_fpr or {}).get(rate)


def seat(name: str) -> str:
    """The attacking seat, in words."""
    return SEATS.get(name, name)


def kind_label(name: str) -> str:
    """The kind of a name, in words; the name of an unknown one."""
    return ATTACK_KINDS[name].label if name in ATTACK_KINDS else name


def is_silent(attack: Attack) -> bool:
    """Whether an attack has the released model alone."""
    return attack.attack in ATTACK_KINDS and ATTACK_KINDS[attack.attack].silent


def is_active(attack: Attack) -> bool:
    """Whether an attack changes messages."""
    return attack.attack in ATTACK_KINDS and ATTACK_KINDS[attack.attack].active


def kind(attack: Attack) -> str:
    """The kind of an attack, in words; that by trap units is one of its own."""
    return TRAPS if attack.trap_units else kind_label(attack.attack)


def described(attack: Attack) -> str:
    """The description of an attack, in a few words.

    >>> auc = Measure(value=0.9, low=0.8, high=1.0)
    >>> described(Attack(attack="active-gradient-ascent", seat="server", targets_per_round=1, auc=auc))
    'gradient ascent, 1 target a round'
    """
    parts = [kind(attack)]
    if attack.isolating:
        parts.insert(0, "isolating")
    if attack.raw:
        parts.append("one raw step")
    if attack.everybody:
        parts.append("sent to all clients")
    if attack.clients_in_sum is not None:
        parts.append(f"sees a sum of {words.counted(attack.clients_in_sum, 'client')}")
    if attack.targets_per_round is not None:
        parts.append(f"{words.counted(attack.targets_per_round, 'target')} a round")
    elif attack.observed is not None:
        parts.append(f"rounds {observed(attack.observed)}")
    elif attack.rounds is not None:
        parts.append(f"over {words.counted(attack.rounds, 'round')}")
    return ", ".join(part for part in parts if part)


def observed(rounds: Observed) -> str:
    """Which rounds of training were looked at.

    >>> observed(Observed(first=5, last=25, count=5)), observed(Observed(first=3, last=5, count=3))
    ('5 to 25, 5 of them', '3 to 5')
    """
    if rounds.first == rounds.last:
        return f"{rounds.first:,}"
    whole = rounds.count == rounds.last - rounds.first + 1
    return f"{rounds.first:,} to {rounds.last:,}" + ("" if whole else f", {rounds.count:,} of them")


def score(name: str) -> str:
    """The description of a score; `late-` ones use the last observed rounds alone."""
    late = name.removeprefix("late-")
    text = SCORES.get(late, late)
    return f"{text} (late rounds)" if late != name else text


def covered(attacks: Iterable[Attack]) -> str:
    """The chance that the intervals cover, as a sentence; empty if unknown."""
    texts = dict.fromkeys(
        COVERED.get(attack.auc.covers, attack.auc.covers) for attack in attacks if attack.auc.covers
    )
    return f"Intervals cover the chance of {words.listed(texts, 'or')}." if texts else ""


def strongest(attacks: Sequence[Attack]) -> Attack:
    """The attack of the largest area."""
    return max(attacks, key=lambda attack: attack.auc.value)


def from_guessing(measure: Measure) -> bool:
    """Whether an area differs from guessing: its whole interval lies above 0.5."""
    return measure.low > GUESSING


def apart(measure: Measure, other: Measure) -> bool:
    """Whether two figures differ significantly: their intervals share no value."""
    return measure.high < other.low or other.high < measure.low
