"""Makes the SVG of a drawing short: without names, comments and digits that nobody sees."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r'\b(d|x|y|transform|points)="([^"]*)"')
_DIGITS = re.compile(r"(\d*\.\d\d)\d+")
_NOTHING = re.compile(
    r'<g(?: [^>]*)?>\s*</g>|<g(?: [^>]*)?/>|<defs>\s*</defs>|<path d="[^"]*" style="fill: none"/>'
)


def compact(body: str) -> str:
    """The same drawing in fewer characters: lengths in hundredths of a pixel, no group without content.

    Args:
        body: What is between `<svg>` and `</svg>`; texts of the drawing stay as they are.
    """
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*"', "<g", body)  # nothing refers to a group
    body = _NUMBERS.sub(_shorter, body)
    body = re.sub(r">\s+<", "><", body)
    count = 1
    while count:  # a group of nothing but empty groups is empty too
        body, count = _NOTHING.subn("", body)
    # A group without a setting of its own: its content alone.
    while count := len(body):
        body = re.sub(r"<g>((?:(?!</?g\b).)*)</g>", r"\1", body, flags=re.DOTALL)
        if len(body) == count:
            return body.strip()
    return body


def _shorter(attribute: re.Match[str]) -> str:
    name, value = attribute.groups()
    value = _DIGITS.sub(lambda digits: digits.group(1).rstrip("0").rstrip("."), value)
    return f'{name}="{" ".join(value.split())}"'
