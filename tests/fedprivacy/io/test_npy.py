"""Headers of arrays that numpy would not write: read as numpy reads them, or refused; never a crash."""

from __future__ import annotations

import struct
import threading

import pytest

from fedprivacy.io import npy


def array_file(header: str, version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode("latin-1")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_header_of_python_2_is_read(version: int) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0L, 3L), }"
    assert npy.array_of(array_file(header, version)).shape == (0, 3)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (0,), }",
        "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '2f8', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': 'i4,f8', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': None, 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 33 + ")}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}",
        "{'descr': '<f8', 'shape': (0,), }",
        "-" * 9000 + "1",
        "{" + "-" * 9000 + "1: 1}",
        "(" * 9000,
        "{1:" * 3000,
        "1+" * 4000 + "1",
        "not " * 2000 + "1",
        "lambda:" * 1000 + "1",
        "x." * 4000 + "x",
        "\0",
        "",
    ],
)
def test_other_headers_are_refused_also_in_a_thread_with_a_small_stack(header: str) -> None:
    refused: list[ValueError] = []

    def read() -> None:
        try:
            npy.array_of(array_file(header))
        except ValueError as error:
            refused.append(error)

    size = threading.stack_size(2**18)
    try:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert refused


def test_a_header_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="has 10001 bytes, 10000 are allowed"):
        npy.array_of(array_file(" " * 10001))
