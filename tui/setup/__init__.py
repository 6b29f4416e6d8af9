"""Guided first-time setup: from nothing to a watched box, each step with what ran and what it showed."""
