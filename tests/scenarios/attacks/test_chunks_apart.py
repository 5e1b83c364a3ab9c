"""One client has a message to itself, and the others are cut as by an honest server."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.attacks.chunks_apart import chunks_apart
from server.sampling import chunks


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_client_apart_has_a_chunk_of_its_own(hosts: int) -> None:
    cohort = np.arange(0, 60, 2)
    cut = list(chunks_apart(cohort, hosts=hosts, size=10, apart=14))
    assert sorted(np.concatenate([chunk.clients for chunk in cut])) == cohort.tolist()
    assert [chunk.clients.tolist() for chunk in cut if 14 in chunk.clients] == [[14]]
    numbers = [[chunk.number for chunk in cut if chunk.host == host] for host in range(hosts)]
    assert numbers == [list(range(len(of_host))) for of_host in numbers]
    assert all(len(chunk.clients) <= 10 for chunk in cut)
    absent = list(chunks_apart(cohort, hosts=hosts, size=10, apart=15))
    plain = list(chunks(cohort, hosts=hosts, size=10))
    assert [chunk.clients.tolist() for chunk in absent] == [chunk.clients.tolist() for chunk in plain]
