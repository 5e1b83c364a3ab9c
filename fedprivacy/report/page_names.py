"""The names of the two pages of a run directory."""

PUBLIC = "report.html"
OPERATOR = "operator.html"  # not passed on
