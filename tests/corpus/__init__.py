"""Runs folders of real outputs through the product's own parsers: ``python -m tests.corpus DIR``."""
