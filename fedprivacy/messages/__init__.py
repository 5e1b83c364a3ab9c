"""The messages between server and clients, as plain values."""
