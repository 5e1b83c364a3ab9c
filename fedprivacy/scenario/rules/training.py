"""The rules between the keys of a training scenario, in the order in which they are reported."""

from __future__ import annotations

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import Entry, broken_rules
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.aggregation import AGGREGATION_RULES
from fedprivacy.scenario.rules.budget import BUDGET_RULES
from fedprivacy.scenario.rules.budget_groups import BUDGET_GROUP_RULES
from fedprivacy.scenario.rules.clipping import CLIPPING_RULES
from fedprivacy.scenario.rules.correlated import CORRELATED_RULES
from fedprivacy.scenario.rules.data import DATA_RULES
from fedprivacy.scenario.rules.defences import DEFENCE_RULES
from fedprivacy.scenario.rules.denoising import DENOISING_RULES
from fedprivacy.scenario.rules.encoding import ENCODING_RULES
from fedprivacy.scenario.rules.examples import EXAMPLE_RULES
from fedprivacy.scenario.rules.groups import GROUP_RULES
from fedprivacy.scenario.rules.messages import MESSAGE_RULES
from fedprivacy.scenario.rules.model import MODEL_RULES
from fedprivacy.scenario.rules.on_nodes import NODE_RULES
from fedprivacy.scenario.rules.personal import PERSONAL_RULES
from fedprivacy.scenario.rules.rounds import ROUND_RULES
from fedprivacy.scenario.rules.server_noise import SERVER_NOISE_RULES
from fedprivacy.scenario.rules.shares import SHARES_RULES
from fedprivacy.scenario.rules.steps import STEP_RULES
from fedprivacy.scenario.rules.tasks import TASK_RULES

TRAINING_RULES: tuple[Entry[Values], ...] = (
    *DATA_RULES,
    *TASK_RULES,
    *NODE_RULES,
    *MODEL_RULES,
    *BUDGET_RULES,
    *ROUND_RULES,
    *MESSAGE_RULES,
    *SHARES_RULES,
    *EXAMPLE_RULES,
    *DEFENCE_RULES,
    *DENOISING_RULES,
    *STEP_RULES,
    *AGGREGATION_RULES,
    *CLIPPING_RULES,
    *CORRELATED_RULES,
    *ENCODING_RULES,
    *SERVER_NOISE_RULES,
    *GROUP_RULES,
    *BUDGET_GROUP_RULES,
    *PERSONAL_RULES,
)


def findings(values: Values) -> list[Finding]:
    """Returns a finding for each rule that the values break."""
    return list(broken_rules(TRAINING_RULES, values))
