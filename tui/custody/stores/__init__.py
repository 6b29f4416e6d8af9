"""Durable stores: where a copy lies, and how it is written, listed and read back."""
