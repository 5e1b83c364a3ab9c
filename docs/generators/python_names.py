"""Every public Python name: the calls of `import fedprivacy`, and the classes that they return."""

from __future__ import annotations

import inspect

import fedprivacy
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.statistics import Statistics
from generators.text import summary
from scenarios.api import data_argument, results

# In the order of a reader: what is called, then what comes back.
RETURNED = (
    *(
        f"scenarios.api.results.{name}"
        for name, item in vars(results).items()
        if inspect.isclass(item) and item.__module__ == results.__name__ and not name.startswith("_")
    ),
    f"scenarios.api.data_argument.{data_argument.People.__name__}",
    "fedprivacy.data.npz.Facts",
    "scenarios.api.actions.Noise",
    "fedprivacy.errors.Problem",
)
RAISED = ("fedprivacy.errors.ScenarioError", "fedprivacy.errors.RunError")  # kinds of the two public ones
SCENARIOS = (Scenario, Statistics, ErmScenario)  # the keys of a scenario are its attributes


def markdown() -> str:
    """Returns directives of autodoc, in an `eval-rst` block for each group."""
    functions = [name for name in fedprivacy.__all__ if inspect.isfunction(getattr(fedprivacy, name))]
    errors = [name for name in fedprivacy.__all__ if inspect.isclass(getattr(fedprivacy, name))]
    rest = set(fedprivacy.__all__) - {*functions, *errors, "__version__"}
    assert not rest, f"no place in the reference: {rest}"
    lines = ["## Calls", "", "```{eval-rst}"]
    lines += [line for name in functions for line in (f".. autofunction:: fedprivacy.{name}", "")]
    lines += [".. py:data:: fedprivacy.__version__", "", "   The version of this package.", "", "```", ""]
    lines += ["## Results", "", "```{eval-rst}"]
    for path in RETURNED:
        lines += [f".. autoclass:: {path}", "   :members:", ""]
    lines += ["```", "", "## Scenarios", ""]
    lines += ["Their attributes are the [keys](scenario-keys.md) of a file.", ""]
    lines += ["```{eval-rst}"]
    for kind in SCENARIOS:
        lines += [f".. py:class:: {kind.__module__}.{kind.__qualname__}", "", f"   {summary(kind)}", ""]
    lines += ["```", "", "## Errors", "", "```{eval-rst}"]
    raised = [*(f"fedprivacy.{name}" for name in errors), *RAISED]
    lines += [line for path in raised for line in (f".. autoexception:: {path}", "")]
    return "\n".join([*lines, "```", ""])
