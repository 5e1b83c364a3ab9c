"""One attack: the scores of members and non-members, and where its curve says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.attack import Attack
from fedprivacy.documents.attack import Histogram as Scores
from fedprivacy.report import svg, words
from fedprivacy.report.charts import Axis, Bars, Histogram

PER_RATE = 5  # the fewest expected false alarms for which a TPR is reported


def histogram(attack: Attack) -> tuple[Histogram, ...]:
    """Members upwards, non-members downwards; nothing where no scores are stored."""
    scores, runs = pooled(attack.histograms)
    if scores is None:
        return ()
    return (
        Histogram(
            Axis(f"Score{runs and f', {runs}'}", lambda score: words.number(float(f"{score:.4g}"))),
            tuple(scores.edges),
            (
                Bars("Members", svg.LOCAL, tuple(scores.members)),
                Bars("Non-members", svg.NONE, tuple(scores.nonmembers)),
            ),
            "Share of members above, of non-members below",
            mirrored=True,
        ),
    )


def pooled(histograms: Sequence[Scores]) -> tuple[Scores | None, str]:
    """The scores of all runs in one histogram where their edges agree, else those of the first run.

    Returns:
        The histogram, None where there is none; and of which runs, empty where there is one run alone.
    """
    if len(histograms) < 2:
        return (histograms[0], "") if histograms else (None, "")
    first, many = histograms[0], len(histograms)
    if any(histogram.edges != first.edges for histogram in histograms):
        return first, f"in run 1 of {many}"
    members = tuple(
        sum(counts) for counts in zip(*(histogram.members for histogram in histograms), strict=True)
    )
    others = tuple(
        sum(counts) for counts in zip(*(histogram.nonmembers for histogram in histograms), strict=True)
    )
    return Scores(edges=first.edges, members=members, nonmembers=others), f"{many} runs together"


def blind_below(attack: Attack) -> float:
    """The FPR below which too few non-members were scored for a TPR."""
    return PER_RATE / attack.nonmembers if attack.nonmembers else 1.0
