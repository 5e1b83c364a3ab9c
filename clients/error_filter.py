"""Filters errors of a pinned node: the server learns their kind, nothing that depends on data.

The rest is in the node's own log, which its owner reads. Where a scenario came with the run, in a simulation
for example, one party owns everything and sees the full text.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from fedprivacy.errors import FedPrivacyError, Refusal
from fedprivacy.io.escape import printable
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import TrainReply, TrainRequest

MOST = 8_000  # characters of a line in a log
KINDS = {
    "node-config": "the node's own configuration cannot be used",
    "scenario": "the node's own scenario cannot be used",
    "data": "its data do not fit the scenario",
    "home": "its account of participations cannot be used",
    "account": "its owner's account cannot be used, or does not admit the plan",
    "request": "the message is not a valid request",
    "plan": "the request has another plan than the node",
    "messages": "the request is for single messages or for one without masks, and the node agreed to sums",
    "clients": "the request names clients of other nodes, or a client twice",
    "round": "the node's plan does not have the requested round",
    "model": "the model has another size, or numbers that are not finite",
    "secure-sum": "a message of a secure sum does not fit its round",
    "failed": "the node failed",
}


@contextmanager
def kinds_only(pinned: bool) -> Iterator[None]:
    """Reduces errors inside to their kind.

    Args:
        pinned: Whether the node holds its plan itself; else errors pass as they are.

    Raises:
        Refusal: with one of `KINDS` and no more.
    """
    try:
        yield
    except Exception as error:
        if not pinned:
            raise
        kind = error.kind if isinstance(error, Refusal) else "failed"
        if isinstance(error, FedPrivacyError):
            log(f"REFUSED ({kind}): {error}")
        else:
            log(f"REFUSED ({kind}):\n{''.join(traceback.format_exception(error))}")
        # Nothing of the error itself, whose text may have data in it.
        raise Refusal(f"{kind}: {KINDS[kind]}", kind) from None


@contextmanager
def kind(name: str) -> Iterator[None]:
    """Gives an error inside its kind, where it has none itself.

    Raises:
        Refusal: of this kind, with the error's text.
    """
    try:
        yield
    except Refusal:
        raise
    except Exception as error:
        text = str(error) if isinstance(error, FedPrivacyError) else f"{type(error).__name__}: {error}"
        raise Refusal(text, name) from error


def log(text: str) -> None:
    """Writes to the node's log, the error output of its SuperNode; further lines are indented.

    It may contain a server's text, which can neither begin a line nor control a terminal.
    """
    if len(text) > MOST:
        text = f"{text[:MOST]} ..."  # a request may be as long as a server likes
    text = printable(text).replace("\n", "\n    ")
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} fedprivacy node: {text}", file=sys.stderr, flush=True)


def log_answer(request: TrainRequest, reply: TrainReply, faults: Faults, most: str) -> None:
    """Logs the node's answers, and the faults that are not sent to the server.

    Args:
        request: The request.
        reply: The reply.
        faults: The faults.
        most: How many answers a client has given by now, of how many.
    """
    log(
        f"round {request.round}: asked {len(request.clients)}, answered {len(reply.clients)}, "
        f"refused {reply.refused}, failed {faults.failed}, zeroed {faults.zeroed}; answers given: {most}"
    )
    if faults.first is not None:
        log(f"round {request.round}: {faults.first}")
