"""The silos of a study of private estimates: their own plan and records, and what each has answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clients.fleet import hosts_here
from fedprivacy.erm.protocol import SiloReply, SiloRequest
from fedprivacy.erm.study.lots import Lot, SiloStudy
from fedprivacy.erm.study.people import Records, records, study_streams
from fedprivacy.errors import InputError, Refusal
from fedprivacy.io.tolerance import other_plan
from fedprivacy.messages.protocol import check_clients
from fedprivacy.scenario.erm import ErmScenario

LastSteps = NDArray[np.int64]
_STEPS = 2**20  # more than a lot has


@dataclass(frozen=True)
class Silos:
    """The silos' side of a study.

    Nothing here is taken from a message but the point at which gradients are taken, so a server cannot talk a
    silo into less privacy. No promise rests on which point that is, as long as it lies within the radius of
    the silo's own plan: each gradient's length is bounded there. Points beyond are refused, whatever the
    records: far out sums overflow for some records alone, which no noise hides.
    """

    study: SiloStudy
    hosts: int

    @classmethod
    def of(cls, scenario: ErmScenario, people: Records | None = None) -> Silos:
        """The silos of a scenario.

        Args:
            scenario: The agreed scenario.
            people: Its records, where they have been read before.

        Raises:
            InputError: if a file does not match the scenario.
        """
        who = records(scenario) if people is None else people
        return cls(SiloStudy(scenario, who, study_streams(scenario, who)), scenario.federation.hosts)

    def hosts_of(self, node_config: Mapping[str, object]) -> list[int]:
        """The logical hosts that a node serves."""
        return hosts_here(self.hosts, node_config)

    def fresh(self) -> LastSteps:
        """No silo has answered yet: the place of its last answer in the study's order, -1, shape (silos,)."""
        return np.full(self.study.most_silos, -1, dtype=np.int64)

    def answer(self, request: SiloRequest, last: LastSteps, hosts: list[int]) -> SiloReply:
        """Serves a request as the silos' own plan allows: each step once, in the study's order.

        A silo that answered a step twice, at two points, would reveal their difference without any noise.

        Args:
            request: The server's request.
            last: As `fresh`; the silos that answer now are marked.
            hosts: The logical hosts that live on this node.

        Raises:
            Refusal: if the server requests another plan than the silos agreed to, or silos that are not
                here.
            InputError: if the request names a lot or a step that do not exist here, or points that are none
                or beyond the radius; or the records of a silo break a condition.
            RunError: if a silo's minimum was not found.
        """
        lot = self._lot(request)
        reason = other_plan(self.study.plan(lot), request.plan)
        if reason:
            raise Refusal(reason)
        check_clients(request.silos, request.host, hosts, self.hosts, lot.silos, "silos")
        if not 0 <= request.step < self.study.federated(lot).steps:
            raise InputError(f"request for step {request.step}, there are {self.study.federated(lot).steps}")
        points, expected = request.thetas, (lot.count, self.study.people.x.shape[1])
        if points.shape != expected or not np.isfinite(points).all():
            raise InputError(
                f"request with points of shape {points.shape}: must be finite, of shape {expected}"
            )
        for point in points:
            self.study.federated(lot).check_point(point)
        place = lot.number * _STEPS + request.step
        # A place increases over lots and steps, so one number for each silo refuses every repetition.
        willing = request.silos[last[request.silos] < place]
        last[willing] = place
        return SiloReply(self.study.tell(lot, willing.tolist(), request.step, points), willing)

    def _lot(self, request: SiloRequest) -> Lot:
        if request.lot >= len(self.study.lots):
            raise InputError(f"request for lot {request.lot}, there are {len(self.study.lots)}")
        return self.study.lots[request.lot]
