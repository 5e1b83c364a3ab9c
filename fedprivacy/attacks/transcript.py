"""An attacker's observations of a run, and the features of each target that it computes from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.attacks.signals import Probe, Vector
from fedprivacy.attacks.trap_units import response

TREND = "rise-"  # prefix of features that measure the change of another one over the rounds
TINY = 1e-12  # below it a loss or a norm is numerically zero


@dataclass(frozen=True)
class Sight:
    """One observation.

    Args:
        sent: The weights that were trained from, float32, shape (parameters,).
        update: What the victim made of them, or in a participant's seat all the others; of a sum what is
            left of it without the others' expected part, shape (parameters,).
        others: The updates of other clients, each from what it was sent, shape (others, parameters); where a
            sum alone is seen, of clients of the attacker's own.
        targets: The numbers of the targets that were attacked, or None where all are judged.
        round: In which round of the attack, the first being 0.
        places: The parameters that lead into each attacked target's trap units, shape (targets, units,
            inputs + 1); None: there are none.
    """

    sent: Tensor
    update: Tensor
    others: Tensor
    targets: NDArray[np.int64] | None = None
    round: int = 0
    places: Tensor | None = None


def features(probe: Probe, sight: Sight) -> dict[str, Vector]:
    """The scores of a probe's records from one observation; a larger score always favours membership.

    Names: `cosine` of the update with minus the record's gradient where training began; `excess-cosine`,
    the same over what other clients' updates have; `fedmia`, that excess in standard deviations of theirs
    (the idea of FedMIA-II, Zhu et al. 2025); `loss` and `gradient`, minus the logarithms of the record's
    loss and gradient norm under the weights that came back; `recovery` and `relief`, by how much these
    fell in training. With trap units also `trap`: by how many gradient steps on the record they were moved
    (`fedprivacy.attacks.trap_units`).
    """
    back = sight.sent + sight.update
    updates = torch.cat([sight.update[None], sight.others])
    cosines, norms = probe.alignment(sight.sent, updates)
    _, after = probe.alignment(back, sight.update[None])
    before_loss, after_loss = (np.log(probe.losses(w).double().numpy() + TINY) for w in (sight.sent, back))
    before_norm, after_norm = np.log(norms + TINY), np.log(after + TINY)
    values = {
        "cosine": cosines[:, 0],
        "recovery": before_loss - after_loss,
        "gradient": -after_norm,
        "loss": -after_loss,
        "relief": before_norm - after_norm,
    }
    if sight.places is not None:
        gradients = torch.cat([part for _, part in probe.gradients(sight.sent)])
        moved = response(gradients, sight.update, sight.places).double().numpy()
        values = {"trap": moved, **values}
    if len(sight.others):
        rest = cosines[:, 1:]
        values["excess-cosine"] = cosines[:, 0] - rest.mean(axis=1)
        if rest.shape[1] > 1:
            values["fedmia"] = values["excess-cosine"] / (rest.std(axis=1, ddof=1) + TINY)
    return values


@dataclass
class Judgement:
    """Features of the targets, gathered over observations.

    Args:
        probe: Asks the model about all targets.
    """

    probe: Probe
    passes: dict[int, dict[str, Vector]] = field(default_factory=dict)
    attacked: dict[str, Vector] = field(default_factory=dict)

    def see(self, sight: Sight) -> None:
        """Takes in an observation; one that was made of some targets judges these alone."""
        if sight.targets is None:
            self.passes[sight.round] = features(self.probe, sight)
            return
        for name, values in features(self.probe.at(sight.targets), sight).items():
            held = self.attacked.setdefault(name, np.full(len(self.probe.y), np.nan))
            held[sight.targets] = values

    def features(self, rounds: Iterable[int] | None = None) -> dict[str, Vector]:
        """Each feature of each target, shape (targets,); NaN of targets that were not reached.

        Those of a passive attacker summarise the trajectory over the observed rounds: means over all of them,
        `late` means over the last quarter, where training in isolation has gone furthest, and the `rise` from
        the first half to the second.

        Args:
            rounds: Only the observations of these rounds.
        """
        if not self.passes:
            return dict(self.attacked)
        rounds_used = self.passes if rounds is None else rounds
        seen = [self.passes[number] for number in sorted(rounds_used) if number in self.passes]
        if not seen:
            return {}
        series = {name: np.stack([passed[name] for passed in seen]) for name in seen[0]}
        late, half = max(1, len(seen) // 4), len(seen) // 2
        summary = {name: values.mean(axis=0) for name, values in series.items()}
        if half:
            summary |= {f"late-{name}": values[-late:].mean(axis=0) for name, values in series.items()}
            summary |= {
                f"{TREND}{name}": values[-half:].mean(axis=0) - values[:half].mean(axis=0)
                for name, values in series.items()
            }
        return summary
