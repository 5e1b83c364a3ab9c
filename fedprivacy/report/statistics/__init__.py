"""The pages of statistics: what was asked, the answers with their intervals, and what privacy costs."""
