"""Sends results to experiment trackers. A tracker is an observer: it gets public values only."""
