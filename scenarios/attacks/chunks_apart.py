"""Cuts a cohort for the simulation of a participant's attack, whose client has a message to itself."""

from __future__ import annotations

from collections.abc import Iterator

from server.sampling import Chunk, Ids, chunks


def chunks_apart(cohort: Ids, *, hosts: int, size: int, apart: int) -> Iterator[Chunk]:
    """Cuts a cohort as an honest server does, but for one client.

    Args:
        cohort: Ids, sorted, shape (cohort,).
        hosts: The number of logical hosts.
        size: The most clients of a chunk.
        apart: The client with a chunk to itself, the last of its host.
    """
    for host in range(hosts):
        here = cohort[cohort % hosts == host]
        others = list(chunks(here[here != apart], hosts=1, size=size))
        yield from (Chunk(host, chunk.number, chunk.clients) for chunk in others)
        if apart in here:
            yield Chunk(host, len(others), here[here == apart])
