"""Metrics: their definitions in plain NumPy, what they are called, and when two figures are the same."""
