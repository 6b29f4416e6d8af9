"""The embedded fleet: boxes and jobs that really run, on this computer."""
