"""Prediction files: found, read in pieces, their columns understood, their samples counted exactly once."""
