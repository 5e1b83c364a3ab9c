"""The cells of a comparison: one scenario for each trust model, epsilon and seed."""

from __future__ import annotations

from typing import Any

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.cells import Corner, cell, corners
from fedprivacy.scenario.privacy import NoPrivacy

BASE = """name = "cells"
seed = 7
[data]
name = "digits"
[model]
name = "logistic"
[server]
rounds = 40
optimizer = "momentum"
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "central"
clipping_norm = 0.5
noise_multiplier = 3.0
delta = 1e-6
adjacency = "zero-out"
"""
COMPARE = """[compare]
trusts = ["local", "none"]
epsilons = [0.5, 3]
seeds = [4, 5]
[compare.none]
sampling.name = "all"
server = { rounds = 100, learning_rate = 2 }
[compare.local]
sampling = { name = "fixed", cohort = 20 }
server.rounds = 3
training.epochs = 2
privacy.noise_draw = "sum"
"""


def scenario(text: str = BASE + COMPARE, *overrides: str) -> Scenario:
    return Scenario.from_text(text, "my.toml", overrides)


def said(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        scenario(text)
    return str(caught.value).split("\n")


def changed(cell: Scenario, base: Scenario) -> dict[str, Any]:
    """The keys in which a cell is not its scenario; None for one that it lacks."""

    def flat(tables: dict[str, Any]) -> dict[str, Any]:
        return {
            f"{name}.{key}": value
            for name, table in tables.items()
            if isinstance(table, dict) and name != "compare"
            for key, value in table.items()
        } | {"seed": tables["seed"]}

    new, old = flat(cell.tables()), flat(base.tables())
    return {key: new.get(key) for key in new | old if new.get(key) != old.get(key)}


def test_central() -> None:
    base = scenario()
    assert changed(base.cell("central", 3.0, 5), base) == {
        "seed": 5,
        "privacy.epsilon": 3.0,
        "privacy.noise_multiplier": None,
    }


def test_local_lays_its_overlay_over_the_scenario() -> None:
    base = scenario()
    assert changed(base.cell("local", 0.5, 4), base) == {
        "seed": 4,
        "privacy.trust": "local",
        "privacy.epsilon": 0.5,
        "privacy.noise_multiplier": None,
        "privacy.max_participations": 3,
        "privacy.noise_draw": "sum",
        "training.epochs": 2,
        "server.rounds": 3,
        "sampling.name": "fixed",
        "sampling.cohort": 20,
        "sampling.rate": None,
    }


def test_none_has_no_noise_and_no_clipping() -> None:
    base = scenario()
    assert changed(base.cell("none", None, 7), base) == {
        "privacy.trust": "none",
        "privacy.noise_multiplier": None,
        "privacy.clipping_norm": None,
        "privacy.delta": None,
        "privacy.mechanism": None,
        "server.rounds": 100,
        "server.learning_rate": 2.0,
        "sampling.name": "all",
        "sampling.rate": None,
    }


def test_none_clips_where_its_overlay_says_so() -> None:
    cell = scenario(BASE + "[compare.none]\nprivacy.clipping_norm = 9").cell("none", None, 1)
    assert cell.privacy == NoPrivacy(trust="none", adjacency="zero-out", clipping_norm=9.0)


@pytest.mark.parametrize("overlay", ["", "[compare.none]\nprivacy.clipping_norm = 9"])
def test_none_clips_no_layers_of_its_scenario(overlay: str) -> None:
    layers = BASE.replace('"logistic"', '"mlp"\nhidden = [3]').replace(
        "clipping_norm = 0.5", 'clipping_norm = 0.5\nclipping_layers = "equal"'
    )
    base = scenario(layers + '[compare]\ntrusts = ["none", "central"]\n' + overlay)
    none = base.cell("none", None, 1).privacy
    assert (none.clipping_norm, none.clipping_layers) == (9.0 if overlay else None, None)
    assert base.cell("central", 2.0, 1).privacy.clipping_layers == "equal"
    clipped = cell(base.tables(), Corner("none", clipped=True), None)["privacy"]
    assert (clipped["clipping_norm"], clipped["clipping_layers"]) == (9.0 if overlay else 0.5, "equal")


def test_a_local_scenario_makes_central_cells_without_what_is_local() -> None:
    text = BASE.replace('"central"', '"local"\nmax_participations = 5\nnoise_draw = "sum"')
    central = scenario(text).cell("central", 1.0, 1).privacy
    assert (central.max_participations, central.noise_draw, central.epsilon) == (None, None, 1.0)
    local = scenario(text).cell("local", 1.0, 1).privacy
    assert (local.max_participations, local.noise_draw, local.epsilon) == (5, "sum", 1.0)


@pytest.mark.parametrize("cap", ["", "max_participations = 40\n"])
def test_participation_in_every_round_follows_the_rounds_of_the_cell(cap: str) -> None:
    text = BASE.replace('"central"\n', '"local"\n' + cap)
    base = scenario(text + "[compare.local]\nserver.rounds = 3")
    assert base.privacy.max_participations == 40
    assert base.cell("local", 1.0, 1).privacy.max_participations == 3
    fewer = scenario(text.replace("= 40\nopt", "= 41\nopt") + "[compare.local]\nserver.rounds = 3")
    assert fewer.cell("local", 1.0, 1).privacy.max_participations == (40 if cap else 3)


def test_a_cell_is_a_whole_scenario_with_the_default_comparison() -> None:
    for trust, epsilon in (("none", None), ("central", 2.0), ("local", 2.0)):
        cell = scenario().cell(trust, epsilon, 11)
        assert cell.compare == Scenario.default_compare(11)
        assert "compare" not in cell.to_toml()
        assert Scenario.from_text(cell.to_toml()) == cell


def test_cells_of_a_stored_comparison_are_the_same() -> None:
    base = scenario()
    stored = Scenario.from_text(base.to_toml())
    assert stored == base
    assert stored.cell("local", 2.0, 3) == base.cell("local", 2.0, 3)


def test_the_default_comparison() -> None:
    compare = scenario(BASE).compare
    assert compare.trusts == ("none", "central", "local")
    assert compare.epsilons == (1.0, 2.0, 4.0, 8.0)
    assert compare.seeds == (7, 8, 9)
    assert scenario(BASE + "[compare]\nepsilons = [1]").compare.seeds == (7, 8, 9)
    assert scenario(BASE, f"seed={2**63 - 1}").seed == 2**63 - 1


def test_an_epsilon_goes_with_noise_only() -> None:
    with pytest.raises(ValueError, match='trust "none" has no epsilon'):
        scenario().cell("none", 1.0, 1)
    with pytest.raises(ValueError, match="the others need one"):
        scenario().cell("local", None, 1)


def test_a_scenario_without_what_a_trust_model_needs() -> None:
    plain = BASE[: BASE.index("[privacy]")] + '[privacy]\ntrust = "none"\n'
    base = scenario(plain)  # fine as long as nobody compares
    with pytest.raises(ScenarioError) as caught:
        base.cell("central", 1.0, 1)
    assert str(caught.value) == (
        'trust "central": privacy.clipping_norm: missing. Add clipping_norm = 1.0. '
        "The largest L2 norm of an update, or of a record's gradient; the noise grows with it."
    )
    assert Scenario.from_text(base.to_toml()) == base
    assert said(plain + '[compare]\ntrusts = ["none", "local"]\n') == [
        'my.toml:15: compare.local: trust "local" cannot run: privacy.clipping_norm: missing. '
        "Add clipping_norm = 1.0. The largest L2 norm of an update, or of a record's gradient; the noise grows with it."
    ]


def test_an_overlay_is_checked_at_its_own_lines() -> None:
    text = (
        BASE.replace("zero-out", "add-remove")
        + """[compare.none]
privacy.mechanism = "gaussian"
server.round = 3
[compare.central]
sampling = { name = "fixed" }
training.epochs = 0
[compare.local.sampling]
name = "fixed"
cohort = 2000
[compare.local.privacy]
clipping_norm = "one"
delta = 1e-5
[compare.local.data]
seed = 3
"""
    )
    assert said(text) == [
        'my.toml:20: compare.none.privacy.mechanism: has no effect with trust = "none". '
        'Remove it, or set trust = "central" or trust = "distributed" or trust = "local".',
        "my.toml:21: compare.none.server.round: unknown key. Did you mean rounds?",
        'my.toml:22: compare.central: trust "central" cannot run: privacy.adjacency = "add-remove": '
        'no accountant supports it together with trust "central" and sampling "fixed". '
        'Use adjacency = "replace-one" or "zero-out", or sampling name = "poisson".',
        "my.toml:23: compare.central.sampling.cohort: missing. Add cohort = 100. "
        "The number of clients in each round.",
        "my.toml:24: compare.central.training.epochs = 0: must be at least 1. "
        "How often a client goes through its records.",
        "my.toml:27: compare.local.sampling.cohort = 2000: larger than the population of 1437 clients. "
        'At most 1437, or sampling.name = "all" for everyone.',
        'my.toml:28: compare.local.privacy.adjacency = "add-remove": under trust "local" the server sees who '
        "answers, so whether a client is there cannot be hidden. "
        'Use adjacency = "replace-one" (true local privacy), or "zero-out".',
        'my.toml:29: compare.local.privacy.clipping_norm: "one" is text, a number is needed. '
        "The largest L2 norm of an update, or of a record's gradient; the noise grows with it.",
        "my.toml:30: compare.local.privacy.delta: the comparison sets it, alike for all trust models. "
        "Remove it here: [privacy] and compare.epsilons say what is compared.",
        "my.toml:32: compare.local.data.seed: the comparison sets it, alike for all trust models. "
        "Remove it here: [data] says what is compared.",
    ]


def test_the_noise_of_a_server_and_what_it_is_on_stay_with_those_that_have_them() -> None:
    """A cell of the scenario's own trust model that lost them would compare something else."""
    student = 'mechanism = "student-t"\ndegrees = 5.0\nencoding = "top-k"\nencoding_share = 0.2\n'
    text = BASE.replace('trust = "central"\n', f'trust = "central"\n{student}')
    text = text.replace("zero-out", "replace-one")
    asked = scenario(text + "[compare.local]\nprivacy.max_participations = 2\n")
    same = asked.cell("central", 3.0, 4).privacy
    assert (same.mechanism, same.degrees, same.encoding, same.encoding_share) == (
        "student-t",
        5,
        "top-k",
        0.2,
    )
    local = asked.cell("local", 3.0, 4).privacy
    assert (local.mechanism, local.encoding) == ("gaussian", "top-k")
    assert asked.cell("local", 3.0, 4, "privunit").privacy.encoding is None
    assert asked.cell("none", None, 4).privacy.encoding is None
    plain = Scenario.from_text(
        text, "my.toml", ["privacy.mechanism=gaussian", "privacy.encoding=signs"]
    ).privacy
    assert (plain.degrees, plain.encoding_share, plain.encoding) == (None, None, "signs")


@pytest.mark.parametrize("mechanism", ["auto", "privunit", "sqkr"])
def test_a_local_mechanism_stays_with_the_trust_model_that_has_it(mechanism: str) -> None:
    local = BASE.replace('"central"', f'"local"\nmechanism = "{mechanism}"').replace(
        "noise_multiplier = 3.0", "epsilon = 3.0"
    ).replace("zero-out", "replace-one")  # fmt: skip
    compare = '[compare]\ntrusts = ["local", "central"]\nepsilons = [3.0]\nseeds = [4]\n'
    asked = Scenario.from_text(local + compare, "my.toml")
    assert asked.cell("central", 3.0, 4).privacy.mechanism == "gaussian"
    assert asked.cell("local", 3.0, 4).privacy.mechanism == mechanism
    assert asked.cell("local", 3.0, 4, "gaussian").privacy.direction is None
    switched = Scenario.from_text(local, "my.toml", ["privacy.trust=central"])
    assert switched.privacy.mechanism == "gaussian"
    saved = Scenario.from_text(local, "my.toml").to_toml()
    assert Scenario.from_text(saved, "my.toml", ["privacy.mechanism=gaussian"]).privacy.direction is None


def test_a_trust_model_may_scale_the_same_records_in_its_own_way() -> None:
    asked = Scenario.from_text(BASE + COMPARE + '[compare.none.data]\nscaling = "per-image"\n', "my.toml")
    scaled = {
        trust: asked.cell(trust, epsilon, 4).data for trust, epsilon in (("none", None), ("central", 3.0))
    }
    assert scaled["none"].scaling == "per-image"
    assert scaled["central"] == asked.data
    assert scaled["none"].model_copy(update={"scaling": asked.data.scaling}) == asked.data


def test_a_mistake_of_the_scenario_is_not_told_again_for_each_cell() -> None:
    assert len(said((BASE + COMPARE).replace("rate = 0.5", "rate = 5").replace("1e-6", "1"))) == 2


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("[0.5, 3]", "[0.5, 0]", "my.toml:21: compare.epsilons[1] = 0: must be above 0."),
        ("[0.5, 3]", "[3, 3.0]", "my.toml:21: compare.epsilons = [3, 3.0]: the list names something twice."),
        ("[4, 5]", "[4, 4]", "my.toml:22: compare.seeds = [4, 4]: the list names something twice."),
        ("[4, 5]", "[]", "my.toml:22: compare.seeds: the list is empty, at least one element is needed."),
        ('"none"]', '"nun"]', 'my.toml:20: compare.trusts[1] = "nun": unknown trust model.'),
        (
            '"none"]',
            '"distributed"]',
            'my.toml:19: compare.distributed: trust "distributed" cannot run: sampling.name = "poisson": ',
        ),
    ],
)
def test_what_a_comparison_lists(old: str, new: str, what: str) -> None:
    [line] = said((BASE + COMPARE).replace(old, new))
    assert line.startswith(what)


def test_what_the_comparison_sets_is_told_once() -> None:
    text = BASE + '[compare.central]\nprivacy = { trust = "lcal", noise_multiplier = -1, epsilon = 2 }\n'
    assert [line.split(" the comparison")[0] for line in said(text)] == [
        f"my.toml:20: compare.central.privacy.{key}:" for key in ("epsilon", "noise_multiplier", "trust")
    ]


# --- units of privacy beside trust models

RECORDS = """name = "units"
seed = 7
[data]
name = "digits"
partition = "iid"
clients = 10
[model]
name = "logistic"
[training]
batches = "poisson"
steps = 5
rate = 0.1
momentum = 0.5
projection = 9.0
[server]
rounds = 4
[sampling]
name = "all"
[privacy]
trust = "local"
unit = "example"
clipping_norm = 1.0
epsilon = 2.0
delta = 1e-5
"""
UNITS = """[compare]
units = ["client", "example"]
epsilons = [2.0]
seeds = [1]
[compare.local]
training.learning_rate = 0.2
server.rounds = 20
[compare.unit.client]
server.rounds = 3
training.steps = 2
[compare.unit.central-example]
training.steps = 1
server.rounds = 40
"""


def test_what_is_compared_are_trust_models_with_units_and_without_noise_one_cell() -> None:
    asked = scenario(RECORDS + UNITS)
    found = [(one.trust, one.unit) for one in corners(asked.compare, asked.privacy.unit)]
    assert found == [
        ("none", None), ("central", "client"), ("central", "example"), ("local", "client"), ("local", "example"),
    ]  # fmt: skip
    own = scenario(RECORDS)
    assert own.compare.units == ()
    assert {one.unit for one in corners(own.compare, "example")} == {None}
    assert "units" not in own.tables()["compare"]  # what is saved is what was saved before


def test_overlays_go_from_the_trust_model_over_the_unit_to_where_they_meet() -> None:
    asked = scenario(RECORDS + UNITS)
    ran = {
        (trust, unit): asked.cell(trust, 2.0, 1, unit=unit)
        for trust in ("central", "local")
        for unit in ("client", "example")
    }
    laid = {key: (cell.server.rounds, cell.training.steps) for key, cell in ran.items()}
    assert laid == {
        ("central", "client"): (3, 2), ("central", "example"): (40, 1),
        ("local", "client"): (3, 2), ("local", "example"): (20, 5),
    }  # fmt: skip
    assert {cell.privacy.unit for key, cell in ran.items() if key[1] == "client"} == {"client"}
    assert ran["local", "client"].training.learning_rate == 0.2
    plain = asked.cell("none", None, 1)
    assert (plain.privacy.unit, plain.server.rounds, plain.training.steps) == ("example", 4, 5)


def test_a_unit_takes_along_what_only_the_other_has() -> None:
    asked = scenario(RECORDS + UNITS)
    assert asked.cell("local", 2.0, 1, unit="example").training.projection == 9.0
    assert asked.cell("local", 2.0, 1, unit="client").training.projection is None
    assert asked.cell("local", 2.0, 1, unit="client").training.momentum == 0.5
    server_steps = asked.cell("central", 2.0, 1, unit="example").training
    assert (server_steps.momentum, server_steps.projection) == (0.0, None)
    messages = RECORDS.replace('"example"', '"client"\nmechanism = "auto"').replace("projection = 9.0\n", "")
    of_clients = scenario(messages + UNITS)
    assert of_clients.cell("local", 2.0, 1, unit="client").privacy.mechanism == "auto"
    records = of_clients.cell("local", 2.0, 1, unit="example").privacy
    assert (records.mechanism, records.direction, records.noise_draw) == ("gaussian", None, "client")
    summed = scenario(messages.replace('mechanism = "auto"', 'noise_draw = "sum"') + UNITS)
    assert summed.cell("local", 2.0, 1, unit="client").privacy.noise_draw == "sum"
    assert summed.cell("local", 2.0, 1, unit="example").privacy.noise_draw == "client"


def test_the_unit_can_be_changed_from_the_command_line() -> None:
    assert scenario(RECORDS, "privacy.unit=client").training.projection is None
    with pytest.raises(ScenarioError, match=r"privacy\.unit=client|projection"):
        scenario(RECORDS, "privacy.unit=client", "training.projection=3.0")


@pytest.mark.parametrize(
    ("settings", "override", "option"),
    [
        ('averaging = "tail"\naveraging_share = 0.3', "averaging=exponential", "averaging_share"),
        ('averaging = "exponential"\naveraging_decay = 0.3', "averaging=tail", "averaging_decay"),
        ('averaging = "exponential"\naveraging_decay = 0.3', "averaging=none", "averaging_decay"),
        ('schedule = "linear"\nschedule_end = 0.3', "schedule=constant", "schedule_end"),
        ('schedule = "linear"\nschedule_end = 0.3', "schedule=inverse-sqrt", "schedule_end"),
    ],
)
def test_another_schedule_or_average_takes_along_the_options_of_the_old_one(
    settings: str, override: str, option: str
) -> None:
    text = BASE.replace("rounds = 40", "rounds = 40\n" + settings)
    key, value = override.split("=")
    assert getattr(scenario(text, f"server.{override}").server, option) is None
    overlay = f'[compare.option.other.server]\n{key} = "{value}"\n'
    base = scenario(text + "[compare]\nepsilons = [2.0]\n" + overlay)
    laid = cell(base.tables(), Corner("central", option="other"), 2.0)["server"]
    assert laid[key] == value
    assert option not in laid
    with pytest.raises(ScenarioError, match="has no effect with"):  # what the change names itself stays
        scenario(text, f"server.{override}", f"server.{option}=0.5")


def test_another_schedule_that_has_the_option_too_keeps_it() -> None:
    text = BASE.replace("rounds = 40", 'rounds = 40\nschedule = "linear"\nschedule_end = 0.3')
    assert scenario(text, "server.schedule=cosine").server.schedule_end == 0.3


def test_records_as_the_unit_take_along_clipping_by_layer() -> None:
    text = BASE.replace('"logistic"', '"mlp"\nhidden = [3]').replace("3.0", '3.0\nclipping_layers = "equal"')
    text = text.replace("1e-6", "1e-7")
    base = scenario(text + '[compare]\nunits = ["client", "example"]\nepsilons = [2.0]\n')
    layers = [base.cell("local", 2.0, 1, unit=unit).privacy.clipping_layers for unit in ("client", "example")]
    assert layers == ["equal", None]
    assert scenario(text, "privacy.unit=example", "privacy.trust=local").privacy.clipping_layers is None


def test_other_batches_take_along_how_large_the_old_ones_were() -> None:
    saved = scenario(BASE).to_toml()  # which says batch_size = "all"
    poisson = ("training.batches=poisson", "training.steps=2")
    assert scenario(saved, *poisson, "training.rate=0.5").training.batch_size is None
    assert scenario(saved, *poisson, "training.batch_size=3").training.rate is None
    [finding] = said(
        saved.replace('batches = "shuffled"', 'batches = "poisson"').replace("epochs = 1", "steps = 2")
    )
    assert '"all"' in finding  # what a file says itself stays a mistake
    replaced = scenario(RECORDS, "training.batch_size=4").training
    assert (replaced.rate, replaced.batch_size) == (None, 4)


def test_mechanisms_of_messages_are_compared_with_unit_client_alone() -> None:
    asked = scenario(RECORDS + UNITS.replace("epsilons", 'mechanisms = ["gaussian", "privunit"]\nepsilons'))
    found = [
        (one.trust, one.unit, one.mechanism)
        for one in corners(asked.compare, "example")
        if one.trust == "local"
    ]
    assert found == [
        ("local", "client", "gaussian"), ("local", "client", "privunit"), ("local", "example", None),
    ]  # fmt: skip
    assert asked.cell("local", 2.0, 1, "privunit", "client").privacy.mechanism == "privunit"
    [line] = said(RECORDS + '[compare]\nmechanisms = ["privunit"]\n')
    assert line.startswith('my.toml:26: compare.mechanisms: has no effect without unit "client"')


def test_what_a_unit_cannot_have_is_told_with_the_cell_that_cannot_run() -> None:
    [line] = said(RECORDS + UNITS.replace("training.steps = 1\n", ""))
    assert line.startswith(
        'my.toml:35: compare.unit.central-example: trust "central", unit "example" cannot run: '
        "training.steps = 5: a server can add its noise to one step of a round"
    )
    [line] = said(RECORDS + '[compare]\nunits = ["example"]\ntrusts = ["central"]\nseeds = [1]\n')
    assert "compare.unit.central-example: trust" in line  # where its keys would stand, if it had any


def test_a_key_of_an_overlay_that_one_unit_cannot_have_names_that_unit() -> None:
    [line] = said(
        RECORDS + UNITS.replace("training.learning_rate", "training.averaging = true\ntraining.learning_rate")
    )
    assert line.startswith("my.toml:30: compare.local.training.averaging = true: works with privacy.unit")
    assert '(trust "local", unit "client")' in line
    [line] = said(
        RECORDS + UNITS.replace("[compare.unit.client]", "[compare.unit.client]\ntraining.rate = 2.0")
    )
    assert line.startswith("my.toml:33: compare.unit.client.training.rate = 2.0: must be")  # once, for both
    assert "trust" not in line


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('["client", "example"]', '["client", "record"]', 'compare.units[1] = "record": unknown unit of privacy.'),
        ('["client", "example"]', '["client", "client"]', "the list names something twice"),
        ("unit.central-example", "unit.none-example", "compare.unit.none-example: unknown key."),
        ("training.steps = 1", "training.steps = 1\nprivacy.unit = 'client'", "unit: the comparison sets it"),
        ("training.steps = 1", "training.steps = 1\nprivacy.delta = 1e-6", "delta: the comparison sets it"),
    ],
)  # fmt: skip
def test_what_units_a_comparison_lists(old: str, new: str, what: str) -> None:
    assert any(what in line for line in said(RECORDS + UNITS.replace(old, new)))


def test_delta_is_below_one_over_the_number_of_records_where_a_cell_protects_records() -> None:
    clients = RECORDS.replace('unit = "example"', 'unit = "client"').replace("projection = 9.0\n", "")
    clients = clients.replace("delta = 1e-5", "delta = 1e-2")
    assert scenario(clients).privacy.delta == 1e-2  # ten clients
    [line] = said(clients + UNITS)
    assert line.startswith(
        "my.toml:23: privacy.delta = 0.01: must be above 0 and below 1/(number of records) = 1/1437 = 0.000696, "
        'since compare.units has "example". 1e-05 is usual.'
    )
