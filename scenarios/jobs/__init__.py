"""Resumable jobs of many cells, and the processes that compute them."""
