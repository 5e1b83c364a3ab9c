"""Identifies, by its first bytes, a file that was given in place of an .npz file."""

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
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")  # the last takes most bytes
BEGIN = 512  # bytes that identify a format


def explain_format(begin: bytes) -> tuple[str, str] | None:
    """Explains why a file is not an .npz file.

    Args:
        begin: Its first bytes, up to `BEGIN`.

    Returns:
        Its format and a remedy; None where it may be an .npz file, or a damaged one.
    """
    if begin.startswith(b"PK"):
        return None
    if not begin:
        return "an empty file, not .npz", "Fetch it again, or save it with numpy.savez."
    for start, what, remedy in _FORMATS:
        if begin.startswith(start):
            return f"not an .npz file but {what}", remedy
    encoding = next((name for name in _ENCODINGS if _is_text(begin, name)), None)
    if encoding is None:
        return None
    option = "" if encoding == "utf-8-sig" else f" (encoding={encoding!r})"
    what = "not an .npz file but text, such as CSV"
    return what, f"Load it with numpy.loadtxt or pandas.read_csv{option}, and {_SAVE}."


def _is_text(begin: bytes, encoding: str) -> bool:
    """Whether bytes are text in an encoding; the last character may be cut off."""
    if encoding.startswith("utf-16") and not _has_pairs(begin, encoding):
        return False
    try:
        text = begin.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(begin) - 3:
            return False
        text = begin[: error.start].decode(encoding)
    return all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def _has_pairs(begin: bytes, encoding: str) -> bool:
    """Whether bytes begin with the mark of UTF-16, or most second ones are zero, as of Western letters."""
    zeros = begin[1::2] if encoding == "utf-16-le" else begin[::2]
    return begin.startswith(_MARKS) if encoding == "utf-16" else 2 * zeros.count(0) > len(zeros)
