"""A saved scenario is complete, and reading it gives the same scenario."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.data import KEYS_OF, OPTIONAL_KEYS_OF, foreign_keys
from fedprivacy.scenario.kinds import KINDS

positive = st.floats(1e-3, 1e3)
share = st.floats(0, 0.99)
seeds = st.integers(0, 2**63 - 1)


def maybe(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Tables with some of the keys."""
    return st.fixed_dictionaries({}, optional=keys)


def kind(first: dict[str, Any], **keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({key: st.just(value) for key, value in first.items()}, optional=keys)


seed = {"seed": seeds}
data = st.one_of(
    kind({"name": "digits"}, public_fraction=st.floats(0.1, 0.5), **seed),
    kind({"name": "digits", "partition": "iid", "clients": 100}, **seed),
    kind({"name": "digits", "partition": "dirichlet", "clients": 100, "alpha": 0.5}, **seed),
    kind({"name": "digits", "partition": "fixed-records", "records_per_client": 3}, **seed),
    kind({"name": "digits", "scaling": "public", "public_fraction": 0.2}, cut=positive),
    kind({"name": "digits", "scaling": "bounds", "low": -1.0, "high": [float(n) for n in range(64)]}),
    kind({"name": "synthetic"}, records=st.integers(100, 9999), signal=share, **seed),
)
plain = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-9, 9)
    | st.text(st.characters(codec="utf-8"), max_size=5)
)
keys = st.text(st.characters(codec="utf-8"), max_size=5)
options = st.dictionaries(
    keys, plain | st.lists(plain, max_size=3) | st.dictionaries(keys, plain), max_size=3
)
model = st.one_of(
    kind({"name": "logistic"}),
    kind({"name": "mlp"}, hidden=st.lists(st.integers(1, 99), min_size=1, max_size=3)),
    kind({"name": "code", "factory": "no.such.module:make"}, options=options),
)
training = maybe(
    epochs=st.integers(1, 9),
    batch_size=st.just("all") | st.integers(1, 9),
    learning_rate=positive,
    momentum=share,
    weight_decay=positive,
    proximal=positive,
)
server = st.one_of(
    kind({"rounds": 5}, learning_rate=positive),
    kind({"rounds": 6, "optimizer": "momentum"}, momentum=share),
    kind({"rounds": 7, "optimizer": "adam"}, beta1=share, beta2=share, adaptivity=positive),
)
sampling = st.one_of(
    kind({"name": "all"}),
    st.fixed_dictionaries({"name": st.just("poisson"), "rate": st.floats(0.01, 1)}),
    st.fixed_dictionaries({"name": st.just("fixed"), "cohort": st.integers(1, 100)}),
    st.just({"name": "separated", "cohort": 2, "separation": 3}),
)
noisy = {"clipping_norm": 1, "delta": 1e-6}
privacy = st.one_of(
    kind({"trust": "none"}, clipping_norm=positive),
    kind({"trust": "central", "epsilon": 2, **noisy}),
    kind(
        {"trust": "central", "epsilon": 2, "clipping_quantile": 0.5, **noisy}, clipping_count_noise=positive
    ),
    kind({"trust": "central", "epsilon": 2, "encoding": "top-k", **noisy}, encoding_share=st.floats(0.01, 1)),
    kind({"trust": "local", "noise_multiplier": 0.1, **noisy}, max_participations=st.integers(1, 9)),
    kind({"trust": "local", "epsilon": 0.3, **noisy}, noise_draw=st.sampled_from(["client", "sum"])),
)
compare = maybe(
    trusts=st.lists(st.sampled_from(["none", "central", "local"]), min_size=1, unique=True),
    epsilons=st.lists(positive, min_size=1, max_size=3, unique=True),
    seeds=st.lists(seeds, min_size=1, max_size=3, unique=True),
    none=maybe(server=maybe(learning_rate=positive), sampling=kind({"name": "all"})),
    local=maybe(privacy=kind({"clipping_norm": 2}), training=training),
    central=st.just({"privacy": {"clipping_norm": 3}, "server": {"optimizer": "adam", "beta1": 0.5}}),
)


def comparable(document: dict[str, Any]) -> bool:
    """Whether a document without noise gives a comparison what its noisy cells need."""
    return "compare" not in document or document["privacy"]["trust"] != "none"


documents = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,20}", fullmatch=True),
        "data": data,
        "model": model,
        "server": server,
        "sampling": sampling,
        "privacy": privacy,
    },
    optional={
        "description": st.text(st.characters(codec="utf-8"), max_size=20),
        "seed": seeds,
        "training": training,
        "federation": maybe(hosts=st.integers(1, 50), chunk_size=st.integers(1, 999)),
        "evaluation": maybe(every=st.integers(1, 9)),
        "compare": compare,
    },
).filter(comparable)


@settings(max_examples=40, deadline=None)
@given(documents)
def test_what_is_saved_is_read_again_as_the_same_scenario(document: dict[str, Any]) -> None:
    scenario = Scenario.from_text(tomli_w.dumps(document))
    saved = scenario.to_toml()
    again = Scenario.from_text(saved)
    assert again == scenario
    assert again.to_toml() == saved
    # Nothing that was written got lost.
    for section, table in document.items():
        if isinstance(table, dict) and section != "compare":
            stored = tomllib.loads(saved)[section]
            assert {key: stored[key] for key in table} == table


@settings(max_examples=50, deadline=None)
@given(documents)
def test_a_saved_scenario_has_every_key_that_applies(document: dict[str, Any]) -> None:
    document.pop("compare", None)
    scenario = Scenario.from_text(tomli_w.dumps(document))
    saved = tomllib.loads(scenario.to_toml())
    # Those with no value at all, and those of another partition or scaling.
    left_out = {"epsilon", "noise_multiplier", "clipping_norm", "direction", "columns", "without", "classes"}
    left_out |= {"projection", "client_timeout", "adversarial", "patience", "byzantine", "groups", "edges"}
    left_out |= {"bands", "clipping_quantile", "clipping_learning_rate", "clipping_count_noise"}
    left_out |= {"encoding", "encoding_share", "encoding_levels", "degrees"}
    left_out |= {"clipping_layers", "schedule_end", "averaging_share", "averaging_decay"}
    left_out |= {key for keys in OPTIONAL_KEYS_OF.values() for key in keys}
    left_out |= {"trainable", "freeze", "lora", "weights", "features"}
    left_out |= {"loss", "huber_threshold", "target_low", "target_high", "targets"}
    left_out |= {"first_clients", "personal", "shared", "personal_epochs", "personal_proximal"}
    for choice in KEYS_OF:
        left_out |= foreign_keys(choice, scenario.tables()["data"][choice])
    for section, kinds in KINDS.items():
        if section != "compare":
            known = set(kinds.keys(kinds.variant(saved[section])))
            assert known - left_out <= set(saved[section]) <= known


def test_a_cnn_is_saved_and_read_again() -> None:
    scenario = Scenario.from_text(
        tomli_w.dumps(
            {
                "name": "x",
                "data": {"name": "digits"},
                "model": {"name": "cnn", "channels": [4], "hidden": []},
                "server": {"rounds": 1},
                "sampling": {"name": "all"},
                "privacy": {"trust": "none"},
            }
        )
    )
    assert Scenario.from_text(scenario.to_toml()) == scenario
    saved = tomllib.loads(scenario.to_toml())["model"]
    assert saved == {"name": "cnn", "channels": [4], "kernel_size": 3, "hidden": [], "activation": "relu"}


def test_the_comparison_is_saved_where_it_is_not_the_default_or_on_request() -> None:
    text = tomli_w.dumps(
        {
            "name": "x",
            "data": {"name": "digits"},
            "model": {"name": "logistic"},
            "server": {"rounds": 1},
            "sampling": {"name": "all"},
            "privacy": {"trust": "central", "epsilon": 1, "clipping_norm": 1},
        }
    )
    scenario = Scenario.from_text(text)
    assert "[compare]" not in scenario.to_toml()
    assert Scenario.from_text(scenario.to_toml(compare=True)) == scenario
    assert tomllib.loads(scenario.to_toml(compare=True))["compare"] == {
        "trusts": ["none", "central", "local"],
        "epsilons": [1.0, 2.0, 4.0, 8.0],
        "seeds": [0, 1, 2],
        "baselines": True,
    }
    other = Scenario.from_text(text, overrides=["compare.seeds=[5]"])
    assert tomllib.loads(other.to_toml())["compare"]["seeds"] == [5]


def test_a_scenario_that_does_not_fit_together_cannot_be_made_in_python_either() -> None:
    scenario = Scenario.from_text(
        'name = "x"\ndata.name = "digits"\nmodel.name = "logistic"\nserver.rounds = 1\n'
        'sampling.name = "all"\nprivacy = { trust = "central", epsilon = 1, clipping_norm = 1 }'
    )
    parts = dict(scenario)
    with pytest.raises(ScenarioError, match=r"privacy\.delta = 0\.5: must be above 0 and below"):
        Scenario(**{**parts, "privacy": scenario.privacy.model_copy(update={"delta": 0.5})})


def test_reading_a_scenario_loads_no_heavy_library() -> None:
    code = "import sys, fedprivacy.scenario; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pydantic" in loaded
    assert not {"torch", "flwr", "dp_accounting.dp_event", "numpy", "scipy", "sklearn", "matplotlib"} & set(
        loaded
    )
