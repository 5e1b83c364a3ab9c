"""The Python API behind `import fedprivacy`: simulations, comparisons and attacks as functions.

Each call makes the scenario that a file would give and runs it as the command does: same bits, same run
directory. Names are imported when they are first used, so that `import fedprivacy` stays fast.
"""
