"""The answer of attacks: how often the strongest one is right, at the most and the least privacy."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import CLIPPED, ArmResult, Attack, Measure
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.attacks import figures, headline, trials
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.protection import Protected

ATTACKERS = "The observers that attack here; other observers are not in question."
NOTHING = "No attack was completed"
COIN = "a coin is right in 50 %"
ACCURACY = "Accuracy of the attacked models on held-out records, before the attacks."
NO_NOISE = "No attacked run adds noise: privacy costs nothing, and protects nobody."


def of_attacks(document: ReplayDocument, cells: Sequence[Protected]) -> Answer:
    """The strongest attack of the most exposed runs, beside that of the least exposed.

    Args:
        document: The attacks.
        cells: The guarantees of the attacked runs.
    """
    exposed = _exposed(document)
    if not exposed and document.trials:
        return _in_trials(document, cells)
    bare = bool(cells) and all(cell.arm.trust == "none" for cell in cells)
    shown = [
        cards.cost(_accuracies(document, exposed), f"{ACCURACY} {NO_NOISE}" if bare else ACCURACY),
        cards.protected(cells, "" if document.arms else ATTACKERS),
        cards.learned(cells, [_measured(exposed)] if exposed else []),
    ]
    if not exposed:
        return cards.answer(f"{NOTHING}.", "—", "right guesses", cells, shown)
    most, (strongest, *_) = next(iter(exposed.items()))
    return cards.answer(f"{sentence(document)}.", _value(strongest), _label(strongest, most), cells, shown)


def sentence(document: ReplayDocument, *, intervals: bool = False) -> str:
    """The strongest attack of the most exposed runs, and of the least exposed, without a full stop.

    Args:
        document: The attacks.
        intervals: Whether each number has its 95 % interval behind it.
    """
    exposed = _exposed(document)
    if not exposed:
        return trials.sentence(document) if document.trials else NOTHING
    (most, (strongest, *rest)), *others = exposed.items()
    which = f"strongest of {len(rest) + 1} attacks" if rest else "attack"
    text = words.capital(f"{most} the {which} {_success(strongest, intervals)}".lstrip())
    if others:
        least, (weakest, *_) = others[-1]
        return f"{text}; {least} it {_success(weakest, intervals)}"
    return f"{text}, from {cards.brief(figures.seat(strongest.seat), 3)}; {_allowed(strongest)}"


def _in_trials(document: ReplayDocument, cells: Sequence[Protected]) -> Answer:
    """The answer where no attack judges records: the attack in trials furthest above guessing."""
    strongest = trials.ranking(document)[0]
    rate = figures.percent(strongest.success.value)
    text, tone = f"Measured: succeeds in {rate} of trials", "bad" * trials.above_guessing(strongest)
    note = f"95 % interval {figures.ends(strongest.success, rate=True)}; {trials.label(document, strongest)}"
    shown = [
        cards.cost(_of_trials(document), ACCURACY),
        cards.protected(cells, "" if document.arms else ATTACKERS),
        cards.learned(cells, [Entry(text, note, tone)]),
    ]
    label = f"of trials, {strongest.means}; {strongest.comparison} in {figures.percent(strongest.chance)}"
    return cards.answer(f"{trials.sentence(document)}.", rate, label, cells, shown)


def _of_trials(document: ReplayDocument) -> list[Entry]:
    """The accuracy of the attacked models at each level of privacy."""
    measured = {
        trials.where(trial): accuracy
        for trial in document.trials
        if (accuracy := trial.model_accuracy.before) is not None
    }
    lines = [Entry(f"{words.accuracy(value)} accuracy {where}") for where, value in measured.items()]
    return spaced(lines, cards.MOST) or [Entry("Not measured")]


def _exposed(document: ReplayDocument) -> dict[str, list[Attack]]:
    """Attacks by arm, or level of privacy, in words: the strongest first, the most exposed level first."""
    groups: dict[str, list[Attack]] = {}
    for attack in document.attacks:
        groups.setdefault(_where(document, attack), []).append(attack)
    for group in groups.values():
        group.sort(key=_area, reverse=True)
    return dict(sorted(groups.items(), key=lambda named: -_area(named[1][0])))


def _area(attack: Attack) -> float:
    return attack.auc.value


def _where(document: ReplayDocument, attack: Attack) -> str:
    if attack.arm:
        level = attack.level
        return f"against {cards.brief(attack.arm)}" + (
            f" at epsilon {words.epsilon(level)}" if isinstance(level, float) else ""
        )
    if not document.several:
        return ""
    if attack.level == CLIPPED:
        return "with clipping alone"
    return "without privacy" if attack.level is None else f"at epsilon {words.epsilon(attack.level)}"


def _share(attack: Attack) -> Measure | None:
    """The share of right guesses, members and others equally often; None: the area is shown instead."""
    return headline.telling(attack.balanced_accuracy)


def _value(attack: Attack) -> str:
    if not headline.telling(attack.auc):
        return headline.SHORT
    if not figures.from_guessing(attack.auc):
        return _interval(attack)
    right = _share(attack)
    return figures.share(attack.auc.value) if right is None else figures.percent(right.value)


def _success(attack: Attack, interval: bool = False) -> str:
    if not headline.telling(attack.auc):
        return f"has {headline.too_few(attack.auc)}"
    ends = f" (95 % interval {_interval(attack)})" if interval else ""
    if not figures.from_guessing(attack.auc):
        return f"is not distinguishable from guessing{ends}"
    return (
        f"reaches AUC {_value(attack)}{ends}"
        if _share(attack) is None
        else f"is right in {_value(attack)}{ends} of guesses"
    )


def _label(attack: Attack, where: str) -> str:
    if not headline.telling(attack.auc):
        return f"to tell{where and f', {where}'}; {headline.needed(attack.auc)}"
    area = _share(attack) is None
    what = "AUC of the strongest attack" if area else "of guesses about membership right"
    certain = figures.from_guessing(attack.auc)  # else the interval itself stands in place of a number
    sure, ends = ("", f"; 95 % interval {_interval(attack)}") if certain else ("(95 % interval) ", "")
    return f"{sure}{what}{where and f', {where}'}{ends}; {'guessing gives 0.5' if area else COIN}"


def _allowed(attack: Attack) -> str:
    """What the guarantee against it allows, in the same figure."""
    if attack.guarantee is None or not attack.guarantee.holds:
        return "nothing is guaranteed against it"
    bound = attack.bound
    if _share(attack) is not None and bound.balanced_accuracy is not None:
        return f"its guarantee allows {figures.at_most(bound.balanced_accuracy, rate=True)}"
    if bound.auc is not None:
        return f"its guarantee allows AUC {figures.at_most(bound.auc)}"
    return "its guarantee bounds no attack"


def _interval(attack: Attack) -> str:
    right = _share(attack)
    return figures.ends(attack.auc) if right is None else figures.ends(right, rate=True)


def _measured(exposed: dict[str, list[Attack]]) -> Entry:
    where, (attack, *_) = next(iter(exposed.items()))
    note = f"95 % interval {_interval(attack)}; attack {cards.brief(attack.name)}{where and f' {where}'}"
    tone = "bad" if figures.from_guessing(attack.auc) else ""
    return Entry(f"Measured: {_success(attack).removeprefix('is ')}", note, tone)


def _accuracies(document: ReplayDocument, exposed: dict[str, list[Attack]]) -> list[Entry]:
    """The accuracy of the attacked models: of each arm, or at each level of privacy."""
    if document.arms:
        measured = [(_named(arm), arm.accuracy.test.mean) for arm in document.arms]
        measured.sort(key=lambda pair: -(pair[1] or 0.0))
    else:
        measured = [(where, attacks[0].model_accuracy.before) for where, attacks in exposed.items()]
    lines = [
        Entry(f"{words.accuracy(accuracy)} accuracy{where and f' {where}'}")
        for where, accuracy in measured
        if accuracy is not None
    ]
    return spaced(lines, cards.MOST) or [Entry("Not measured")]


def _named(arm: ArmResult) -> str:
    name = f"of {cards.brief(arm.arm)}"
    return name if arm.epsilon is None else f"{name}, epsilon {words.epsilon(arm.epsilon)}"
