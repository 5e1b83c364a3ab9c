"""A local SuperLink with SuperNodes on loopback, for trying."""
