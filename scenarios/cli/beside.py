"""What commands that train import in a process beside them while they import torch."""

# In the order of their use: accountants, then what draws the page.
MODULES = (
    "fedprivacy.plan.privacy_plan",
    "fedprivacy.accounting.privacy_loss",
    "fedprivacy.accounting.renyi",
    "dp_accounting.mechanism_calibration",
    "fedprivacy.report",
    "matplotlib.backends.backend_svg",
)
