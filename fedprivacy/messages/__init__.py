"""What crosses the wire between server and clients, as plain values."""
