"""The one background worker per run, one per box for the link and the probe, and who keeps them alive."""
