"""What an entry consists of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from claims import checks
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.registry import Mechanism


class Claim(ABC):
    """The checks of one mechanism; see the package's docstring.

    Attributes:
        instances: Mechanisms that stand for all: small and large budgets, every option.
        delta: At which privacy is checked; 0 for what is epsilon-DP.
    """

    instances: Sequence[Any]
    delta: float = 0.0

    def epsilon(self, claimed: Any) -> float:
        """What one release costs, by the accountant, under replace-one adjacency."""
        return epsilon(claimed.event(), self.delta, "replace-one").epsilon

    @abstractmethod
    def halved(self, mechanism: Any) -> Mechanism:
        """A mechanism of the same kind with half the noise: mostly that of twice the epsilon."""

    @abstractmethod
    def distribution(self, claimed: Any, drawn: Any) -> None:
        """Draws are distributed as stated: `checks.fits` (chi-square), `checks.follows` (KS)."""

    @abstractmethod
    def moments(self, claimed: Any, drawn: Any) -> None:
        """Estimates are unbiased, and their variance is that of the formula: `checks.moments`."""

    @abstractmethod
    def privacy(self, claimed: Any, drawn: Any) -> None:
        """The privacy loss of `drawn` on worst-case neighbours is what `claimed` states, or less.

        Finite outputs: `checks.loss` of probabilities to which `distribution` has fitted the draws.
        Continuous ones: `checks.hockey_stick` of such densities at the claimed epsilon, at most delta.
        """

    @abstractmethod
    def scores(self, drawn: Any, count: int) -> tuple[checks.Numbers, checks.Numbers]:
        """For the audit: the sharpest statistic of `count` draws on either of two worst-case neighbours.

        Larger scores mean the first of the two.
        """

    def audited(self, mechanism: Any) -> bool:
        """Whether `draws` are enough for the audit of this instance to prove something."""
        return True

    draws: int = 20_000  # for an audit, on each of the neighbours
    teeth: float = (
        0.5  # which part of the claimed epsilon the audit must prove; 0 where no threshold is sharp
    )

    def audit(self, claimed: Any, drawn: Any) -> None:
        """The empirical epsilon does not exceed the claimed one, and comes near it."""
        checks.audit(*self.scores(drawn, self.draws), self.epsilon(claimed), self.delta, self.teeth)

    no_oracle: str = (
        ""  # why nobody else's code or figures exist, in words; only where `oracle` is not written
    )

    def oracle(self, claimed: Any) -> None:
        """Somebody else's code, or published figures, say the same."""
        assert self.no_oracle, "write an oracle, or say in no_oracle why there is none"
