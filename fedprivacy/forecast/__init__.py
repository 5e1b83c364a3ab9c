"""Forecasts accuracy from runs with fewer clients: the law, its interval, and what it answers.

At a fixed epsilon the noise on the mean of n clients falls as 1/n where a server adds it once, and as
1/sqrt(n) where each client adds its own. Accuracy rises from guessing to what the model reaches without
noise. `law` is the curve between them, `curve` fits it to repeated runs, `answer` reads an answer off it.
"""

from __future__ import annotations
