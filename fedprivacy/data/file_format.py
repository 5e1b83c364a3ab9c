"""Tells what a file is that was given in place of an .npz file, by its first bytes."""

from __future__ import annotations

_SAVE = "save x_train, y_train, x_test and y_test from it with numpy.savez"
_FORMATS = (
    (b"\x93NUMPY", "one array (.npy)", f"Load it with numpy.load, and {_SAVE}."),
    (b"PAR1", "a Parquet file", f"Load it with pandas.read_parquet, and {_SAVE}."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", f"Load it with h5py, and {_SAVE}."),
    (b"\x1f\x8b", "packed with gzip", "Unpack it with gunzip first."),
    (b"\x89PNG", "an image", f"Load the images as arrays, and {_SAVE}."),
    (b"\xff\xd8\xff", "an image", f"Load the images as arrays, and {_SAVE}."),
    (b"\x80", "probably a pickle, which is never read", f"Load it where you trust it, and {_SAVE}."),
)
BEGIN = 512  # bytes that tell enough


def explain_format(begin: bytes) -> tuple[str, str] | None:
    """Explains why a file is not an .npz file.

    Args:
        begin: Its first bytes, up to `BEGIN`.

    Returns:
        What it is, and what to do; None where it may be an .npz file, or one that is damaged.
    """
    if begin.startswith(b"PK"):
        return None
    if not begin:
        return "an empty file, not .npz", "Fetch it again, or save it with numpy.savez."
    for start, what, remedy in _FORMATS:
        if begin.startswith(start):
            return f"not an .npz file but {what}", remedy
    if _is_text(begin):
        what = "not an .npz file but text, such as CSV"
        return what, f"Load it with numpy.loadtxt or pandas.read_csv, and {_SAVE}."
    return None


def _is_text(begin: bytes) -> bool:
    """Whether bytes are text in UTF-8, whose last character may be cut off."""
    try:
        text = begin.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(begin) - 3:
            return False
        text = begin[: error.start].decode("utf-8-sig")
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)
