"""The messages between server and silos, as plain values; see `fedprivacy.messages.protocol`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import FedPrivacyError, InputError
from fedprivacy.io import bounded_json
from fedprivacy.messages.protocol import DAMAGE, Arrays, Values, describe_error, sorted_once, whole

Vector = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class SiloRequest:
    """Ask these silos, all on one logical host, for one step of a lot of estimates.

    Args:
        lot: The number of the lot in the study (`study.lots`).
        step: The step, from 0.
        host: The logical host of all these silos.
        silos: Their numbers, sorted, int64, shape (silos,).
        thetas: The point at which each estimate of the lot is, float64, shape (estimates, d).
        plan: The requested plan of the lot, as JSON data. A silo compares it with its own.
    """

    lot: int
    step: int
    host: int
    silos: Ids
    thetas: Vector
    plan: Any

    def parts(self) -> tuple[Arrays, Values]:
        """The request as arrays and scalars."""
        values = {"lot": self.lot, "step": self.step, "host": self.host, "plan": json.dumps(self.plan)}
        return {"silos": self.silos, "thetas": self.thetas}, values

    @classmethod
    def of(cls, arrays: Arrays, values: Values) -> SiloRequest:
        """The request that `parts` took apart.

        Raises:
            InputError: if parts are missing or of the wrong kind.
        """
        try:
            plan = bounded_json.loads(values["plan"])
            lot, step, host = (whole(values[name]) for name in ("lot", "step", "host"))
            request = cls(lot, step, host, arrays["silos"], arrays["thetas"], plan)
        except DAMAGE as error:
            raise InputError(f"not a request to silos: {describe_error(error)}") from error
        for name, array, dtype, ndim in (
            ("silos", request.silos, np.int64, 1),
            ("thetas", request.thetas, np.float64, 2),
        ):
            if array.dtype != dtype or array.ndim != ndim:
                raise InputError(f"not a request to silos: {name} is {array.dtype} of shape {array.shape}")
        return request


@dataclass(frozen=True)
class SiloReply:
    """The answers of a node's silos.

    Args:
        rows: float64, shape (silos that answered, estimates, d).
        silos: Their numbers, sorted, int64; the others refused, since they have answered this step before, or
            a later one.
    """

    rows: Vector
    silos: Ids

    def parts(self) -> tuple[Arrays, Values]:
        """The reply as arrays and scalars."""
        return {"rows": self.rows, "silos": self.silos}, {}

    @classmethod
    def of(cls, arrays: Arrays, values: Values, *, requested: Ids, shape: tuple[int, int]) -> SiloReply:
        """Rebuilds the reply that `parts` took apart, and checks it against the request.

        Args:
            arrays: The arrays.
            values: The scalars, of which there are none.
            requested: The requested silos, sorted.
            shape: Estimates and d.

        Raises:
            FedPrivacyError: if the node's answer does not have the requested shape.
        """
        try:
            reply = cls(arrays["rows"], arrays["silos"])
        except DAMAGE as error:
            raise FedPrivacyError(f"not an answer of silos: {describe_error(error)}") from error
        rows, silos = reply.rows, reply.silos
        # A node may name any number of silos, so their number is checked before the ids.
        named = silos.dtype == np.int64 and silos.ndim == 1 and len(silos) <= len(requested)
        if not named or not sorted_once(silos) or not np.isin(silos, requested).all():
            raise FedPrivacyError(
                "not an answer of silos: it names silos that were not requested, or one twice"
            )
        expected = (len(silos), *shape)
        if rows.shape != expected or rows.dtype != np.float64 or not np.isfinite(rows).all():
            raise FedPrivacyError(
                f"not an answer of silos: rows are {rows.dtype} {rows.shape}, expected finite {expected}"
            )
        return reply
