"""Figures beside their peers, measured on this machine: `python -m tests.bench`. A report, never a test."""
