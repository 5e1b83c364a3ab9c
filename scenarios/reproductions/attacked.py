"""Rows on attacks: a ready scenario is replayed as by `fedprivacy replay`, and stored like it."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedprivacy.documents.kinds import read_as
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.errors import RunError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import find
from scenarios.reproductions.row import Measured, Place, Row

_NASR = "Nasr, Shokri and Houmansadr 2019, the table of attacks on Alexnet"
Figure = Callable[[ReplayDocument], float]


@dataclass(frozen=True)
class Game:
    """A ready scenario with some of its attacks alone.

    Args:
        scenario: Its name.
        attacks: The attacks that are run.
        overrides: `key=value` settings of theirs.
    """

    scenario: str
    attacks: tuple[str, ...]
    overrides: tuple[str, ...] = ()

    def load(self, place: Place) -> AttackScenario:
        """Returns the scenario, on the file that was named if one was."""
        path = [] if place.data is None else [f"data.path={json.dumps(str(place.data))}"]
        scenario = load(find(self.scenario), [*self.overrides, *path])
        assert isinstance(scenario, AttackScenario)
        chosen = {name: scenario.attacks[name] for name in self.attacks}
        return scenario.model_copy(update={"attacks": chosen})

    def data(self, place: Place) -> Path:
        """Returns the file that the scenario would read; without it a scenario does not even load."""
        if place.data is not None:
            return place.data
        return Path(tomllib.loads(find(self.scenario).read_text(encoding="utf-8"))["data"]["path"])

    @property
    def command(self) -> str:
        """The command that replays the same."""
        options = [f"--attack {name}" for name in self.attacks]
        return " ".join(["fedprivacy replay", self.scenario, *options, *map(_set, self.overrides)])

    def replay(self, place: Place) -> tuple[ReplayDocument, str]:
        """Replays the attacks and stores the run; returns the public part of its result, and its directory.

        Raises:
            RunError: They did not finish.
        """
        from scenarios.attacks.replay import replay
        from scenarios.engines.launch import check_workers

        document = replay(self.load(place), place.out, workers=check_workers(None), command=self.command)
        if document["status"] != "finished":
            raise RunError(f"{self.scenario}: did not finish; {document['path']} has the reason.")
        return read_as(ReplayDocument, document), str(document["path"])


def _set(override: str) -> str:
    return f"--set {shlex.quote(override)}"


def measured(game: Game, figure: Figure) -> Callable[[Place], Measured]:
    """Returns the measurement of a figure of attacks; the attacked run has no privacy, hence no epsilon."""

    def measure(place: Place) -> Measured:
        result, path = game.replay(place)
        return Measured(figure(result), run=path)

    return measure


def _balanced_accuracy(result: ReplayDocument) -> float:
    """In per cent, as the published table has it."""
    measure = result.attacks[0].balanced_accuracy
    if measure is None:
        raise RunError("the replay has no balanced accuracy: its targets were too few.")
    return 100 * measure.value


def _advantage_of_lira(result: ReplayDocument) -> float:
    """How many times as many members LiRA identifies as the loss does, at one false alarm in a hundred."""
    by_name = {attack.name: attack for attack in result.attacks}
    lira, loss = (by_name[name].tpr_at_fpr["0.01"] for name in ("references", "black-box"))
    if lira is None or loss is None or loss.value == 0:
        raise RunError("the loss identifies no member at this rate of false alarms, so that no ratio exists.")
    return lira.value / loss.value


_LIRA = Game(
    "white-box-location30",
    ("black-box", "references"),
    (
        'attacks.black-box.methods=["loss"]',
        'attacks.references.methods=["lira"]',
        "attacks.references.references=16",
    ),
)
# Attack of the ready scenario, what the server does, the published figure for Alexnet, and ours.
_ON_PICTURES = (
    ("passive", "looks on", 85.1, 93.0),
    ("ascent", "raises the losses of its targets", 88.2, 98.0),
    ("isolating", "gives the victim a stream of its own", 89.0, 100.0),
    ("isolating-ascent", "isolates the victim and raises losses", 92.1, 97.0),
)


def _on_pictures(attack: str, does: str, published: float, ours: float) -> Row:
    game = Game("white-box-federation", (attack,), ("game.repeats=1",))
    return Row(
        f"nasr-{attack}",
        f"A server that {does} guesses members: Alexnet on CIFAR-100 (here a CNN, 100 pictures a client)",
        _NASR,
        "balanced accuracy, per cent",
        published,
        ours,
        0.5,
        180,
        measured(game, _balanced_accuracy),
        game.data,
        other_data=True,
    )


ROWS: tuple[Row, ...] = (
    *(_on_pictures(*each) for each in _ON_PICTURES),
    Row(
        "lira-location30",
        "LiRA identifies ten times as many members as the loss at few false alarms (there 0.1 % on CIFAR-10, "
        "here 1 % on Location-30)",
        "Carlini et al. 2022",
        "true positive rate / that of the loss",
        10.0,
        38.0,
        0.5,
        120,
        measured(_LIRA, _advantage_of_lira),
        _LIRA.data,
        other_data=True,
    ),
)
