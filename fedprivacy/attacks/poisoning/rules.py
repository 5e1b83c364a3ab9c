"""Rules of poisoning: enough honest clients, labels that records have, and pixels that pictures have."""

from __future__ import annotations

from collections.abc import Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Check, Entry, First, Rule
from fedprivacy.scenario.attack.derived_values import AttackValues

SHARE = 0.5  # of the pictures that have the trigger, where a scenario does not give it


def _no_label(key: str) -> Rule[AttackValues]:
    return Rule(
        key,
        lambda v: v[key] is not None and v.around.classes is not None and v[key] >= v.around.classes,
        "no record has this label",
        lambda v: f"Labels are 0 to {(v.around.classes or 1) - 1}.",
    )


def _only_of_a_backdoor(key: str) -> Rule[AttackValues]:
    return Rule(
        key,
        lambda v: v["goal"] == "label-flip" and v[key] is not None,
        'has no effect with goal = "label-flip"',
        'Remove it, or set goal = "backdoor".',
        shown=False,
    )


def _outside_the_picture(v: AttackValues) -> Iterator[Finding]:
    shape = v.around.features
    if v["pixels"] is None or shape is None:
        return
    if len(shape) < 2:
        what = f"records are no pictures, they have {shape[0]} values in a row"
        yield Finding(("pixels",), what, 'Set goal = "label-flip", or take data with pictures.')
        return
    height, width = shape[:2]
    for row, column in v["pixels"]:
        if not (0 <= row < height and 0 <= column < width):
            what = f"[{row}, {column}] lies outside of the pictures of {height} x {width} pixels"
            yield Finding(
                ("pixels",), what, f"Rows go from 0 to {height - 1}, columns from 0 to {width - 1}."
            )
            return


POISONING_RULES: tuple[Entry[AttackValues], ...] = (
    Rule(
        "clients",
        lambda v: v["clients"] >= v.around.run.population,
        lambda v: f"there are {v.around.run.population} clients, and one at least must be honest",
        lambda v: f"At most {v.around.run.population - 1}.",
    ),
    _no_label("target"),
    _no_label("source"),
    First(
        Rule(
            "source",
            lambda v: v["goal"] == "label-flip" and v["source"] is None,
            'missing, and goal = "label-flip" is about the records of one label',
            "Add source = 7, the label that the model should not recognise.",
        ),
        Rule(
            "source",
            lambda v: v["source"] == v["target"],
            "the model should take these records for what they are",
            "Choose another label than target.",
        ),
    ),
    First(
        Rule(
            "pixels",
            lambda v: v["goal"] == "backdoor" and v["pixels"] is None,
            "missing, and a backdoor has a trigger",
            'Add pixels = [[0, 0], [0, 1]], say, or set goal = "label-flip".',
        ),
        _only_of_a_backdoor("pixels"),
        Check(_outside_the_picture),
    ),
    _only_of_a_backdoor("value"),
    Rule(
        "share",
        lambda v: v["goal"] == "label-flip" and v["share"] != SHARE,
        'has no effect with goal = "label-flip", which poisons all records of the source',
        'Remove it, or set goal = "backdoor".',
    ),
)
