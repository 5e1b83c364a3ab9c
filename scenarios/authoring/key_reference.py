"""Every key that a scenario may have, as comments for a user who edits a file.

All of it is read from the schema: the description, default and choices of a field.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

from pydantic.fields import FieldInfo

from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.words import names

COLUMN, WIDTH = 32, 110  # where comments begin and end
NARROWEST = 24  # characters of the first line of a comment


class Options:
    """The keys of one section of a scenario.

    Args:
        scenario: The whole scenario, which knows every default.
        section: The path of the section, () for the keys above the first section.
    """

    def __init__(self, scenario: AnyScenario, section: tuple[str, ...]) -> None:
        self.kind, self.section = scenario.sections[section], section
        self.values: dict[str, Any] = scenario.tables()
        for name in section:
            self.values = self.values[name]
        variant = self.kind.variant(self.values)
        assert variant is not None  # the scenario is valid
        self.variant = variant
        self.cls = self.kind.variants[variant]

    def about(self, key: str) -> str:
        """Returns the description of a key of this section, empty if it has no such key."""
        if key == self.kind.tag:
            return _first_line(self.cls)
        field = self.cls.model_fields.get(key)
        return "" if field is None else _about(field)

    def choices(self, key: str) -> str:
        """Returns the choices of a key in a sentence, empty if any value is allowed."""
        field = self.cls.model_fields.get(key)
        return "" if field is None else _choices(field)

    def unset(self, given: set[str]) -> list[str]:
        """Returns the keys that a file does not give, each commented out with its default.

        Args:
            given: The keys that it gives.
        """
        rows = []
        for key in self.kind.keys(self.variant):
            if key in given:
                continue
            value, about = self.values.get(key), self.about(key)
            field = self.cls.model_fields[key]
            if field.get_default() == {}:
                rows += commented(f"# [{'.'.join(self.section)}.{key}]", about)
            elif value is None:
                rows += commented(f"# {key} = {_example(field)}", f"Not set. {about}")
            else:
                rows += commented(f"# {key} = {literal(value)}", about)
        return rows

    def others(self) -> list[str]:
        """Returns the other kinds of this section, with the keys that differ from this kind."""
        fields = self.cls.model_fields
        rows = []
        for name, cls in self.kind.variants.items():
            if name == self.variant:
                continue
            rows += commented(f"# Or {self.kind.tag} = {literal(name)}", _first_line(cls))
            for key, field in cls.model_fields.items():
                if key != self.kind.tag and (key not in fields or _choices(field) != _choices(fields[key])):
                    needed = "Needed. " if field.is_required() and field.examples else ""
                    rows += commented(f"#    with {key} = {_example(field)}", needed + _about(field))
        return rows


def commented(code: str, comment: str) -> list[str]:
    """Returns a row with a comment beside it, which continues below where it is long."""
    if not comment:
        return [code]
    left = WIDTH - max(COLUMN, len(code) + 1) - 2
    first, *more = _wrapped(comment, max(NARROWEST, left)) or [""]  # beside a long row it sticks out
    rest = _wrapped(" ".join(more), WIDTH - COLUMN - 2)
    margin = "#" if code.startswith("#") else ""
    return [f"{code:<{COLUMN - 1}} # {first}", *(f"{margin:<{COLUMN}}# {line}" for line in rest)]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)  # a key's value stays in one piece


def _about(field: FieldInfo) -> str:
    # An example helps in an error message; here the value is beside it.
    about = re.sub(r", such as (\[.*\]|\S+)\.$", ".", field.description or "")
    return f"{about} {_choices(field)}".rstrip()


def _choices(field: FieldInfo) -> str:
    words = [] if field.get_default() == {} else list(dict.fromkeys(map(literal, names(field.annotation))))
    return f"One of {', '.join(words)}." if len(words) > 1 else ""


def _example(field: FieldInfo) -> str:
    if field.examples:
        return literal(field.examples[0])
    default = None if field.is_required() else field.get_default()
    return "..." if default is None else literal(default)


def _first_line(cls: type[Section]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
