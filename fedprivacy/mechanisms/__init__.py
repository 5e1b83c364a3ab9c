"""Mechanisms: each draws noise and states the DpEvent of what it releases."""
