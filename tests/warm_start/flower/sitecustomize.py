"""Python runs this before any script: Flower's processes for a run or a message become forks; see `warm`.

Each would import for seconds to work for milliseconds. It is a real process all the same: with the arguments, folder,
environment and open files that Flower gave it.
"""

import os
import sys

if os.path.basename(sys.orig_argv[1] if len(sys.orig_argv) > 1 else "") in (
    "flwr-clientapp",
    "flwr-serverapp",
):
    client = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "client.py")
    address = os.environ["SERVER_OF_FORKS"]
    os.execv(sys.executable, [sys.executable, "-I", "-S", client, address, *sys.orig_argv[1:]])
