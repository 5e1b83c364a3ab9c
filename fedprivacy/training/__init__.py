"""Local training of clients, DP-SGD, and the defences that act in training."""
