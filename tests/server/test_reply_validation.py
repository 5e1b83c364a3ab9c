"""What a node may not answer: it is counted by kind, nothing of it is taken, and the round goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord

from fedprivacy.messages.faults import REASON
from server.reply_validation import longest

ROWS = {"sum": 1, "each": 5}


def change(updates=None, clients=None, **values):
    """A lie: what of an honest reply it changes."""

    def lie(reply) -> None:
        arrays = {name: array.numpy() for name, array in reply.content["arrays"].items()}
        if updates is not None:
            arrays["updates"] = updates(arrays["updates"])
        if clients is not None:
            arrays["clients"] = clients(arrays["clients"])
        reply.content["arrays"] = ArrayRecord({name: Array(array) for name, array in arrays.items()})
        reply.content["values"] = ConfigRecord({**reply.content["values"], **values})

    return lie


def without(name: str):
    def lie(reply) -> None:
        del reply.content[name]

    return lie


def raising(reply) -> None:
    raise RuntimeError("on fire")


def holes(updates: np.ndarray) -> np.ndarray:
    updates = updates.copy()
    updates.flat[3] = np.inf
    return updates


LIES = {
    "an error": ("node_error", raising),
    "no arrays": ("reply_shape", without("arrays")),
    "no values": ("reply_shape", without("values")),
    "other numbers": ("reply_shape", change(updates=lambda u: u.astype(np.float32))),
    "too few": ("reply_shape", change(updates=lambda u: u[..., :-1])),
    "more rows": ("reply_shape", change(updates=lambda u: np.vstack([u, u, u]))),
    "ids in a square": ("reply_shape", change(clients=lambda c: np.vstack([c, c]))),
    "ids that are no whole numbers": ("reply_shape", change(clients=lambda c: c + 0.5)),
    "no count": ("reply_shape", change(late="many")),
    "a count below 0": ("reply_shape", change(raised=-1)),
    "others": ("reply_clients", change(clients=lambda c: c + 100)),
    "one twice": ("reply_clients", change(clients=lambda c: np.r_[c[:1], c[:-1]])),
    "more refusals": ("reply_clients", change(refused=6)),
    "refusals below 0": ("reply_clients", change(refused=-1)),
    "more failures": ("reply_clients", change(late=1)),
    "clients who dropped out, where none does": (
        "reply_clients",
        change(updates=lambda u: u[:0] if u.ndim == 2 else u * 0, clients=lambda c: c[:0], dropped=5),
    ),
    "not finite": ("reply_not_finite", change(updates=holes)),
    "too large": ("reply_too_large", change(updates=lambda u: u + 1e6)),
}


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("trust", ["central", "local"])
@pytest.mark.parametrize("observe", ["sum", "each"])
@pytest.mark.parametrize("lie", LIES)
def test_a_node_that_lies_has_failed_with_its_clients(make_scenario, trial, lie, observe, trust) -> None:
    kind, tell = LIES[lie]

    def mod(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train" and message.metadata.group_id.endswith("/0"):
            tell(reply)
        return reply

    asked = make_scenario(f"privacy.trust={trust}", f"federation.observe={observe}")
    played = trial(asked, mods=[mod])
    _, total = played.federation.round(0)
    assert total.faults.by_kind == {kind: 5}
    assert (total.answered, total.failed) == (7, 5)
    assert np.isfinite(played.federation.weights).all()


def test_an_answer_beyond_the_bound_by_a_little_is_too_large(make_scenario, trial) -> None:
    """Under central trust the bound is exact: five clients clipped to norm 1 reach 5 together."""
    for factor, told in ((0.999, {}), (1.001, {"reply_too_large": 5})):

        def mod(message, context, call_next, factor=factor):
            reply = call_next(message, context)
            if message.metadata.message_type == "train" and message.metadata.group_id.endswith("/0"):
                change(updates=lambda u: 5 * factor * u / np.linalg.norm(u))(reply)
            return reply

        assert trial(make_scenario(), mods=[mod]).federation.round(0)[1].faults.by_kind == told


LOCAL = "privacy={trust='local', mechanism='%s', clipping_norm=1.0, epsilon=%s, delta=1e-3}"
STEP = (
    "privacy={trust='central', unit='example', adjacency='replace-one', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-3}",
    "training={batches='with-replacement', batch_size=40, steps=1, learning_rate=0.5}",
)
HONEST = {
    **{
        f"{name}, {epsilon}": (LOCAL % (name, epsilon),)
        for name in ("gaussian", "privunit", "sqkr", "sign-bits")
        for epsilon in ("0.5", "8.0")
    },
    "records": STEP,
    "records in the clients": (STEP[0].replace("central", "local"), STEP[1]),
}


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("observe", ["sum", "each"])
@pytest.mark.parametrize("kind", HONEST)
def test_no_honest_node_is_rejected(make_scenario, trial, kind: str, observe: str) -> None:
    played = trial(
        make_scenario(*HONEST[kind], f"federation.observe={observe}", "training.learning_rate=50.0")
    )
    for number in range(3):
        _, total = played.federation.round(number)
        assert (total.answered, total.faults.by_kind) == (12, {})


def test_where_nothing_is_clipped_any_length_is_taken(make_scenario, trial) -> None:
    plan = trial(make_scenario("privacy={trust='none'}")).fleet.plan
    assert longest(plan, 10) is None
    clipped = trial(make_scenario("privacy.trust=none")).fleet.plan
    assert longest(clipped, 10) == pytest.approx(1.0)
    assert longest(replace(clipped, mechanism=None), 10) is None


def screaming(reply) -> None:
    raise RuntimeError("x" * 200_000)


@pytest.mark.parametrize("tell", [change(first="x" * 200_000), screaming])
def test_of_a_reason_that_a_node_gives_little_is_kept(make_scenario, trial, tell) -> None:
    """It goes into the record, and home through a log."""

    def mod(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train" and message.metadata.group_id.endswith("/0"):
            tell(reply)
        return reply

    _, total = trial(make_scenario(), mods=[mod]).federation.round(0)
    assert total.first_failure is not None
    assert len(total.first_failure) == REASON
