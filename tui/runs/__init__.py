"""Job file to wrapper to detached run to sealed export: what makes a run finish with nobody watching."""
