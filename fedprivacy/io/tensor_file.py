"""Files of tensors (safetensors) that nobody vouches for: looked at before all of their header is parsed.

Format: https://huggingface.co/docs/safetensors (8 bytes: the length of the header; JSON; the data)
"""

from __future__ import annotations

from pathlib import Path

from fedprivacy.io.regular_file import open_regular

MAX_BYTES = 2**34
MAX_HEADER = 10**8  # bytes; the limit of safetensors itself
MAX_TENSORS = 10_000  # a checkpoint has some ten; each takes its reader tens of microseconds


def check_tensor_file(path: Path) -> None:
    """Refuses a file that would take its reader minutes.

    Args:
        path: The file; no link is followed.

    Raises:
        OSError: It cannot be opened, or is no regular file.
        ValueError: It is too large, cut off, or has more than `MAX_TENSORS` tensors.
    """
    with open_regular(path, MAX_BYTES, follow=False) as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > MAX_HEADER:
            raise ValueError(f"its header has more than {MAX_HEADER} bytes")
        header = stream.read(size)
    # Each tensor has two lists, of its shape and its place; a bracket of a list cannot be written otherwise.
    if header.count(b"[") > 2 * MAX_TENSORS:
        raise ValueError(f"it has more than {MAX_TENSORS:,} tensors")
