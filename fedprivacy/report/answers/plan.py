"""The answer of a plan: one number with its interval, or that the data end before it is reached."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.plan import Answer as Verdict
from fedprivacy.documents.plan import Curve, PlanDocument
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import ANSWER_WORDS, Answer, Entry
from fedprivacy.report.protection import Protected

WITHHELD = "operator-only: the runs used clients' records without a charge"
INTERVAL = "95 % interval"
MORE = "; others in the table"


def of_plan(document: PlanDocument, cells: Sequence[Protected]) -> Answer:
    """The answer under each trust model, with the interval of each number.

    Args:
        document: The plan.
        cells: The guarantees that runs as planned would have.
    """
    lines = [
        Entry(f"{words.capital(curve.trust)}: {phrase_of(document, curve)}", tested(curve))
        for curve in document.curves
    ]
    first = document.curves[0]
    number, label = _focus(document, first)
    under = f", {words.trust(first.trust)}" if first.answer else ""
    return cards.answer(
        sentence(document),
        number,
        f"{label}{under}",
        cells,
        [cards.cost(lines), cards.protected(cells, "Of a run as planned."), cards.learned(cells)],
    )


def sentence(document: PlanDocument) -> str:
    """The whole answer in a sentence of at most `ANSWER_WORDS` words."""
    verdicts = [curve.answer for curve in document.curves]
    if any(verdict is None for verdict in verdicts):
        return f"The answer is {WITHHELD}."
    if _unreachable(document):
        return f"{wanted(document)} is out of reach: {_without_noise(document)}."
    if not any(curve.points for curve in document.curves):
        return f"{wanted(document)} at {_epsilon(document)} takes {_more_than_here(document)}."
    several = len(document.curves) > 1
    phrases = [
        f"{phrase_of(document, curve, brief=several)} under {curve.trust}" for curve in document.curves
    ]
    begin = {
        "clients": f"{wanted(document)} at {_epsilon(document)} takes",
        "epsilon": f"{wanted(document)} with {_clients(document)} takes",
        "accuracy": f"{words.capital(_clients(document))} at {_epsilon(document)} reach",
    }[document.question.unknown]
    for count in range(len(phrases), 0, -1):
        text = f"{begin} {', '.join(phrases[:count])}{MORE if count < len(phrases) else ''}."
        if len(text.split()) <= ANSWER_WORDS:
            break
    return text


def wanted(document: PlanDocument) -> str:
    """The accuracy that is wanted, in words."""
    return f"{100 * (document.question.target_accuracy or 0):g} % accuracy"


def phrase_of(document: PlanDocument, curve: Curve, *, brief: bool = False) -> str:
    """The answer of one curve as a clause; a number never comes without its interval or its bound.

    Args:
        document: The plan.
        curve: Of one trust model.
        brief: Whether it is one of several in a sentence, whose intervals the label explains.
    """
    of = "" if brief else f"{INTERVAL} "
    answer = curve.answer
    if answer is None:
        return WITHHELD
    if answer.verdict == "unreachable":
        return f"out of reach, since {_without_noise(document)}"
    if document.question.unknown == "accuracy":
        if answer.value is None:
            return "no accuracy that the law can state so far beyond the data"
        beyond = f", extrapolated beyond {answer.largest:,.0f} clients" * (answer.verdict == "extrapolated")
        return f"{words.accuracy(answer.value)} ({of}{_shares(answer)}){beyond}"
    if answer.verdict == "beyond" and not curve.points:
        return _more_than_here(document)
    if answer.verdict == "beyond":
        unreached = "" if brief else " (the curve does not reach it)"
        return f"more than {_named(document, answer.largest)}{unreached}"
    value = _named(document, answer.value or 0.0)
    if answer.verdict == "least":
        return f"{value} or fewer" if document.question.unknown == "clients" else f"{value} or less"
    ends = f"({of}{_ends(answer)})"
    if answer.verdict == "extrapolated":
        return f"more than {answer.largest:,.0f}, by the law {value} {ends}"
    return f"{value} {ends}"


def tested(curve: Curve) -> str:
    """What was measured on test records at the answer."""
    final = curve.test
    if final is None or final.accuracy.mean is None:
        return ""
    interval = final.accuracy.interval
    ends = f" ({words.share_interval(*interval)})" if interval else ""
    reached = words.accuracy(final.accuracy.mean)
    return f"On test records {words.counted(final.clients, 'client')} reach {reached}{ends}"


def _focus(document: PlanDocument, curve: Curve) -> tuple[str, str]:
    """The number in focus and its label."""
    answer, question = curve.answer, document.question
    if answer is None:
        return "—", WITHHELD
    target = f"for {wanted(document)}" if question.target_accuracy else f"accuracy of {_clients(document)}"
    if question.epsilon is not None:
        target += f" at {_epsilon(document)}"
    elif question.clients is not None:
        target += f" with {_clients(document)}"
    if answer.verdict == "unreachable":
        return "Out of reach", f"{target}: {_without_noise(document)}"
    if answer.value is None:
        if question.unknown == "accuracy":
            return "—", target
        if not curve.points:
            return f"more than {_named(document, answer.largest)}", f"{target}: {_without_noise(document)}"
        return f"more than {_named(document, answer.largest)}", f"{target}: the curve does not reach it"
    if question.unknown == "accuracy":
        return words.accuracy(answer.value), f"{target}; {INTERVAL} {_shares(answer)}"
    how = " (extrapolated)" if answer.verdict == "extrapolated" else ""
    return _named(document, answer.value), f"{target}{how}; {INTERVAL} {_ends(answer)}"


def _named(document: PlanDocument, value: float) -> str:
    if document.question.unknown == "epsilon":
        return f"epsilon {words.number(value)}"
    return words.counted(int(value), "client")


def _ends(answer: Verdict) -> str:
    """Both ends of an interval; one beyond the reach of the law is named as that."""
    low, high = (
        f"more than {_plain(answer.limit)}" if end is None else _plain(end)
        for end in (answer.low, answer.high)
    )
    return low if low == high else f"{low} to {high}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else words.number(value)


def _shares(answer: Verdict) -> str:
    return words.share_interval(answer.low or 0.0, answer.high or 0.0)


def _unreachable(document: PlanDocument) -> bool:
    return any(
        curve.answer is not None and curve.answer.verdict == "unreachable" for curve in document.curves
    )


def _without_noise(document: PlanDocument) -> str:
    base = document.baseline
    assert base is not None  # an answer that is shown has it
    return f"{words.counted(int(base.x), 'client')} without noise reach {words.accuracy(base.mean)}"


def _more_than_here(document: PlanDocument) -> str:
    """That all clients that train here are too few, at any epsilon."""
    base = document.baseline
    assert base is not None  # an answer that is shown has it
    clients = words.counted(int(base.x), "client")
    reached = words.accuracy(base.mean)
    return (
        f"more than the {clients} that can train here, with or without noise (without, these reach {reached})"
    )


def _epsilon(document: PlanDocument) -> str:
    return f"epsilon {words.target(document.question.epsilon)}"


def _clients(document: PlanDocument) -> str:
    return words.counted(document.question.clients or 0, "client")
