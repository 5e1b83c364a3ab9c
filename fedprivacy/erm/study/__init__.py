"""Studies of private estimates: each approach at each epsilon and size, beside the exact minimum."""
