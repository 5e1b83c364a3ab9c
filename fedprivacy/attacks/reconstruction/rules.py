"""Rules of reconstruction: what a method needs of the model, the training and the records."""

from __future__ import annotations

from collections.abc import Callable

from fedprivacy.data.images import square_image
from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.data import FileData


def _by(method: str, broken: Callable[[AttackValues], bool]) -> Callable[[AttackValues], bool]:
    return lambda v: v["method"] == method and broken(v)


def _features(v: AttackValues) -> tuple[int, ...]:
    """The shape of a record."""
    data = v.around.run.data
    if isinstance(data, FileData):
        return data.facts.features
    return (64,) if data.name == "digits" else (v.around["data.features"],)


def _has_no_pictures(v: AttackValues) -> bool:
    return square_image(_features(v)) is None


def _takes_no_imprint(v: AttackValues) -> bool:
    hidden = v.around["model.hidden"]
    fits = v.around["model.name"] == "mlp" and hidden and hidden[0] == v["bins"]
    return not (fits and v.around["model.activation"] == "relu")


def _is_simulated_wrongly(v: AttackValues) -> bool:
    """Whether local training is other than plain steps over all records."""
    options = ("momentum", "weight_decay", "proximal", "projection", "averaging", "adversarial")
    plain = not any(v.around[f"training.{name}"] for name in options)
    return not plain or v.around["training.batch_size"] != "all" or v.around["privacy.unit"] != "client"


METHOD_RULES: tuple[Entry[AttackValues], ...] = (
    Rule(
        "sees",
        lambda v: v["sees"] == "sum" and v["method"] in ("inverting", "informed"),
        'this method knows all but the victim\'s update, which is what sees = "updates" observes',
        'Remove it, or set method = "imprint" or "analytic".',
    ),
    Rule(
        "method",
        _by("imprint", lambda v: v["seat"] == "participant"),
        "only the server sends models",
        'Set seat = "server", or method = "analytic".',
    ),
    Rule(
        "method",
        lambda v: v["method"] in ("imprint", "analytic") and v.around["model.features"] is not None,
        lambda v: (
            f"reads records in the first layer's gradient, and with model.features = "
            f'"{v.around["model.features"]}" that layer reads features'
        ),
        'Remove model.features, or set method = "inverting".',
    ),
    Rule(
        "method",
        _by("imprint", _takes_no_imprint),
        lambda v: (
            f"needs a first layer of bins = {v['bins']} outputs with a ReLU. With this [model] the server "
            "would have to send another architecture, and a node that holds its plan refuses that"
        ),
        lambda v: (
            f'Set model.name = "mlp", model.hidden = [{v["bins"]}] and model.activation = "relu", or another '
            "method."
        ),
    ),
    Rule(
        "bins",
        _by("imprint", lambda v: v["bins"] >= v["candidates"]),
        lambda v: (
            f"rebuilds as many pictures as there are candidates ({v['candidates']}): naming them all would do"
        ),
        "Set candidates higher, such as 1000.",
    ),
    Rule(
        "method",
        _by("analytic", lambda v: v.around["model.name"] not in ("mlp", "logistic")),
        "needs a linear first layer, whose gradient has the record in it",
        'Set model.name = "mlp" or "logistic", or method = "inverting".',
    ),
    Rule(
        "method",
        _by("inverting", _has_no_pictures),
        lambda v: f"seeks square pictures, and records have the shape {list(_features(v))}",
        'Take records that are square images, or method = "analytic" or "informed".',
    ),
    Rule(
        "batch",
        _by("inverting", lambda v: v["batch"] is None),
        "missing: the search is for so many pictures",
        "Add batch = 1, which is the easiest.",
        shown=False,
    ),
    Rule(
        "rounds",
        _by("inverting", lambda v: v["rounds"] > 1),
        "the search follows one round",
        "Remove it.",
    ),
    Rule(
        "method",
        _by("inverting", _is_simulated_wrongly),
        "the attacker follows plain steps over all records of a client",
        'Set training.batch_size = "all", privacy.unit = "client", and no momentum, decay or the like.',
    ),
    Rule(
        "method",
        _by("informed", lambda v: v.around["privacy.unit"] == "example"),
        "compares the update with those of candidates, and sums over batches drawn at random have none",
        'Set privacy.unit = "client".',
    ),
)
