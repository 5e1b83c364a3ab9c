"""fedprivacy: simulates federated learning with differential privacy, with a guarantee per observer."""

import os

__version__ = "0.1.0"

# Without it, on some processors, MKL adds up a product in an order that depends on where in memory it stands,
# and a client's bits would tell how many others there are. It is read at the first product.
os.environ.setdefault("MKL_CBWR", "AUTO")
