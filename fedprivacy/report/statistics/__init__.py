"""The pages of statistics: queries, answers with intervals, and the cost of privacy."""
