"""A data set that flwr-datasets loads, as a value, and the mistakes that keep it from being used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from fedprivacy.errors import Finding, InputError
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.toml_text import dotted


@dataclass(frozen=True)
class Source:
    """The keys of the data section that select the records to load."""

    path: str
    subset: str | None
    revision: str | None
    train: str
    test: str
    inputs: tuple[str, ...] | None
    label: str
    user: str | None

    @classmethod
    def of(cls, keys: Mapping[str, Any]) -> Self:
        """The source that a data section names; what it lacks is None."""
        values: dict[str, Any] = {field.name: keys.get(field.name) for field in fields(cls)}
        inputs = values.pop("inputs")
        return cls(**values, inputs=None if inputs is None else tuple(inputs))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder here, not a data set of the Hub."""
        return os.path.isdir(self.path)


class SourceError(InputError):
    """The problems that keep a data set from being used, each at its key of the data section."""

    several = True

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        lines = (f"{dotted(finding.path)}: {finding.what}. {finding.remedy}".strip() for finding in findings)
        super().__init__("\n".join(map(on_one_line, lines)))
