"""A scenario in which six clients with a record each hardly move a model: audits put their canaries there."""

CANARY = """
name = "canary"
[data]
name = "synthetic"
records = 6
features = 1
partition = "one-per-example"
[model]
name = "logistic"
[training]
learning_rate = 1.0
[server]
rounds = 2
learning_rate = 1e-6
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 3.0
delta = 1e-2
"""
